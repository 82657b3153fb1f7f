"""Programs that are no functions of their choices."""

import random
import time

import numpy as np

from toys import Mixture


class CountOnSelf(Mixture):
    """An integer on self, across choices."""

    def guide(self, p):
        self.n = 0
        for _ in range(4):
            coin = p.flip("coin", 0.5 * self.n)
            self.n += coin
        super().guide(p)

    def model(self, p):
        n = sum(p.flip("coin", 0.0) for _ in range(4))
        z = p.categorical("z", self.prior)
        p.normal("x", 4 * z + n, 1)


class NodesOnSelf(Mixture):
    """A counter of nodes on self names the sites."""

    def guide(self, p):
        self.node = 0
        for i in range(3):
            coin = p.flip(f"coin{self.node}", 0.1 * i)
            self.node += 1 if coin else 4
        super().guide(p)

    def model(self, p):
        node = 0
        for i in range(3):
            node += 1 if p.flip(f"coin{node}", 0.0) else 4
        super().model(p)


class NumpyRandom(Mixture):
    def model(self, p):
        z = p.categorical("z", self.prior)
        p.normal("x", 4 * z + np.random.normal(), 1)


class RandomModule(Mixture):
    def guide(self, p):
        p.categorical("z", [random.random(), 0.0, 0.0])


class Clock(Mixture):
    def model(self, p):
        z = p.categorical("z", self.prior)
        p.normal("x", 4 * z + time.perf_counter_ns() % 1000 / 100, 1)


class Executions(Mixture):
    """An attribute that counts executions."""

    n = 0

    def model(self, p):
        self.n += 1
        z = p.categorical("z", self.prior)
        p.normal("x", 4 * z + 0.01 * self.n, 1)


class LoopOverSet(Mixture):
    def model(self, p):
        for name in {"red", "green", "blue"}:
            p.report(name, p.constant(len(name)))
        super().model(p)


#: model, kind, severity, about, a part of the text; and whether training refuses it.
PLANTED = [
    (CountOnSelf, "state", "mistake", "coin", "local variable", True),
    (NodesOnSelf, "state", "mistake", None, "they fail", True),
    (NumpyRandom, "random", "mistake", "x", "numpy.random", True),
    (RandomModule, "random", "mistake", "z", "elsewhere", True),
    (Clock, "random", "mistake", "x", "clock", True),
    (Executions, "random", "mistake", "x", "lasts", True),
    (LoopOverSet, "random", "warning", None, "sorted", False),
]
