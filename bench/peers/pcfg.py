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

import common
import numpy as np
import torch

MAX_DEPTH, MAX_NODES = 30, 2000
H, RATE = 100, 1e-3

# ---- the grammar, as tables
# Words are letters, in the order of their one-hot codes; OOV stands for a non-terminal that the caps left a leaf.
WORDS, OOV = "aesrtw", "?"  # astronomers ears saw stars telescopes with
NONTERMINALS = ["NP", "P", "PP", "S", "V", "VP"]
TRUE = np.array([0.4, 0.1, 0.18, 0.04, 0.18, 0.1, 0.7, 0.3])  # NP -> NP PP | a | e | s | r | t, VP -> V NP | VP PP
# Kinds of nodes: the non-terminal and which production its parent chose. P and V are part of their parents.
KINDS = [("S", None), ("NP", 0), ("VP", 0), ("VP", 1), ("PP", 0), ("PP", 1)]
N_KINDS = len(KINDS)
# A node's choice is a column of 8: NP's six productions, then VP's two. S and PP have one choice, column 0.
COLUMNS = {"S": [0], "NP": range(6), "VP": [6, 7], "PP": [0]}
# What a choice yields: a word (with P or V in between), then the kinds of two children or -1.
CHOICES = {("S", 0): ("", 1, 2), ("NP", 0): ("", 1, 4), ("VP", 6): ("s", -1, 1), ("VP", 7): ("", 3, 5),
           ("PP", 0): ("w", -1, 1), **{("NP", 1 + i): (word, -1, -1) for i, word in enumerate("aesrt")}}
# The same by code = 8 kind + column
CHILDREN = np.full((8 * N_KINDS, 2), -1)
YIELD = [""] * (8 * N_KINDS)
HAS_WORD_NODE = np.zeros(8 * N_KINDS, dtype=bool)  # a P or a V
ALLOWED = np.zeros((N_KINDS, 8), dtype=bool)
COUNTED = np.full(8 * N_KINDS, 8)  # the column in theta's counts; 8 is not counted
for kind, (name, _) in enumerate(KINDS):
    for column in COLUMNS[name]:
        code = 8 * kind + column
        YIELD[code], *CHILDREN[code] = CHOICES[name, column]
        HAS_WORD_NODE[code] = name == "PP" or column == 6
        ALLOWED[kind, column] = True
        COUNTED[code] = column if len(COLUMNS[name]) > 1 else 8
IS = {name: np.array([other == name for other, _ in KINDS]) for name in ("NP", "VP")}
CODE = {word: i for i, word in enumerate(WORDS + OOV)}
NONE, CUT = -1, -2  # children that are not there: not in the grammar, or cut off by a cap


# ---- trees


