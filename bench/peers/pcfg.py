#!/usr/bin/python3
"""Training of the probabilistic grammar in PyTorch, written for speed on the CPU.

Trees grow step-synchronously: all nodes of one depth, over all particles, are one call. A node's state depends on its
sentence and on the path from the root alone, so nodes with equal paths are one row of the network and only draw apart.
What the grammar decides alone (P and V) needs no row. The sentence's part of the core's input is a table, sentence by
kind of node. Gradients are by hand: in the recursion over depths a gate's gradient is one product with a factor that
was computed for all rows at once, and weight gradients are one product per matrix at the end. Edit distances use
Python's long integers, a bit per word.

    pcfg.py --method ww --particles 20 --iterations 2000 --parts 20 --json
    pcfg.py --check
"""
import math
from typing import List

import common
import numpy as np
import torch
from torch import Tensor

MAX_DEPTH, MAX_NODES = 30, 2000
H, RATE = 100, 1e-3

# ---- the grammar, as tables
# Words are letters, in the order of their one-hot codes; OOV stands for a non-terminal that the caps left a leaf.
WORDS, OOV = "aesrtw", "?"  # astronomers ears saw stars telescopes with
NONTERMINALS = ["NP", "P", "PP", "S", "V", "VP"]
TRUE = [0.4, 0.1, 0.18, 0.04, 0.18, 0.1], [0.7, 0.3]  # of NP -> NP PP | a | e | s | r | t and VP -> V NP | VP PP
# Kinds of nodes: the non-terminal and which production its parent chose. P and V are part of their parents.
KINDS = [("S", None), ("NP", 0), ("VP", 0), ("VP", 1), ("PP", 0), ("PP", 1)]
N_KINDS = len(KINDS)
# A node's choice is a column of 8: NP's six productions, then VP's two. S and PP have one choice, column 0.
COLUMNS = {"S": [0], "NP": range(6), "VP": [6, 7], "PP": [0]}
# What a choice yields: a word (with P or V in between), then the kinds of two children or -1.
CHOICES = {("S", 0): ("", 1, 2), ("NP", 0): ("", 1, 4), ("VP", 6): ("s", -1, 1), ("VP", 7): ("", 3, 5),
           ("PP", 0): ("w", -1, 1), **{("NP", 1 + i): (word, -1, -1) for i, word in enumerate("aesrt")}}
# The same by code = 8 kind + column
FIRST, SECOND = np.full(8 * N_KINDS, -1), np.full(8 * N_KINDS, -1)
YIELD = [""] * (8 * N_KINDS)
HAS_WORD_NODE = np.zeros(8 * N_KINDS, dtype=bool)  # a P or a V
ALLOWED = np.zeros((N_KINDS, 8), dtype=bool)
COUNTED = np.full(8 * N_KINDS, 8)  # the column in theta's counts; 8 is not counted
for kind, (name, _) in enumerate(KINDS):
    for column in COLUMNS[name]:
        code = 8 * kind + column
        YIELD[code], FIRST[code], SECOND[code] = CHOICES[name, column]
        HAS_WORD_NODE[code] = name == "PP" or column == 6
        ALLOWED[kind, column] = True
        COUNTED[code] = column if len(COLUMNS[name]) > 1 else 8
YIELD_CAPPED = [OOV if has else word for word, has in zip(YIELD, HAS_WORD_NODE)]
ADDRESS = torch.tensor([NONTERMINALS.index(name) for name, _ in KINDS])
IS = {name: np.array([other == name for other, _ in KINDS]) for name in ("NP", "VP")}
CODE = {word: i for i, word in enumerate(WORDS + OOV)}
NONE, CUT = -1, -2  # children that are not there: not in the grammar, or cut off by a cap


# ---- trees


