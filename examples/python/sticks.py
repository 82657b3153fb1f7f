"""A mixture by breaking a stick, truncated: as many clusters as the data need, at most twelve. dp.py has no bound.

    python sticks.py [ITERATIONS]

A datum walks along the stick and stops at a piece with probability v_k; the cluster of that piece made it. Each particle stops
where it stops, and Python's own `while` follows it. The prior of the pieces, v_k ~ Beta(1, ALPHA), is a factor: the pieces
are learned as the most probable ones.
"""

import sys

import numpy as np

import rws

MOST, ALPHA, N = 12, 1.5, 2000


class Sticks(rws.Model):
    """A mixture of normals whose weights are pieces of a stick."""

    defaults = dict(batch=100, particles=10, iterations=3000, shards=1, lr="1e-2")

    def setup(self, s: rws.Setup) -> None:
        s.field("x", 1)
        self.v = s.param("theta.v", MOST, init=np.full(MOST, -0.5))
        self.mean = s.param("theta.mean", MOST, init=np.linspace(-8, 8, MOST))
        self.cell = s.gru("phi.cell", 1, 16)
        self.out = s.linear("phi.out", 16, 1)

    def guide(self, p: rws.Path) -> None:
        h, k = p.constant(np.zeros(16, np.float32)), 0
        x = p.observed("x") * 0.2
        while k < MOST - 1:
            h = self.cell(x, h)
            if p.flip("here", self.out(h)):
                break
            k += 1

    def model(self, p: rws.Path) -> None:
        # log Beta(v; 1, ALPHA) = log ALPHA + (ALPHA - 1) log(1 - v), for one of N data
        p.factor("pieces", rws.sum(rws.log_sigmoid(-self.v)) * ((ALPHA - 1) / N), in_prior=True)
        k = 0
        while k < MOST - 1 and not p.flip("here", self.v[k]):
            k += 1
        p.report("cluster", k)
        p.normal("x", self.mean[k], 0.7)


def data(n: int = N, seed: int = 0) -> np.ndarray:
    r = np.random.default_rng(seed)
    return (np.array([-6.0, -1.0, 2.0, 7.0])[r.choice(4, size=n, p=[0.4, 0.3, 0.2, 0.1])] + 0.7 * r.normal(size=n)).astype(np.float32)


if __name__ == "__main__":
    run = rws.train(Sticks(), data={"x": data()}, method="ww", iterations=int((sys.argv + ["3000"])[1]), seed=1)
    v = 1 / (1 + np.exp(-run.state_dict()["theta.v"]))
    weights = v * np.concatenate([[1], np.cumprod(1 - v)[:-1]])
    for w, m in sorted(zip(weights, run.state_dict()["theta.mean"]), reverse=True)[:5]:
        print(f"weight {w:.2f}  mean {m:+.2f}")
    print(run.infer(x=6.5))