class Trees:
    """The nodes of n trees, depth by depth; the first n are the roots.

    tree: whose node it is; code: its choice; links [.., 2]: its children (a node, NONE or CUT); row: of the network. They
    are lists of an array per depth while the trees grow, then arrays. rows: a depth's rows of the network, see choose.
    capped: nodes whose P or V is cut off; gone: nodes that a cap took back."""

    def __init__(self, sentence, choose):
        """A tree for each element of sentence, which is sorted and has all of 0 … its last.

        choose(row_parent, row_input, row_kind, row, kind) returns the columns that the nodes of the next depth choose.
        Its rows have a parent in the rows of the last depth, a row in the table of inputs (N_KINDS to a sentence) and a
        kind; row and kind are those of the nodes."""
        self.tree, self.code, self.links, self.row, self.rows, self.n_rows = [], [], [], [], [], []
        self.n, self.capped, self.gone = len(sentence), set(), set()
        tree, kind, row, n_nodes, n_rows = np.arange(self.n), np.zeros(self.n, dtype=np.int64), sentence, 0, 0
        row_parent = np.arange(sentence[-1] + 1)
        row_base, row_kind = row_parent * N_KINDS, np.zeros(len(row_parent), dtype=np.int64)
        for depth in range(MAX_DEPTH + 1):
            self.rows.append((row_parent, row_base + row_kind, row_kind))
            code = choose(*self.rows[-1], row, kind)
            code += kind << 3
            links = CHILDREN.take(code, 0)
            flat = links.ravel()
            slots = (flat >= 0).nonzero()[0]
            kind = flat.take(slots)
            n_nodes += len(code)
            flat[slots] = np.arange(n_nodes, n_nodes + len(slots)) if depth < MAX_DEPTH else CUT
            self.tree.append(tree)
            self.code.append(code)
            self.links.append(links)
            self.row.append(row + n_rows)
            self.n_rows.append(len(row_kind))
            n_rows += len(row_kind)
            if depth == MAX_DEPTH:
                self.capped.update(range(n_nodes - len(code), n_nodes))
            if depth == MAX_DEPTH or len(slots) == 0:
                break
            parent = slots >> 1
            tree = tree.take(parent)
            if 2 * (n_nodes + len(parent)) > MAX_NODES:  # with a P or V for each, the least that a full tree has
                keep = self.cut(n_nodes, tree)
                parent, kind, tree = parent[keep], kind[keep], tree[keep]
                if len(parent) == 0:
                    break
            # nodes with the same parent row and kind share a row
            key = (row.take(parent) << 3) + kind
            place = np.zeros(len(row_kind) << 3, dtype=np.int64)
            place[key] = 1
            keys = place.nonzero()[0]
            place[keys] = np.arange(len(keys))
            row, row_parent, row_kind = place.take(key), keys >> 3, keys & 7
            row_base = row_base.take(row_parent)
        self.tree, self.code, self.links, self.row = (np.concatenate(parts) for parts in (
            self.tree, self.code, self.links, self.row))
        self.alive = None
        if self.gone:
            self.alive = np.ones(n_nodes, dtype=bool)
            self.alive[list(self.gone)] = False

    def cut(self, n_nodes, waiting):
        """Makes leaves of what comes in pre-order after a tree's first MAX_NODES expanded nodes, P and V included.

        There are n_nodes nodes so far, then those that wait to choose, of the trees `waiting`. Returns which of these
        stay; they are renumbered. Nodes found later only push others back, so what is cut here is cut for good."""
        code, tree, links = (np.concatenate(parts) for parts in (self.code, self.tree, self.links))
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
                node, parent, side = stack.pop()
                if n == MAX_NODES:
                    if side is None:
                        self.capped.add(parent)
                    else:
                        links[parent, side] = CUT
                    continue
                n += 1
                if node >= n_nodes:
                    keep[node - n_nodes] = True
                elif node >= 0:  # else a P or V
                    self.gone.discard(node)
                    stack += [(links[node, side], node, side) for side in (1, 0) if links[node, side] >= 0]
                    if HAS_WORD_NODE[code[node]]:
                        stack.append((NONE, node, None))
        new = links >= n_nodes
        links[new] = np.where(keep, n_nodes + keep.cumsum() - 1, CUT)[links[new] - n_nodes]
        self.links = np.split(links, np.cumsum([len(part) for part in self.code])[:-1])
        return keep

    def yields(self):
        words = [""] * len(self.code) + [OOV, ""]  # at the end those of CUT and NONE
        own = [YIELD[code] for code in self.code.tolist()]
        for node in self.capped:
            own[node] = OOV if HAS_WORD_NODE[self.code[node]] else own[node]
        node = len(own)
        for first, second in self.links[::-1].tolist():
            node -= 1
            words[node] = own[node] + words[first] + words[second]
        return words[:self.n]

    def counts(self):
        """[n, 8]: how often a tree has a choice of NP or VP."""
        return np.bincount(9 * self.tree + COUNTED.take(self.code), self.alive, 9 * self.n).reshape(-1, 9)[:, :8]

    def weighted(self, index, weights, n):
        """Sums of a weight per node by index."""
        return np.bincount(index, weights if self.alive is None else weights * self.alive, n)


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

    def choose(row_parent, row_input, row_kind, row, kind):
        return (rng.random((len(kind), 1)) < above.take(kind, 0)).sum(1)
    return Trees(np.arange(n), choose)


# ---- the network