class Trees:
    """The nodes of n trees, depth by depth; the first n are the roots.

    tree: whose node it is; code: its choice; first, second: its children (a node, NONE or CUT); row: of the network. They
    are lists of an array per depth while the trees grow, then arrays. rows: a depth's rows of the network, see choose.
    capped: nodes whose P or V is cut off; gone: nodes that a cap took back."""

    def __init__(self, sentence, choose):
        """A tree for each element of sentence, which is sorted and has all of 0 … its last.

        choose(row_parent, row_kind, row_sentence, row, kind) returns the columns that the nodes of the next depth choose:
        their rows come from row_parent in the rows of the last depth; row and kind are those of the nodes."""
        self.tree, self.code, self.first, self.second, self.row, self.n_rows = [], [], [], [], [], []
        self.n, self.capped, self.gone, self.rows = len(sentence), set(), set(), []
        tree, kind, row, n_nodes, n_rows = np.arange(self.n), np.zeros(self.n, dtype=np.int64), sentence, 0, 0
        row_sentence = row_parent = np.arange(sentence[-1] + 1)
        row_kind = np.zeros(len(row_sentence), dtype=np.int64)
        for depth in range(MAX_DEPTH + 1):
            self.rows.append((row_parent, row_kind, row_sentence))
            code = choose(*self.rows[-1], row, kind) + 8 * kind
            kind1, kind2 = FIRST[code], SECOND[code]
            has1, has2 = (kind1 >= 0).nonzero()[0], (kind2 >= 0).nonzero()[0]
            first, second = kind1.copy(), kind2.copy()  # NONE where there is none
            n_nodes += len(code)
            if depth < MAX_DEPTH:
                first[has1] = np.arange(n_nodes, n_nodes + len(has1))
                second[has2] = np.arange(n_nodes + len(has1), n_nodes + len(has1) + len(has2))
            else:
                first[has1] = second[has2] = CUT
                self.capped.update(range(n_nodes - len(code), n_nodes))
            self.tree.append(tree)
            self.code.append(code)
            self.first.append(first)
            self.second.append(second)
            self.row.append(row + n_rows)
            self.n_rows.append(len(row_kind))
            n_rows += len(row_kind)
            if depth == MAX_DEPTH or len(has2) == 0:
                break
            parent = np.concatenate((has1, has2))
            kind = np.concatenate((kind1[has1], kind2[has2]))
            tree = tree[parent]
            if 2 * (n_nodes + len(parent)) > MAX_NODES:  # with a P or V for each, the least that a full tree has
                keep = self.cut(n_nodes, tree)
                parent, kind, tree = parent[keep], kind[keep], tree[keep]
                if len(parent) == 0:
                    break
            # nodes with the same parent row and kind share a row
            key = row[parent] * N_KINDS + kind
            used = np.zeros(len(row_kind) * N_KINDS, dtype=np.int64)
            used[key] = 1
            row = (used.cumsum() - 1)[key]
            row_parent, row_kind = np.divmod(used.nonzero()[0], N_KINDS)
            row_sentence = row_sentence[row_parent]
        self.tree, self.code, self.first, self.second, self.row = (np.concatenate(parts) for parts in (
            self.tree, self.code, self.first, self.second, self.row))
        self.alive = np.ones(n_nodes, dtype=bool)
        self.alive[list(self.gone)] = False

    def cut(self, n_nodes, waiting):
        """Makes leaves of what comes in pre-order after a tree's first MAX_NODES expanded nodes, P and V included.

        There are n_nodes nodes so far, then those that wait to choose, of the trees `waiting`. Returns which of these
        stay; they are renumbered. Nodes found later only push others back, so what is cut here is cut for good."""
        code, tree, first, second = (np.concatenate(parts) for parts in (self.code, self.tree, self.first, self.second))
        there = np.ones(n_nodes, dtype=bool)
        there[list(self.gone)] = False
        size = (np.bincount(tree, there * (1 + HAS_WORD_NODE[code]), minlength=self.n)
                + np.bincount(waiting, minlength=self.n))
        full = (size > MAX_NODES).nonzero()[0]
        keep = ~np.isin(waiting, full)
        for root in full:
            self.gone.update((tree == root).nonzero()[0].tolist())
            n, stack = 0, [(root, None, None)]
            while stack:
                node, parent, links = stack.pop()
                if n == MAX_NODES:
                    if links is None:
                        self.capped.add(parent)
                    else:
                        links[parent] = CUT
                    continue
                n += 1
                if node >= n_nodes:
                    keep[node - n_nodes] = True
                elif node >= 0:  # else a P or V
                    self.gone.discard(node)
                    stack += [(links[node], node, links) for links in (second, first) if links[node] >= 0]
                    if HAS_WORD_NODE[code[node]]:
                        stack.append((NONE, node, None))
        number = np.where(keep, n_nodes + keep.cumsum() - 1, CUT)
        ends = np.cumsum([len(part) for part in self.code])[:-1]
        for links in (first, second):
            new = links >= n_nodes
            links[new] = number[links[new] - n_nodes]
        self.first, self.second = np.split(first, ends), np.split(second, ends)
        return keep

    def yields(self):
        words = [""] * len(self.code) + [OOV, ""]  # at the end those of CUT and NONE
        own = [YIELD[code] for code in self.code.tolist()]
        for node in self.capped:
            own[node] = OOV if HAS_WORD_NODE[self.code[node]] else own[node]
        node = len(own)
        for first, second in zip(self.first[::-1].tolist(), self.second[::-1].tolist()):
            node -= 1
            words[node] = own[node] + words[first] + words[second]
        return words[:self.n]

    def counts(self):
        """[n, 8]: how often a tree has a choice of NP or VP."""
        alive = self.alive
        return np.bincount(9 * self.tree[alive] + COUNTED[self.code[alive]], minlength=9 * self.n).reshape(-1, 9)[:, :8]


