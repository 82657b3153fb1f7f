"""Parameters of the wrong program, guides that do not reach, programs that do not end."""

import numpy as np

from toys import Mixture


class PhiInModel(Mixture):
    def model(self, p):
        z = p.categorical("z", self.net(0.3))
        p.normal("x", 4 * z, 1)


class NetInNoGroup(Mixture):
    def setup(self, s):
        self.prior = s.param("theta.prior", 3)
        self.net = s.mlp("net", [1, 16, 3])


class Closed(Mixture):
    def guide(self, p):
        p.categorical("z", self.net(p.observed("x")) + np.array([0, 0, -1e9]))


class Global(Mixture):
    def setup(self, s):
        super().setup(s)
        self.mu = s.param("phi.mu", 1)

    def guide(self, p):
        p.normal("mu", self.mu, 1)
        super().guide(p)

    def model(self, p):
        mu = p.normal("mu", 0, 3)
        z = p.categorical("z", self.prior)
        p.normal("x", mu + 4 * z, 1)


class Unused(Mixture):
    def setup(self, s):
        super().setup(s)
        self.forgotten = s.param("theta.forgotten", 2)


class PlainNumbers(Mixture):
    def setup(self, s):
        super().setup(s)
        self.shift = s.param("theta.shift", 1)

    def model(self, p):
        z = p.categorical("z", self.prior)
        p.normal("x", 4 * z + float(self.shift.values[0, 0]), 1)


class FloatOfParameter(Mixture):
    def model(self, p):
        z = p.categorical("z", self.prior)
        p.normal("x", 4 * z + float(self.prior), 1)


class ComparedParameter(Mixture):
    def model(self, p):
        z = p.categorical("z", self.prior)
        p.normal("x", 4 * z if self.prior == 0 else z, 1)


class NeverEnds(Mixture):
    def grow(self, p):
        while p.flip("more", 5.0):
            self.grow(p)

    def guide(self, p):
        self.grow(p)
        super().guide(p)

    def model(self, p):
        self.grow(p)
        super().model(p)


class Forgotten(Mixture):
    def guide(self, p):
        pass


PLANTED = [
    (PhiInModel, "group", "mistake", "phi.net.0.weight", "theta", True),
    (NetInNoGroup, "group", "warning", "net.0.weight", "phi.net", False),
    (Closed, "reach", "mistake", "z", "cannot propose", True),
    (Global, "global", "warning", "mu", "one datum", False),
    (Unused, "unused", "warning", "theta.forgotten", "s.unused", False),
    (PlainNumbers, "gradient", "warning", "theta.shift", "param.values", False),
    (FloatOfParameter, "program", "mistake", None, "float() of the parameter 'theta.prior'", False),
    (ComparedParameter, "program", "mistake", None, "no gradient passes through a comparison", False),
    (NeverEnds, "program", "mistake", None, "recursion", False),
    (Forgotten, "program", "mistake", None, "the guide does not", False),
]