def shapes():
    """Matrices are [in, out]. Gates in the order reset, update, new; b with the inputs, c with the state. NP's and VP's
    proposals are side by side in the first layer."""
    return {"theta": (8,), "word.W": (6, 3 * H), "word.U": (H, 3 * H), "word.b": (3 * H,), "word.c": (3 * H,),
            "core.W": (H + 12, 3 * H), "core.U": (H, 3 * H), "core.b": (3 * H,), "core.c": (3 * H,),
            "W1": (H, 100), "b1": (100,), "W2.NP": (50, 25), "W2.VP": (50, 25), "b2": (50,),
            "W3.NP": (25, 6), "W3.VP": (25, 2), "b3": (8,)}


def initialise(p):
    for name, tensor in p.items():
        bound = {"W2": 50, "b2": 50, "W3": 25, "b3": 25}.get(name[:2], 100) ** -0.5
        tensor.uniform_(-bound, bound)
    p["theta"].normal_()


def cell(ru, new, h, U_ru, U_n, c):
    """A step of a GRU. ru, new: the inputs' share of the gates, with both biases but c, new's second; ru is overwritten.
    Returns the two gates, U_n h + c, the new part, the state."""
    r, u = ru.addmm_(h, U_ru).sigmoid_().chunk(2, 1)
    gh = torch.addmm(c, h, U_n)
    new = torch.addcmul(new, r, gh).tanh_()
    return ru, gh, new, torch.lerp(new, h, u)


def factors(h, ru, gh, new):
    """For all steps at once: what to multiply the gradient of the state with to get those of the gates, of U's products
    [n, 300], and that of the inputs' share of new."""
    r, u = ru.chunk(2, 1)
    keep, inner = 1 - u, torch.mul(new, new)
    inner = torch.sub(1, inner, out=inner).mul_(keep)
    factor = h.new_empty(len(h), 3, H)
    torch.mul(inner, r, out=factor[:, 2])
    torch.mul(factor[:, 2], 1 - r, out=factor[:, 0]).mul_(gh)
    torch.sub(h, new, out=factor[:, 1]).mul_(u).mul_(keep)
    return factor, inner