def distances(x, sentences):
    """Levenshtein distances of the sentences to x, by columns of the table in two integers with a bit per word of x
    (Myers 1999): where it rises and where it falls."""
    full, last = (1 << len(x)) - 1, 1 << (len(x) - 1)
    places = {word: sum(1 << i for i, other in enumerate(x) if other == word) for word in set(x)}
    known, out = {}, []
    for sentence in sentences:
        if sentence not in known:
            up, down, distance = full, 0, len(x)
            for word in sentence:
                equal = places.get(word, 0)
                vertical = equal | down
                horizontal = (((equal & up) + up) ^ up) | equal
                rise = down | ~(horizontal | up)
                fall = up & horizontal
                if rise & last:
                    distance += 1
                elif fall & last:
                    distance -= 1
                rise = rise << 1 | 1
                up = (fall << 1 | ~(vertical | rise)) & full
                down = rise & vertical & full
            known[sentence] = distance
        out.append(known[sentence])
    return np.array(out)


def sample_prior(n, probabilities, rng):
    """n trees from the grammar with probabilities [8]."""
    above = np.zeros((N_KINDS, 7))  # P(column > j)
    above[IS["NP"], :5] = 1 - np.cumsum(probabilities[:5])
    above[IS["VP"], :6] = 1
    above[IS["VP"], 6] = probabilities[7]

    def choose(row_parent, row_kind, row_sentence, row, kind):
        return (rng.random((len(kind), 1)) < above[kind]).sum(1)
    return Trees(np.arange(n), choose)


# ---- the network


def shapes():
    """Gates in the order reset, update, new. The proposals of NP and VP side by side in the first layer."""
    return {"theta": (8,), "word.W": (3 * H, 6), "word.U": (3 * H, H), "word.b": (3 * H,), "word.c": (3 * H,),
            "core.W": (3 * H, H + 12), "core.U": (3 * H, H), "core.b": (3 * H,), "core.c": (3 * H,),
            "W1": (100, H), "b1": (100,), "W2.NP": (25, 50), "W2.VP": (25, 50), "b2": (50,),
            "W3.NP": (6, 25), "W3.VP": (2, 25), "b3": (8,)}


def initialise(p):
    for name, tensor in p.items():
        bound = {"W2": 50, "b2": 50, "W3": 25, "b3": 25}.get(name[:2], 100) ** -0.5
        tensor.uniform_(-bound, bound)
    p["theta"].normal_()


@torch.jit.script
def gates(gi, gh, h):
    """A step of the cell from its two products: reset and update, new, state."""
    ru = torch.add(gi[:, :200], gh[:, :200]).sigmoid_()
    new = torch.addcmul(gi[:, 200:], ru[:, :100], gh[:, 200:]).tanh_()
    return ru, new, torch.lerp(new, h, ru[:, 100:])


@torch.jit.script
def factors(hp, gh, ru, new):
    """Of all steps: d(what the gates sum up)/d state [n, 300], and that of the new part with respect to gi."""
    r, u = ru[:, :100], ru[:, 100:]
    inner = (1 - u).mul_(1 - new * new)
    outer = inner * r
    return torch.cat([outer * (1 - r) * gh[:, 200:], (hp - new).mul_(u).mul_(1 - u), outer], 1), inner


@torch.jit.script
def read(gi, sizes: List[int], U_t, c):
    """A packed GRU: the inputs of step t are the next sizes[t] rows. Per row: state before, gh, ru, new, state."""
    h = torch.zeros(sizes[0], 100, dtype=gi.dtype)
    hs, ghs, rus, news, outs = [h], [h], [h], [h], [h]
    at = 0
    for n in sizes:
        h = h[:n]
        gh = torch.addmm(c, h, U_t)
        ru, new, out = gates(gi[at:at + n], gh, h)
        hs.append(h)
        ghs.append(gh)
        rus.append(ru)
        news.append(new)
        outs.append(out)
        h = out
        at += n
    return torch.cat(hs[1:]), torch.cat(ghs[1:]), torch.cat(rus[1:]), torch.cat(news[1:]), torch.cat(outs[1:])


