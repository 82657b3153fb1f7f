"""The Gaussian mixture of section 4.3 of the paper: z ~ softmax(theta), x ~ N(10 z, 5^2). Only the mixture is learned.

    python mixture.py [ITERATIONS]

It is the model "gmm" that is built in, with the same numbers to the last bit.
"""

import sys

import numpy as np

import rws

C, SPACING, SD = 20, 10, 5
TRUTH = (np.arange(C) + 5) / (np.arange(C) + 5).sum()
CUMULATIVE = np.cumsum(TRUTH.astype(np.float32), dtype=np.float32)


class Mixture(rws.Model):
    """A Gaussian mixture: only the weights of its components are learned."""

    defaults = dict(batch=100, particles=20, iterations=10000, eval_every=1000, shards=1)

    def setup(self, s: rws.Setup) -> None:
        s.field("x", 1)
        self.theta = s.param("theta", C, init=np.arange(C - 1, -1, -1))  # p(z) falls like e^-z
        self.net = s.mlp("phi.mlp", [1, 16, C])

    def guide(self, p: rws.Path) -> None:
        p.categorical("z", self.net(p.observed("x")))

    def model(self, p: rws.Path) -> None:
        z = p.categorical("z", self.theta)
        p.normal("x", SPACING * z, SD)

    @rws.metric
    def p_error(self, e: rws.Evaluation) -> float:
        """Distance between p(z) and the true mixture (L2)."""
        p = np.exp(self.theta.values[0].astype(float))
        return float(np.sqrt(((p / p.sum() - TRUTH) ** 2).sum()))


class FreshMixture(Mixture):
    """The same with fresh data in every iteration, drawn from the library's stream like those of "gmm"."""

    def data(self, split: str, first: int, n: int, random: rws.Random) -> dict[str, np.ndarray]:
        x = random.normals(n)
        for i in range(0, n, 256):
            u = random.uniforms(len(x[i:i + 256]))
            z = (u[:, None] >= CUMULATIVE[:C - 1]).sum(axis=1)
            x[i:i + 256] = SD * x[i:i + 256].astype(float) + SPACING * z  # rounded once, as the processor does it
        return {"x": x}


def data(n: int, seed: int = 0) -> np.ndarray:
    r = np.random.default_rng(seed)
    return (SPACING * r.choice(C, size=n, p=TRUTH) + SD * r.normal(size=n)).astype(np.float32)


if __name__ == "__main__":
    run = rws.train(Mixture(), data={"x": data(50000)}, method="ww", iterations=int((sys.argv + ["10000"])[1]))
    print(run.evaluate())
    print("z behind x = 95:", {int(z): round(q, 3) for z, q in run.infer(x=95).marginal("z").items() if q > 0.001})
