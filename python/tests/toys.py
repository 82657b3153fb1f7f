"""Small models that the tests share."""

import numpy as np

import rws


class Mixture(rws.Model):
    """Three clusters on a line."""

    def setup(self, s):
        self.prior = s.param("theta.prior", 3)
        self.net = s.mlp("phi.net", [1, 16, 3])

    def guide(self, p):
        p.categorical("z", self.net(p.observed("x")))

    def model(self, p):
        z = p.categorical("z", self.prior)
        p.report("z", z)
        p.normal("x", 4 * z, 1)


class Steps(rws.Model):
    """Branches, a loop and recursion: a walk that ends by chance, seen with noise."""

    def setup(self, s):
        self.stop = s.param("theta.stop", 1)
        self.cell = s.gru("phi.cell", 2, 8)
        self.out = s.linear("phi.out", 8, 1)
        s.field("x", 1)

    def walk(self, p, logit, depth=0):
        if depth == 6 or p.flip("end", logit(depth)):
            return depth
        return self.walk(p, logit, depth + 1)

    def guide(self, p):
        x = p.observed("x")
        h = [p.constant(np.zeros(8))]

        def logit(depth):
            h[0] = self.cell([x, float(depth)], h[0])
            return self.out(h[0])

        self.walk(p, logit)

    def model(self, p):
        n = self.walk(p, lambda depth: self.stop)
        p.report("n", n)
        p.normal("x", n, 0.5)


def clusters(n=300, seed=0):
    r = np.random.default_rng(seed)
    return (4 * r.choice(3, size=n, p=[0.2, 0.3, 0.5]) + r.normal(size=n)).astype(np.float32)


def walks(n=300, seed=0):
    r = np.random.default_rng(seed)
    return (np.minimum(r.geometric(0.4, size=n) - 1, 6) + 0.5 * r.normal(size=n)).astype(np.float32)