@torch.jit.script
def read_back(d_last, sizes: List[int], factor, ru, U):
    """From the gradient of the last states [sentences, 100] to those of all states, in the order of the rows."""
    ds = [d_last]
    end = len(factor)
    n_after = 0
    d = d_last[:0]
    for t in range(len(sizes) - 1, -1, -1):
        n = sizes[t]
        if n > n_after:
            d = torch.cat([d, d_last[n_after:n]])
        ds.append(d)
        f = factor[end - n:end]
        d = torch.addmm(d * ru[end - n:end, 100:], (d.unsqueeze(1) * f.view(n, 3, 100)).view(n, 300), U)
        n_after = n
        end -= n
    ds.reverse()
    return torch.cat(ds[:-1])


@torch.jit.script
def descend(h, parent, table, code, U_t, c):
    hp = h.index_select(0, parent)
    gh = torch.addmm(c, hp, U_t)
    ru, new, out = gates(table.index_select(0, code), gh, hp)
    return hp, gh, ru, new, out


@torch.jit.script
def propose(h, W1_t, b1, W2_t, b2, W3_t, mask, kind):
    a1 = torch.addmm(b1, h, W1_t).relu_()
    a2 = torch.addmm(b2, a1, W2_t).relu_()
    return a1, a2, torch.addmm(mask.index_select(0, kind), a2, W3_t)


@torch.jit.script
def ascend(d, sizes: List[int], parents: Tensor, factor, ru, U):
    """Adds to d [rows, 100] what reaches the states from the rows below; parents are rows of the depth above."""
    end = len(d)
    for i in range(len(sizes) - 1, 0, -1):
        n = sizes[i]
        start = end - n
        dn = d[start:end]
        dp = torch.addmm(dn * ru[start:end, 100:], (dn.unsqueeze(1) * factor[start:end].view(n, 3, 100)).view(n, 300), U)
        d[start - sizes[i - 1]:start].index_add_(0, parents[start:end], dp)
        end = start
    return d