class Guide:
    """q for the trees of some sentences; `run` draws or scores, `backward` fills the gradient."""

    def __init__(self, p, g):
        self.p, self.g = p, g
        dtype = p["W1"].dtype
        self.W2, self.W3 = torch.zeros(100, 50, dtype=dtype), torch.zeros(50, 8, dtype=dtype)
        self.mask = torch.where(torch.from_numpy(ALLOWED), 0.0, -1e4).to(dtype)
        # which columns of core.W, after those of the sentence, are a kind's input
        self.inputs = torch.zeros(N_KINDS, 12, dtype=dtype)
        for kind, (name, production) in enumerate(KINDS):
            self.inputs[kind, 6 + NONTERMINALS.index(name)] = 1
            if production is not None:
                self.inputs[kind, production] = 1
        self.no_word = torch.zeros(1, 3 * H, dtype=dtype)
        self.refresh()

    def refresh(self):
        """After a step of the parameters."""
        p = self.p
        self.W2[:50, :25], self.W2[50:, 25:] = p["W2.NP"], p["W2.VP"]
        self.W3[:25, :6], self.W3[25:, 6:] = p["W3.NP"], p["W3.VP"]
        self.bias = self.mask + p["b3"]
        # gates' matrices for the way down, and transposed for the way back: products with few rows are mostly packing
        self.cells, bias = {}, {}
        for name in ("word", "core"):
            U, c, bias[name] = p[name + ".U"], p[name + ".c"], p[name + ".b"].clone()
            bias[name][:2 * H] += c[:2 * H]
            self.cells[name] = U[:, :2 * H], U[:, 2 * H:], c[2 * H:]
        self.U_t = {name: p[name + ".U"].t().contiguous() for name in self.cells}
        self.words = torch.cat([p["word.W"], self.no_word]).add_(bias["word"])  # the last is OOV's
        self.kinds = torch.addmm(bias["core"], self.inputs, p["core.W"][H:])

    def embed(self, sentences):
        """The inputs' table: of sentence and kind, ru and new."""
        length = np.array([len(s) for s in sentences])
        self.order = np.argsort(-length, kind="stable")
        longest = length[self.order[0]]
        codes = np.full((len(sentences), longest), -1)
        for i, s in enumerate(self.order):
            codes[i, :length[s]] = [CODE[word] for word in sentences[s]]
        codes = codes.T  # by step, then by falling length: a step's sentences are the first of those before
        self.word = torch.from_numpy(codes[codes >= 0])
        self.sizes = (codes >= 0).sum(1).tolist()
        inputs = self.words.index_select(0, self.word)
        h = inputs.new_zeros(len(sentences), H)
        steps, n = [], len(h)
        for ru, new in zip(inputs[:, :2 * H].contiguous().split(self.sizes), inputs[:, 2 * H:].split(self.sizes)):
            if len(ru) < n:
                n = len(ru)
                h = h[:n]
            steps.append((h, *cell(ru, new, h, *self.cells["word"])))
            h = steps[-1][-1]
        self.reading = steps
        last = np.cumsum([0] + self.sizes)[length - 1] + np.argsort(self.order)
        self.e = torch.cat([step[-1] for step in steps])[torch.from_numpy(last)]
        table = torch.mm(self.e, self.p["core.W"][:H]).unsqueeze(1) + self.kinds
        self.table = table[:, :, :2 * H].reshape(-1, 2 * H), table[:, :, 2 * H:].reshape(-1, H)

    def start(self):
        self.steps, self.parents, self.inputs_of, self.kinds_of = [], [], [], []
        self.h = self.e  # the states of the depth above; those above the roots are zero

    def descend(self, row_parent, row_input, row_kind):
        """The states of the rows of the next depth."""
        parent, index = torch.from_numpy(row_parent), torch.from_numpy(row_input)
        above = self.h.index_select(0, parent) if self.steps else self.e.new_zeros(len(parent), H)
        step = cell(self.table[0].index_select(0, index), self.table[1].index_select(0, index), above, *self.cells["core"])
        self.steps.append((above, *step))
        self.parents.append(parent)
        self.inputs_of.append(index)
        self.kinds_of.append(row_kind)
        self.h = step[-1]

    def propose(self, h, kind):
        p = self.p
        a1 = torch.addmm(p["b1"], h, p["W1"]).relu_()
        a2 = torch.addmm(p["b2"], a1, self.W2).relu_()
        return a1, a2, self.bias.index_select(0, torch.from_numpy(kind)).addmm_(a2, self.W3)

    def sample(self, sentences, K, gumbel):
        """K trees for each sentence, by sentence, and their log q."""
        self.embed(sentences)
        self.start()
        proposals = []

        def choose(row_parent, row_input, row_kind, row, kind):
            self.descend(row_parent, row_input, row_kind)
            proposals.append(self.propose(self.h, row_kind))
            return (proposals[-1][2].numpy().take(row, 0) + gumbel(len(row))).argmax(1)
        trees = Trees(np.arange(len(sentences)).repeat(K), choose)
        self.proposals = [torch.cat(parts) for parts in zip(*proposals)]
        return trees, self.log_q(trees)

    def score(self, sentences, trees):
        """log q of trees, one for each sentence."""
        self.embed(sentences)
        self.start()
        for rows in trees.rows:
            self.descend(*rows)
        self.proposals = self.propose(torch.cat([step[-1] for step in self.steps]), np.concatenate(self.kinds_of))
        return self.log_q(trees)

    def log_q(self, trees):
        self.log = torch.log_softmax(self.proposals[2], 1)
        self.chosen = 8 * trees.row + (trees.code & 7)
        return trees.weighted(trees.tree, self.log.numpy().ravel().take(self.chosen), trees.n)

    def backward(self, trees, c):
        """The gradient of sum_i c_i log q(tree_i)."""
        p, g = self.p, self.g
        a1, a2, _ = self.proposals
        # the core's rows, then the sentences'
        above, ru, gh, new, h = (torch.cat(parts) for parts in zip(*self.steps, *self.reading))
        factor, inner = factors(above, ru, gh, new)
        n, u = len(self.log), ru[:, H:]
        # logits: the coefficients of a row's nodes, by column, less their sum times the probabilities
        d3 = torch.from_numpy(trees.weighted(self.chosen, c.take(trees.tree), 8 * n).reshape(n, 8)).to(h.dtype)
        d3.addcmul_(self.log.exp(), d3.sum(1, keepdim=True), value=-1)
        d = h.new_zeros(n, H)
        kinds = np.concatenate(self.kinds_of)
        for name, i, columns in (("NP", 0, slice(0, 6)), ("VP", 1, slice(6, 8))):
            rows = torch.from_numpy(IS[name].take(kinds).nonzero()[0])
            half, quarter = slice(50 * i, 50 * i + 50), slice(25 * i, 25 * i + 25)
            dz, x1, x2 = (t.index_select(0, rows) for t in (d3[:, columns], a1[:, half], a2[:, quarter]))
            torch.mm(x2.t(), dz, out=g["W3." + name])
            torch.sum(dz, 0, out=g["b3"][columns])
            dz = torch.mm(dz, p["W3." + name].t()).mul_(x2.sign())
            torch.mm(x1.t(), dz, out=g["W2." + name])
            torch.sum(dz, 0, out=g["b2"][quarter])
            dz = torch.mm(dz, p["W2." + name].t()).mul_(x1.sign_())
            torch.mm(h.index_select(0, rows).t(), dz, out=g["W1"][:, half])
            torch.sum(dz, 0, out=g["b1"][half])
            d.index_copy_(0, rows, torch.mm(dz, p["W1"][:, half].t()))
        # the core, from the leaves up
        U_t, n_rows = self.U_t["core"], trees.n_rows
        ds, fs, us = d.split(n_rows), factor[:n].split(n_rows), u[:n].split(n_rows)
        for i in range(len(n_rows) - 1, 0, -1):
            below = torch.mul(fs[i], ds[i].unsqueeze(1)).view(-1, 3 * H)
            ds[i - 1].index_add_(0, self.parents[i], torch.mul(ds[i], us[i]).addmm_(below, U_t))
        dg = self.cell_gradients("core", d, factor[:n], inner[:n], above[:n])
        table = dg.new_zeros(len(self.table[0]), 3 * H).index_add_(0, torch.cat(self.inputs_of), dg)
        table = table.view(-1, N_KINDS, 3 * H)
        by_sentence, by_kind = table.sum(1), table.sum(0)
        torch.mm(self.e.t(), by_sentence, out=g["core.W"][:H])
        torch.mm(self.inputs.t(), by_kind, out=g["core.W"][H:])
        torch.sum(by_kind, 0, out=g["core.b"])
        # the sentences, from the last word
        d_last = torch.mm(by_sentence, p["core.W"][:H].t())[torch.from_numpy(self.order)]
        U_t, d, ds = self.U_t["word"], d_last[:0], []
        for f, keep in zip(reversed(factor[n:].split(self.sizes)), reversed(u[n:].split(self.sizes))):
            if len(d) < len(f):
                d = torch.cat([d, d_last[len(d):len(f)]])
            ds.append(d)
            d = torch.mul(d, keep).addmm_(torch.mul(f, d.unsqueeze(1)).view(-1, 3 * H), U_t)
        dg = self.cell_gradients("word", torch.cat(ds[::-1]), factor[n:], inner[n:], above[n:])
        by_word = dg.new_zeros(7, 3 * H).index_add_(0, self.word, dg)
        g["word.W"].copy_(by_word[:6])
        torch.sum(by_word, 0, out=g["word.b"])

    def cell_gradients(self, name, d, factor, inner, above):
        """Those of U and c from those of the states; returns those of the inputs' share."""
        dg = torch.mul(factor, d.unsqueeze(1)).view(-1, 3 * H)
        torch.mm(above.t(), dg, out=self.g[name + ".U"])
        torch.sum(dg, 0, out=self.g[name + ".c"])
        torch.mul(d, inner, out=dg[:, 2 * H:])
        return dg


