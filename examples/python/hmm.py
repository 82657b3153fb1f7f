"""A hidden Markov model on sequences of different length.

    python hmm.py [ITERATIONS]

The guide reads a sequence with a GRU and proposes the states one after the other. `z` stays a value: no path branches on it,
so that all particles of sequences of one length are computed together.
"""

import sys
from typing import Any, Optional

import numpy as np

import rws

STATES, LONGEST, HIDDEN = 3, 8, 16


class Hmm(rws.Model):
    """A hidden Markov model with normal observations."""

    defaults = dict(batch=50, particles=10, iterations=2000, shards=1, lr="1e-2")

    def setup(self, s: rws.Setup) -> None:
        s.field("n", 1)  # the length less one: observed, since every datum has it
        s.series("y", 1)
        self.lengths = s.param("theta.lengths", LONGEST)
        self.first = s.param("theta.first", STATES)
        self.next = s.param("theta.next", (STATES, STATES))
        self.mean = s.param("theta.mean", STATES, init=[-1, 0, 1])
        self.cell = s.gru("phi.cell", 1, HIDDEN)
        self.out = s.linear("phi.out", HIDDEN + STATES, STATES)

    def guide(self, p: rws.Path) -> None:
        h = p.constant(np.zeros(HIDDEN, np.float32))
        z: Optional[rws.Value] = None
        for t in range(p.length("y")):
            h = self.cell(p.item("y", t), h)
            before = p.constant(np.zeros(STATES, np.float32)) if z is None else rws.onehot(z, STATES)
            z = p.categorical("z", self.out([h, before]))

    def model(self, p: rws.Path) -> None:
        z: Optional[rws.Value] = None
        for _ in range(p.choose("n", self.lengths) + 1):
            z = p.categorical("z", self.first if z is None else rws.row(self.next, z))
            p.normal("y", rws.pick(self.mean, z), 0.5)

    def exact(self, y: list[float]) -> float:
        """log p(y) of the states summed out, by the forward algorithm, in numpy."""
        def log_softmax(a: np.ndarray) -> np.ndarray:
            return np.asarray(a - np.log(np.exp(a).sum(axis=-1, keepdims=True)))

        first, step = (log_softmax(a.values.astype(float)) for a in (self.first, self.next))
        emit = -0.5 * ((np.asarray(y)[:, None] - self.mean.values[0]) / 0.5) ** 2 - np.log(0.5 * np.sqrt(2 * np.pi))
        a = first[0] + emit[0]
        for e in emit[1:]:
            a = np.log(np.exp(a[:, None] + step).sum(axis=0)) + e
        return float(np.log(np.exp(a).sum()) + log_softmax(self.lengths.values.astype(float))[0, len(y) - 1])


def data(n: int, seed: int = 0) -> dict[str, Any]:
    r = np.random.default_rng(seed)
    step = np.array([[0.8, 0.15, 0.05], [0.1, 0.8, 0.1], [0.05, 0.15, 0.8]])
    y, lengths = [], r.integers(1, LONGEST + 1, size=n)
    for length in lengths:
        z = [int(r.integers(STATES))]
        while len(z) < length:
            z.append(r.choice(STATES, p=step[z[-1]]))
        y.append((2.0 * (np.array(z) - 1) + 0.5 * r.normal(size=length)).astype(np.float32))
    return {"n": (lengths - 1).astype(np.float32), "y": y}


if __name__ == "__main__":
    run = rws.train(Hmm(), data=data(2000), method="ww", iterations=int((sys.argv + ["2000"])[1]), seed=1)
    print("means:", run.state_dict()["theta.mean"])
    answers = run.infer(n=2, y=[-2.1, -1.8, 2.2])
    print("states behind -2.1, -1.8, 2.2:", next(iter(answers.marginal("z"))), " ess", round(answers.ess, 3))