class Guide:
    """q for the trees of some sentences; `run` draws or scores, `backward` fills the gradient."""

    def __init__(self, p, g):
        self.p, self.g = p, g
        dtype = p["W1"].dtype
        self.W2, self.W3 = torch.zeros(50, 100, dtype=dtype), torch.zeros(8, 50, dtype=dtype)
        self.mask = torch.where(torch.from_numpy(ALLOWED), 0.0, -1e4).to(dtype)
        self.refresh()

    def refresh(self):
        """After a step of the parameters."""
        p = self.p
        self.W2[:25, :50], self.W2[25:, 50:] = p["W2.NP"], p["W2.VP"]
        self.W3[:6, :25], self.W3[6:, 25:] = p["W3.NP"], p["W3.VP"]
        self.bias = self.mask + p["b3"]
        self.words = torch.cat([p["word.W"].t() + p["word.b"], p["word.b"].unsqueeze(0)])  # [7, 300], the last of OOV
        self.kinds = p["core.W"][:, H + 6:].t()[ADDRESS] + p["core.b"]
        for kind, (_, production) in enumerate(KINDS):
            if production is not None:
                self.kinds[kind] += p["core.W"][:, H + production]

    def embed(self, sentences):
        """The core's input table [sentences * kinds, 300]."""
        p = self.p
        length = np.array([len(s) for s in sentences])
        self.order = np.argsort(-length, kind="stable")
        codes = np.full((len(sentences), length.max()), -1)
        for i, s in enumerate(self.order):
            codes[i, :length[s]] = [CODE[word] for word in sentences[s]]
        self.word = torch.from_numpy(codes.T[codes.T >= 0])
        self.sizes = (codes >= 0).sum(0).tolist()
        self.reading = read(self.words.index_select(0, self.word), self.sizes, p["word.U"].t(), p["word.c"])
        # a sentence's last row: the rows before its last step, and its place in that step
        starts = np.concatenate([[0], np.cumsum(self.sizes)])
        self.last = torch.from_numpy(starts[length[self.order] - 1] + np.arange(len(sentences)))
        self.e = torch.empty(len(sentences), H, dtype=self.words.dtype)
        self.e[torch.from_numpy(self.order)] = self.reading[4][self.last]
        inputs = torch.mm(self.e, p["core.W"][:, :H].t())
        self.table = (inputs.unsqueeze(1) + self.kinds).view(-1, 3 * H)

    def rows(self):
        """Starts to collect rows; returns a function that computes the next depth's."""
        p = self.p
        U_t, c = p["core.U"].t(), p["core.c"]
        self.parts, self.parents, self.codes, self.row_kinds = [], [], [], []

        def step(row_parent, row_kind, row_sentence):
            parent, code = torch.from_numpy(row_parent), torch.from_numpy(row_sentence * N_KINDS + row_kind)
            above = self.parts[-1][4] if self.parts else torch.zeros(len(parent), H, dtype=self.table.dtype)
            self.parts.append(descend(above, parent, self.table, code, U_t, c))
            self.parents.append(parent)
            self.codes.append(code)
            self.row_kinds.append(row_kind)
            return self.parts[-1][4]
        return step

    def propose(self, h, row_kind):
        p = self.p
        return propose(h, p["W1"].t(), p["b1"], self.W2.t(), p["b2"], self.W3.t(), self.bias, torch.from_numpy(row_kind))

    def sample(self, sentences, K, gumbel):
        """K trees for each sentence, by sentence, and their log q."""
        self.embed(sentences)
        step, proposals = self.rows(), []

        def choose(row_parent, row_kind, row_sentence, row, kind):
            proposals.append(self.propose(step(row_parent, row_kind, row_sentence), row_kind))
            return (proposals[-1][2].numpy()[row] + gumbel(len(row))).argmax(1)
        trees = Trees(np.repeat(np.arange(len(sentences)), K), choose)
        self.proposals = [torch.cat(parts) for parts in zip(*proposals)]
        return trees, self.log_q(trees)

    def score(self, sentences, trees):
        """log q of trees, one for each sentence."""
        self.embed(sentences)
        step = self.rows()
        for rows in trees.rows:
            step(*rows)
        kinds = np.concatenate(self.row_kinds)
        self.proposals = self.propose(torch.cat([part[4] for part in self.parts]), kinds)
        return self.log_q(trees)

    def log_q(self, trees):
        self.log = torch.log_softmax(self.proposals[2], 1)
        each = self.log.numpy()[trees.row, trees.code & 7]
        return np.bincount(trees.tree, each * trees.alive, minlength=trees.n)

    def backward(self, trees, c):
        """The gradient of sum_i c_i log q(tree_i)."""
        p, g = self.p, self.g
        a1, a2, _ = self.proposals
        hp, gh, ru, new, h = (torch.cat(parts) for parts in zip(*self.parts))
        n, dtype = len(h), h.dtype
        # logits: the coefficients of the nodes of a row, by column, minus their sum times the probabilities
        weight = np.bincount(8 * trees.row + (trees.code & 7), c[trees.tree] * trees.alive, minlength=8 * n)
        d3 = torch.from_numpy(weight.reshape(n, 8)).to(dtype)
        d3.addcmul_(self.log.exp(), d3.sum(1, keepdim=True), value=-1)
        d = torch.zeros(n, H, dtype=dtype)
        kinds = np.concatenate(self.row_kinds)
        for name, i, columns in (("NP", 0, slice(0, 6)), ("VP", 1, slice(6, 8))):
            rows = torch.from_numpy(np.flatnonzero(IS[name][kinds]))
            half, quarter = slice(50 * i, 50 * i + 50), slice(25 * i, 25 * i + 25)
            dz = d3[rows, columns]
            x1, x2 = a1[rows, half], a2[rows, quarter]
            torch.mm(dz.t(), x2, out=g["W3." + name])
            torch.sum(dz, 0, out=g["b3"][columns])
            dz = torch.mm(dz, p["W3." + name]).mul_(x2 > 0)
            torch.mm(dz.t(), x1, out=g["W2." + name])
            torch.sum(dz, 0, out=g["b2"][quarter])
            dz = torch.mm(dz, p["W2." + name]).mul_(x1 > 0)
            torch.mm(dz.t(), h[rows], out=g["W1"][half])
            torch.sum(dz, 0, out=g["b1"][half])
            d.index_copy_(0, rows, torch.mm(dz, p["W1"][half]))
        # the core, from the leaves up
        factor, inner = factors(hp, gh, ru, new)
        ascend(d, trees.n_rows, torch.cat(self.parents), factor, ru, p["core.U"])
        dg = self.cell("core", d, factor, inner, hp)
        table = torch.zeros_like(self.table).index_add_(0, torch.cat(self.codes), dg).view(-1, N_KINDS, 3 * H)
        by_sentence, by_kind = table.sum(1), table.sum(0)
        gW = g["core.W"]
        torch.mm(by_sentence.t(), self.e, out=gW[:, :H])
        gW[:, H:] = 0
        for kind, (_, production) in enumerate(KINDS):
            gW[:, H + 6 + ADDRESS[kind]] += by_kind[kind]
            if production is not None:
                gW[:, H + production] += by_kind[kind]
        torch.sum(by_kind, 0, out=g["core.b"])
        # the sentences
        d = torch.mm(by_sentence, p["core.W"][:, :H])[torch.from_numpy(self.order)]
        hp, gh, ru, new, _ = self.reading
        factor, inner = factors(hp, gh, ru, new)
        d = read_back(d, self.sizes, factor, ru, p["word.U"])
        dg = self.cell("word", d, factor, inner, hp)
        by_word = torch.zeros(7, 3 * H, dtype=dtype).index_add_(0, self.word, dg)
        g["word.W"].copy_(by_word[:6].t())
        torch.sum(by_word, 0, out=g["word.b"])

    def cell(self, name, d, factor, inner, hp):
        """Gradients of U and c from those of the states; returns those of gi."""
        dg = d.repeat(1, 3).mul_(factor)
        torch.mm(dg.t(), hp, out=self.g[name + ".U"])
        torch.sum(dg, 0, out=self.g[name + ".c"])
        torch.mul(d, inner, out=dg[:, 2 * H:])
        return dg