# ---- training


class Trainer:
    def __init__(self, team, args):
        self.team, self.args, self.coefficients = team, args, common.coefficients
        self.B = args.batch // team.size + (team.rank < args.batch % team.size)
        self.true = TRUE.copy()
        if args.recursion is not None:
            self.true[:6] *= np.array([args.recursion] + [1 - args.recursion] * 5) / np.array([0.4] + [0.6] * 5)
        self.p, self.g = common.views(team.P, shapes()), common.views(team.G, shapes())
        if team.rank == 0:
            torch.manual_seed(args.seed)
            initialise(self.p)
            if args.recursion is not None:
                self.p["theta"].copy_(torch.from_numpy(self.true).log())
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
            self.data = sample_prior(100 * self.B, self.true, self.rng).yields()
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


def nested(trees, node):
    """(non-terminal, production, children): children are words, the same again, or (non-terminal, None, [])."""
    name, column = KINDS[trees.code[node] >> 3][0], trees.code[node] & 7
    assert column in COLUMNS[name]
    production = column - 6 if name == "VP" else column
    rule = {"S": [["NP", "VP"]], "PP": [["P", "NP"]], "VP": [["V", "NP"], ["VP", "PP"]],
            "NP": [["NP", "PP"]] + [[word] for word in "aesrt"]}[name][production]
    children = []
    for symbol, link in zip(rule, trees.links[node]):
        if symbol in WORDS:
            children.append(symbol)
        elif symbol in "PV":
            children.append((symbol, None, []) if node in trees.capped else (symbol, 0, ["w" if symbol == "P" else "s"]))
        elif link == CUT:
            children.append((symbol, None, []))
        else:
            assert KINDS[trees.code[link] >> 3] == (symbol, production)
            children.append(nested(trees, link))
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
        gi, gh = x @ p[name + ".W"] + p[name + ".b"], h @ p[name + ".U"] + p[name + ".c"]
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
            a = torch.relu(h @ p["W1"][:, 50 * i:50 * i + 50] + p["b1"][50 * i:50 * i + 50])
            a = torch.relu(a @ p["W2." + name] + p["b2"][25 * i:25 * i + 25])
            out = torch.log_softmax(a @ p["W3." + name] + p["b3"][6 * i:6 + 2 * i], 0)[production]
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
    common.check_team()
    torch.set_default_dtype(torch.float64)
    assert common.size(shapes()) == 8 + 109458
    n_check = common.size(shapes())
    for args.method, args.particles, caps in (("ww", 1, (30, 2000)), ("ww", 6, (30, 2000)), ("ww", 6, (4, 2000)),
                                              ("ww", 6, (30, 12)), ("vimco", 2, (30, 2000)), ("vimco", 6, (30, 2000)),
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
              (args.method, K, caps, error, worst, errors[worst], sum(trees.n_rows), len(trees.code),
               (trees.links == CUT).sum()))
        assert error < 1e-9 and errors[worst] < 1e-9, errors
    # draws: shares of NP -> NP PP, in units of their deviation
    MAX_DEPTH, MAX_NODES = 30, 2000
    trees, _ = trainer.guide.sample(["asrwt"], 2000, trainer.gumbel)
    q, here = trainer.guide.log.exp().numpy()[trees.row], COUNTED[trees.code] < 6
    z = ((trees.code[here] & 7) == 0).sum() - q[here, 0].sum()
    assert abs(z) < 5 * math.sqrt((q[here, 0] * (1 - q[here, 0])).sum()), z
    trees = sample_prior(5000, TRUE, trainer.rng)
    assert abs(np.mean([len(y) for y in trees.yields()]) - 13.2) < 1.5
    shares = trees.counts().sum(0)
    assert np.abs(shares[:6] / shares[:6].sum() - TRUE[:6]).max() < 0.01


if __name__ == "__main__":
    parser = common.options(__doc__, ["ww", "ws", "vimco", "reinforce"], batch=2, particles=20, iterations=260)
    parser.add_argument("--recursion", type=float, metavar="P", help="the true probability of NP -> NP PP instead of 0.4; "
                        "theta starts there, too")
    args = parser.parse_args()
    trainer = lambda team: Trainer(team, args)
    with torch.no_grad() if not args.check else torch.enable_grad():
        check(args) if args.check else common.measure(args, common.size(shapes()), trainer, even=False)
