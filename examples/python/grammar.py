"""A probabilistic grammar, learned from sentences together with a parser: section 4.1 of the paper, in plain Python.

    python grammar.py [ITERATIONS]

The rules are known, their probabilities are not. The model derives a tree from the start symbol and says the words at its
leaves; the likelihood of a sentence falls with its edit distance to those words. The guide reads the sentence with a GRU and
derives a tree too, with a second GRU that runs from parent to child. Particles with different trees take different paths
through this code, and their networks still run in the same matrix products.
"""

from __future__ import annotations

import sys
from typing import Callable, Iterable, Optional

import numpy as np

import rws
from rws import log_softmax, onehot

RULES = {  # "astronomers saw stars with ears": Manning and Schuetze, table 11.2
    "S": [("NP VP", 1.0)],
    "NP": [("NP PP", 0.4), ("astronomers", 0.1), ("ears", 0.18), ("saw", 0.04), ("stars", 0.18), ("telescopes", 0.1)],
    "VP": [("V NP", 0.7), ("VP PP", 0.3)],
    "PP": [("P NP", 1.0)],
    "P": [("with", 1.0)],
    "V": [("saw", 1.0)],
}
START, HIDDEN, MAX_DEPTH, MAX_NODES, UNKNOWN = "S", 100, 30, 2000, -1

SYMBOLS = sorted(RULES)
RIGHT = {a: [right.split() for right, _ in rules] for a, rules in RULES.items()}
WORDS = sorted({s for rules in RIGHT.values() for right in rules for s in right if s not in RULES})
MOST_RULES = max(len(r) for r in RIGHT.values())
PLACES = max(right.count(a) for rules in RIGHT.values() for right in rules for a in SYMBOLS) or 1
ROOM = 1 + MAX_NODES * max(1, max(len(right) for rules in RIGHT.values() for right in rules) - 1)


def leads_to_choice(a: str, seen: tuple[str, ...] = ()) -> bool:
    return len(RIGHT[a]) > 1 or any(leads_to_choice(b, (*seen, a)) for b in {s for r in RIGHT[a] for s in r}
                                    if b in RULES and b not in seen and b != a)


NO_WORD, NO_RULE, NO_STATE = (np.zeros(n, np.float32) for n in (len(WORDS), MOST_RULES, HIDDEN))
CHOICES = {a for a in SYMBOLS if len(RIGHT[a]) > 1}
DEEP = {a for a in SYMBOLS if leads_to_choice(a)}
NUMBER = {a: i for i, a in enumerate(SYMBOLS)}
TOKEN = {w: i for i, w in enumerate(WORDS)}


ADDRESS = {(a, i): NUMBER[a] + len(SYMBOLS) * i for a in SYMBOLS for i in range(PLACES)}
BELOW = {a: [[(s, right[:k].count(s)) for k, s in enumerate(right) if s in RULES] for right in RIGHT[a]] for a in SYMBOLS}


class Node:
    __slots__ = ("symbol", "place", "rule", "rule_above", "state", "children")

    def __init__(self, symbol: str, place: int, rule_above: Optional[int], state: Optional[rws.Value]) -> None:
        self.symbol = symbol
        self.place = place  # how many siblings to its left have the same symbol
        self.rule_above = rule_above
        self.state = state  # of the guide's core: the parent's, then its own
        self.rule: Optional[int] = None  # not expanded
        self.children: list[Node] = []

    def say(self, words: list[int]) -> None:
        if self.rule is None:
            words.append(UNKNOWN)
            return
        below = iter(self.children)
        for s in RIGHT[self.symbol][self.rule]:
            if s in RULES:
                next(below).say(words)
            else:
                words.append(TOKEN[s])

    def __str__(self) -> str:
        if self.rule is None:
            return f"({self.symbol})"
        below = iter(self.children)
        return f"({self.symbol} {' '.join(str(next(below)) if s in RULES else s for s in RIGHT[self.symbol][self.rule])})"