# ---- training


class Trainer:
    def __init__(self, team, args):
        self.team, self.args, self.coefficients = team, args, common.coefficients
        self.B = args.batch // team.size + (team.rank < args.batch % team.size)
        self.p, self.g = common.views(team.P, shapes()), common.views(team.G, shapes())
        if team.rank == 0:
            torch.manual_seed(args.seed)
            initialise(self.p)
        team.wait()
        self.guide = Guide(self.p, self.g)
        self.rng = np.random.Generator(np.random.SFC64((args.seed, team.rank)))
        if args.method == "ws":
            self.optimisers = common.Adam(team, 0, 8, RATE), common.Adam(team, 8, len(team.P), RATE)
        else:
            self.optimisers = common.Adam(team, 0, len(team.P), RATE),
        self.data, self.noise = [], np.zeros((0, 8))

    def sentences(self):
        if len(self.data) < self.B:
            self.data = sample_prior(100 * self.B, np.concatenate(TRUE), self.rng).yields()
        return [self.data.pop() for _ in range(self.B)]

    def gumbel(self, n):
        if len(self.noise) < n:
            u = torch.from_numpy(self.rng.random((max(n, 8192), 8), dtype=np.float32)).add_(2**-25)
            self.noise = u.log_().neg_().log_().neg_().to(self.guide.words.dtype).numpy()
        self.noise, out = self.noise[n:], self.noise[:n]
        return out

    def iterate(self):
        args, K, B, theta = self.args, self.args.particles, self.B, self.p["theta"]
        x = self.sentences()
        trees, log_q = self.guide.sample(x, K, self.gumbel)
        words, counts = trees.yields(), trees.counts()
        distance = np.concatenate([distances(x[b], words[b * K:b * K + K]) for b in range(B)])
        log_theta = np.concatenate([torch.log_softmax(t, 0).numpy() for t in (theta[:6], theta[6:])])
        log_p = counts @ log_theta - distance**2
        l = torch.from_numpy((log_p - log_q).reshape(B, K).T)
        L, cp, cq = self.coefficients("ww" if args.method == "ws" else args.method, l)
        total = (cp / args.batch).T.reshape(-1).numpy() @ counts
        total -= np.exp(log_theta) * np.repeat([total[:6].sum(), total[6:].sum()], [6, 2])
        self.g["theta"].copy_(torch.from_numpy(total))
        if args.method == "ws":
            self.optimisers[0].step()
            probabilities = np.concatenate([torch.softmax(t, 0).numpy() for t in (theta[:6], theta[6:])])
            trees = sample_prior(K * B, probabilities, self.rng)
            x = trees.yields()
            log_q = self.guide.score(x, trees)
            c = np.full(K * B, 1 / (K * args.batch))
        else:
            c = (cq / args.batch).T.reshape(-1).numpy()
        self.guide.backward(trees, c)
        self.optimisers[-1].step()
        self.guide.refresh()
        self.x, self.trees, self.l, self.log_q = x, trees, l, log_q
        return float(L.mean())


