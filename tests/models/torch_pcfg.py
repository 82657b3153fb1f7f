"""torch_pcfg.py PROGRAM GRAMMARS - the guide of a grammar, rebuilt in PyTorch, gives every tree the same probability.

Trains a grammar for a moment, loads the checkpoint into GRU cells and MLPs by load_state_dict, and asks the program about
a sentence. Particles that proposed the same tree z have one weight w = p(z, x) / q(z | x), and `rws infer --json` tells
it: posterior / guide * exp(log_evidence). p follows from theta and from the distance of two sentences; what is left is
log q, a sum over the nodes of z, each of which the module gives the probabilities of its rules.

GRAMMARS is the folder of the grammar files. Exit status 77 (skipped) where PyTorch is missing.
"""
import json, math, subprocess, sys, tempfile

sys.dont_write_bytecode = True
from torch_gmm import load, torch

HIDDEN = 100


class Grammar:
    """Names are sorted; the rules of a symbol stand as they are written (grammar.h)."""

    def __init__(self, path):
        self.rules, left = {}, None
        for line in open(path):
            tokens = line.split("#")[0].split()
            if not tokens:
                continue
            if tokens[0] == "start":
                self.start = tokens[1]
                continue
            if tokens[0] == "|":
                tokens = tokens[1:]
            else:
                left, tokens = tokens[0], tokens[2:]
            for alternative in " ".join(tokens).split(" | "):
                self.rules.setdefault(left, []).append(alternative.split()[:-1])  # without the probability
        self.symbols = sorted(self.rules)
        self.words = sorted({s for rules in self.rules.values() for rule in rules for s in rule} - set(self.symbols))
        self.most = max(map(len, self.rules.values()))
        self.places = max(rule.count(s) for rules in self.rules.values() for rule in rules for s in self.symbols)
        self.deep = {a for a in self.rules if len(self.rules[a]) > 1}  # something is chosen here or below
        while True:
            more = {a for a in self.rules if any(s in self.deep for rule in self.rules[a] for s in rule)} - self.deep
            if not more:
                break
            self.deep |= more


def parse(text):
    """"(S (NP stars) …)" as (symbol, children), where a word is a child that is a string."""
    stack = [[]]
    for token in text.replace("(", " ( ").replace(")", " ) ").split():
        if token == "(":
            stack.append([])
        elif token == ")":
            symbol, *children = stack.pop()
            stack[-1].append((symbol, children))
        else:
            stack[-1].append(token)
    return stack[0][0]


def onehot(i, n):
    return torch.nn.functional.one_hot(torch.tensor(i), n).double()


class Guide(torch.nn.Module):
    def __init__(self, g):
        super().__init__()
        self.g = g
        self.theta = torch.nn.ParameterDict({a: torch.nn.Parameter(torch.zeros(len(r))) for a, r in g.rules.items()})
        mlp = lambda n: torch.nn.Sequential(torch.nn.Linear(HIDDEN, 50), torch.nn.ReLU(), torch.nn.Linear(50, 25),
                                            torch.nn.ReLU(), torch.nn.Linear(25, n))
        self.phi = torch.nn.ModuleDict({
            "encoder": torch.nn.GRUCell(len(g.words), HIDDEN),
            "core": torch.nn.GRUCell(HIDDEN + g.most + len(g.symbols) * g.places, HIDDEN),
            "proposal": torch.nn.ModuleDict({a: mlp(len(r)) for a, r in g.rules.items()})})

    def log_probabilities(self, sentence, tree, sequential):
        """log p(z) and log q(z | x): sums over the nodes where there is a choice."""
        g, h = self.g, torch.zeros(HIDDEN, dtype=torch.float64)
        for word in sentence:
            h = self.phi["encoder"](onehot(g.words.index(word), len(g.words)), h)
        nothing = (torch.zeros(HIDDEN, dtype=torch.float64), torch.zeros(g.most, dtype=torch.float64))
        total, last = [0.0, 0.0], nothing

        def visit(node, place, above):
            nonlocal last
            symbol, children = node
            right = [c if isinstance(c, str) else c[0] for c in children]
            rule, before = g.rules[symbol].index(right), last if sequential else above
            if symbol in g.deep:
                address = onehot(g.symbols.index(symbol) + len(g.symbols) * place, len(g.symbols) * g.places)
                state = self.phi["core"](torch.cat([h, before[1], address]), before[0])
                above = last = (state, onehot(rule, g.most))
                if len(g.rules[symbol]) > 1:
                    total[0] += torch.log_softmax(self.theta[symbol], 0)[rule].item()
                    total[1] += torch.log_softmax(self.phi["proposal"][symbol](state), 0)[rule].item()
            for i, child in enumerate(children):
                if not isinstance(child, str):
                    visit(child, right[:i].count(child[0]), above)

        visit(tree, 0, nothing)
        return total


def distance(a, b):
    """Of two sentences, in words (Levenshtein)."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        new = [i]
        for j, y in enumerate(b, 1):
            new.append(min(row[j] + 1, new[-1] + 1, row[j - 1] + (x != y)))
        row = new
    return row[-1]


def check(program, folder_of_grammars, grammar, core, sentence):
    def rws(*arguments):
        return subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout

    with tempfile.TemporaryDirectory() as folder:
        run = f"{folder}/run"
        rws("train", "pcfg", "--method=ws", "-k", "5", "-n", "100", "--eval-every=100", f"--set=grammar={grammar}",
            f"--set=pcfg_core={core}", "--set=nodes=300", f"--out={run}")
        answer = json.loads(rws("infer", run, sentence, "--json", "--top=0", "-k", "300", "--set=likelihood=relaxed"))
        weights = load(f"{run}/checkpoint.safetensors")

    model = Guide(Grammar(f"{folder_of_grammars}/{grammar}.pcfg"))
    model.load_state_dict({name: weights[name] for name in model.state_dict()})  # all names, all shapes
    model.double()
    worst, n, x = 0.0, 0, sentence.split()
    for tree in answer["answers"]:
        if tree["reports"]["truncated"] or not tree["posterior"]:
            continue  # not whole, or too improbable for a number
        log_w = math.log(tree["posterior"]) - math.log(tree["guide"]) + answer["log_evidence"]
        with torch.no_grad():
            log_p, log_q = model.log_probabilities(x, parse(tree["reports"]["tree"]), core == "sequential")
        told = log_p - distance(x, tree["reports"]["sentence"].split()) ** 2 - log_w
        worst, n = max(worst, abs(told - log_q) / max(1, abs(log_q))), n + 1
    print(f"{grammar}, {core}: {n} trees, the largest relative difference of log q is {worst:.2g}")
    return n >= 20 and worst <= 1e-5


if __name__ == "__main__":
    cases = (("astronomers", "tree", "astronomers saw stars with telescopes"),
             ("astronomers", "sequential", "stars saw ears"),
             ("garden", "tree", "the old gardener sees a cat and anna"))
    good = [check(sys.argv[1], sys.argv[2], *case) for case in cases]
    sys.exit(0 if all(good) else 1)