class Grammar(rws.Model):
    """A probabilistic grammar, with a parser."""

    defaults = dict(batch=2, particles=20, iterations=2000, eval_every=10, n_test=10, shards=1, impossible=True)

    def setup(self, s: rws.Setup) -> None:
        s.field("the sentence", 1 + ROOM)  # the number of words, then the words
        self.theta = {a: s.param(f"theta.{a}", len(RIGHT[a]), init=[s.random.normal() for _ in RIGHT[a]]) for a in SYMBOLS}
        self.encoder = s.gru("phi.encoder", len(WORDS), HIDDEN)
        self.core = s.gru("phi.core", HIDDEN + MOST_RULES + len(SYMBOLS) * PLACES, HIDDEN)
        self.proposal = {a: s.mlp(f"phi.proposal.{a}", [HIDDEN, 50, 25, len(RIGHT[a])], "relu") for a in SYMBOLS}
        for a in SYMBOLS:
            if a not in CHOICES:  # one rule is certain, and neither is used
                s.unused(f"theta.{a}")
                s.unused(f"phi.proposal.{a}")

    def derive(self, p: rws.Path, propose: Callable[[Node], Optional[rws.Value]]) -> Node:
        """A tree, depth by depth; propose(node) is the log-probabilities of its productions."""
        root = Node(START, 0, None, None)
        now, depth, n_expanded = [root], 0, 0
        while now:
            if depth > MAX_DEPTH:
                break
            now = now[:MAX_NODES - n_expanded]
            n_expanded += len(now)
            below, log_p, awaited = [], [], []
            for node in now:
                logits = propose(node) if node.symbol in DEEP else None
                log_p.append(logits)
                if logits is not None:
                    awaited.append(logits)
            p.wait(awaited)
            for node, logits in zip(now, log_p):
                symbol, rule = node.symbol, 0
                if logits is not None:
                    rule = p.choose(symbol, logits)
                node.rule = rule
                for s, place in BELOW[symbol][rule]:
                    child = Node(s, place, rule, node.state)
                    node.children.append(child)
                    below.append(child)
            now = below
            depth += 1
        return root

    def model(self, p: rws.Path) -> None:
        def propose(node: Node) -> Optional[rws.Value]:
            return log_softmax(self.theta[node.symbol]) if node.symbol in CHOICES else None

        tree = self.derive(p, propose)
        words: list[int] = []
        tree.say(words)
        if p.reports:
            p.report("sentence", " ".join("?" if t == UNKNOWN else WORDS[t] for t in words))
            p.report("tree", str(tree))
        p.simulate("the sentence", [len(words), *words], "edit")

    def guide(self, p: rws.Path) -> None:
        no_word, no_rule, no_state = p.constant(NO_WORD), p.constant(NO_RULE), p.constant(NO_STATE)
        e = no_state
        core = self.core
        x = p.look(p.observed("the sentence"))
        for t in x[1:1 + int(x[0])]:
            e = self.encoder(no_word if t == UNKNOWN else onehot(t, len(WORDS)), e)

        def propose(node: Node) -> Optional[rws.Value]:
            symbol, above = node.symbol, node.rule_above
            rule = no_rule if above is None else onehot(above, MOST_RULES)
            where = onehot(ADDRESS[symbol, node.place], len(SYMBOLS) * PLACES)
            node.state = core([e, rule, where], no_state if above is None else node.state)
            return log_softmax(self.proposal[symbol](node.state)) if symbol in CHOICES else None

        self.derive(p, propose)

    def read(self, text: str) -> np.ndarray:
        return datum([TOKEN.get(w, UNKNOWN) for w in text.split()])


def datum(tokens: list[int]) -> np.ndarray:
    x = np.zeros(1 + ROOM, np.float32)
    x[0], x[1:1 + len(tokens)] = len(tokens), tokens
    return x


def sentence(random: np.random.Generator, symbol: str = START) -> list[str]:
    """A sentence of the grammar with its true probabilities."""
    rules = RULES[symbol]
    right = rules[random.choice(len(rules), p=[q for _, q in rules])][0].split()
    return [w for s in right for w in (sentence(random, s) if s in RULES else [s])]


def sentences(n: int, seed: int = 0, longest: int = 20) -> list[list[str]]:
    random = np.random.default_rng(seed)
    found: list[list[str]] = []
    while len(found) < n:
        s = sentence(random)
        if len(s) <= longest:
            found.append(s)
    return found


def data(texts: Iterable[list[str]]) -> np.ndarray:
    return np.stack([datum([TOKEN[w] for w in s]) for s in texts])


if __name__ == "__main__":
    iterations = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    run = rws.train(Grammar(), data={"the sentence": data(sentences(1000))}, method="ww", iterations=iterations,
                    eval_every=max(1, iterations // 10), seed=1)
    print("NP rules:", np.exp(t := run.state_dict()["theta.NP"]) / np.exp(t).sum())
    print(run.infer("astronomers saw stars with ears", particles=1000))