# ---- check


def nested(trees, node, depth=0):
    """(non-terminal, production, children): children are words, the same again, or (non-terminal, None, [])."""
    if trees.code[node] & 7 not in COLUMNS[KINDS[trees.code[node] >> 3][0]]:
        raise AssertionError("a choice that the grammar does not have")
    name, column = KINDS[trees.code[node] >> 3][0], trees.code[node] & 7
    production = column - 6 if name == "VP" else column
    rule = {"S": [["NP", "VP"]], "PP": [["P", "NP"]], "VP": [["V", "NP"], ["VP", "PP"]],
            "NP": [["NP", "PP"]] + [[word] for word in "aesrt"]}[name][production]
    children = []
    for symbol, link in zip(rule, (trees.first[node], trees.second[node])):
        if symbol in WORDS:
            children.append(symbol)
        elif symbol in "PV":
            children.append((symbol, None, []) if node in trees.capped else (symbol, 0, ["w" if symbol == "P" else "s"]))
        elif link == CUT:
            children.append((symbol, None, []))
        else:
            assert KINDS[trees.code[link] >> 3] == (symbol, production)
            children.append(nested(trees, link, depth + 1))
    return name, int(production), children


def check_caps(tree):
    """A leaf that is a non-terminal is there because of its depth or because the cap was reached before it."""
    def visit(tree, depth, n):
        name, production, children = tree
        if production is None:
            assert depth == MAX_DEPTH + 1 or n == MAX_NODES, (depth, n)
            return n
        n += 1
        assert depth <= MAX_DEPTH and n <= MAX_NODES
        for child in children:
            n = n if isinstance(child, str) else visit(child, depth + 1, n)
        return n
    return visit(tree, 0, 0)


def plain_yield(tree):
    if tree[1] is None:
        return OOV
    return "".join(child if isinstance(child, str) else plain_yield(child) for child in tree[2])


def plain_distance(x, y):
    table = [list(range(len(y) + 1))]
    for i, a in enumerate(x):
        table.append([i + 1])
        for j, b in enumerate(y):
            table[-1].append(min(table[-1][-1] + 1, table[i][j + 1] + 1, table[i][j] + (a != b)))
    return table[-1][-1]


class Plain:
    """The definitions, a node at a time."""

    def __init__(self, p):
        self.p = {name: tensor.detach().clone().requires_grad_() for name, tensor in p.items()}

    def cell(self, name, x, h):
        p = self.p
        gi, gh = p[name + ".W"] @ x + p[name + ".b"], p[name + ".U"] @ h + p[name + ".c"]
        r, u = torch.sigmoid(gi[:H] + gh[:H]), torch.sigmoid(gi[H:2 * H] + gh[H:2 * H])
        new = torch.tanh(gi[2 * H:] + r * gh[2 * H:])
        return (1 - u) * new + u * h

    def embed(self, sentence):
        h = torch.zeros(H)
        for word in sentence:
            h = self.cell("word", torch.tensor([float(word == other) for other in WORDS]), h)
        return h

    def log_q(self, tree, e, h=torch.zeros(100, dtype=torch.float64), previous=None):
        name, production, children = tree
        if production is None:
            return 0
        one_hot = [float(i == previous) for i in range(6)] + [float(name == other) for other in NONTERMINALS]
        h = self.cell("core", torch.cat([e, torch.tensor(one_hot)]), h)
        out, p = 0, self.p
        if name in ("NP", "VP"):
            i = ["NP", "VP"].index(name)
            a = torch.relu(p["W1"][50 * i:50 * i + 50] @ h + p["b1"][50 * i:50 * i + 50])
            a = torch.relu(p["W2." + name] @ a + p["b2"][25 * i:25 * i + 25])
            out = torch.log_softmax(p["W3." + name] @ a + p["b3"][6 * i:6 + 2 * i], 0)[production]
        return out + sum(self.log_q(child, e, h, production) for child in children if not isinstance(child, str))

    def log_prior(self, tree):
        name, production, children = tree
        if production is None:
            return 0
        theta = {"NP": self.p["theta"][:6], "VP": self.p["theta"][6:]}.get(name, torch.zeros(1))
        return torch.log_softmax(theta, 0)[production] + sum(self.log_prior(c) for c in children if not isinstance(c, str))

    def log_p(self, tree, x):
        return self.log_prior(tree) - float(plain_distance(x, plain_yield(tree)))**2


