"""Data that the model cannot have."""

import numpy as np

import rws


class Times(rws.Model):
    """Waiting times, one of which is below 0."""

    def setup(self, s):
        self.rate = s.param("theta.rate", 1)
        self.net = s.mlp("phi.net", [1, 4, 2])

    def guide(self, p):
        p.categorical("z", self.net(p.observed("x")))

    def model(self, p):
        z = p.categorical("z", [0.0, 0.0])
        p.gamma("x", 1 + z, rws.exp(self.rate))

    arrays = {"x": np.where(np.arange(200) == 17, -3, 0.5 + np.arange(200) / 100)}


class Pixels(rws.Model):
    def setup(self, s):
        self.logits = s.param("theta.logits", 4)
        self.net = s.mlp("phi.net", [4, 4, 2])

    def guide(self, p):
        p.categorical("z", self.net(p.observed("x")))

    def model(self, p):
        z = p.categorical("z", [0.0, 0.0])
        p.bernoulli("x", self.logits * z)

    arrays = {"x": np.arange(200).reshape(50, 4) % 17}


class Signs(Pixels):
    arrays = {"x": np.where(np.arange(200).reshape(50, 4) % 3, 1, -1)}


PLANTED = [
    (Times, "impossible", "warning", "x", "x = -3", False),
    (Pixels, "program", "mistake", None, "at site \"x\", which is 0 or 1", False),
    (Signs, "program", "mistake", None, "The data have -1 at site \"x\"", False),
]