def check(args):
    global MAX_NODES, MAX_DEPTH
    torch.set_default_dtype(torch.float64)
    assert common.size(shapes()) == 8 + 109458
    n_check = common.size(shapes())
    for args.method, args.particles, caps in (("ww", 1, (30, 2000)), ("ww", 6, (30, 2000)), ("ww", 6, (4, 2000)), ("ww", 6, (30, 12)),
                                              ("vimco", 2, (30, 2000)), ("vimco", 6, (30, 2000)),
                                              ("reinforce", 4, (30, 2000)), ("ws", 3, (30, 2000)), ("ws", 3, (5, 20))):
        MAX_DEPTH, MAX_NODES = caps
        common.check_coefficients("ww" if args.method == "ws" else args.method)
        K, B = args.particles, args.batch
        trainer = Trainer(common.Team(1, n_check), args)
        trainer.coefficients = common.random_coefficients
        trainer.p["W3.NP"][0] += 0.5  # long trees
        trainer.p["theta"][0] += 1.0
        trainer.guide.refresh()
        plain, old = Plain(trainer.p), {}
        if args.method == "ws":  # keep what the wake phase saw
            sample = trainer.guide.sample
            trainer.guide.sample = lambda x, *rest: old.update(x=x, trees=sample(x, *rest)) or old["trees"]
        trainer.iterate()
        x, trees = (old["x"], old["trees"][0]) if old else (trainer.x, trainer.trees)
        table = [[nested(trees, b * K + k) for b in range(B)] for k in range(K)]
        for row in table:
            for tree in row:
                check_caps(tree)
        e = [plain.embed(sentence) for sentence in x]
        log_q = torch.stack([torch.stack([plain.log_q(row[b], e[b]) for b in range(B)]) for row in table])
        log_p = torch.stack([torch.stack([plain.log_p(row[b], x[b]) for b in range(B)]) for row in table])
        error = float((trainer.l - (log_p - log_q)).abs().max())
        _, cp, cq = common.random_coefficients("ww" if args.method == "ws" else args.method, trainer.l)
        target = (cp * log_p).sum(0).mean()
        if args.method == "ws":
            sleep = [nested(trainer.trees, i) for i in range(trainer.trees.n)]
            sentences = [plain_yield(tree) for tree in sleep]
            assert sentences == trainer.x
            target = target + sum(plain.log_q(tree, plain.embed(s)) for tree, s in zip(sleep, sentences)) / len(sleep)
        else:
            target = target + (cq * log_q).sum(0).mean()
        g = dict(zip(plain.p, torch.autograd.grad(target, list(plain.p.values()))))
        errors = {name: float((trainer.g[name] - g[name]).norm() / g[name].norm().clamp_min(1e-12)) for name in g}
        worst = max(errors, key=errors.get)
        print("%-9s K=%d caps %-10s log-weights %.1e, worst gradient %s %.1e; %d rows for %d nodes, %d leaves cut" %
              (args.method, K, caps, error, worst, errors[worst], sum(trees.n_rows), trees.alive.sum(),
               (trees.first == CUT).sum() + (trees.second == CUT).sum()))
        assert error < 1e-9 and errors[worst] < 1e-9, errors
    # draws: shares of NP -> NP PP, in units of their deviation
    MAX_DEPTH, MAX_NODES = 30, 2000
    trees, _ = trainer.guide.sample(["asrwt"], 2000, trainer.gumbel)
    q, here = trainer.guide.log.exp().numpy()[trees.row], COUNTED[trees.code] < 6
    z = ((trees.code[here] & 7) == 0).sum() - q[here, 0].sum()
    assert abs(z) < 5 * math.sqrt((q[here, 0] * (1 - q[here, 0])).sum()), z
    trees = sample_prior(5000, np.concatenate(TRUE), trainer.rng)
    assert abs(np.mean([len(y) for y in trees.yields()]) - 13.2) < 1.5
    shares = trees.counts().sum(0)
    assert np.abs(shares[:6] / shares[:6].sum() - TRUE[0]).max() < 0.01


if __name__ == "__main__":
    args = common.options(__doc__, ["ww", "ws", "vimco", "reinforce"], batch=2, particles=20, iterations=440).parse_args()
    with torch.no_grad() if not args.check else torch.enable_grad():
        check(args) if args.check else common.measure(args, common.size(shapes()), lambda team: Trainer(team, args))
