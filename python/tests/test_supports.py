"""Guide and model with different families of one support: evidence against quadrature, own families, what is refused."""

import math
import unittest

import numpy as np

import rws

NOISE = 0.5
XS = np.array([0.3, 1.0, 2.5], np.float32)


class GammaByLogNormal(rws.Model):
    """A Gamma(2, 1) seen with noise; the guide draws a log-normal."""

    def setup(self, s):
        s.field("x")
        self.net = s.mlp("phi.net", [1, 16, 2])

    def guide(self, p):
        out = self.net(p.observed("x"))
        p.log_normal("g", out[0], rws.exp(out[1]))

    def model(self, p):
        p.normal("x", p.gamma("g", 2, 1), NOISE)

    @staticmethod
    def prior(g):
        return g * np.exp(-g)


class UniformByBeta(GammaByLogNormal):
    def guide(self, p):
        out = rws.exp(self.net(p.observed("x")))
        p.beta("g", out[0], out[1])

    def model(self, p):
        p.normal("x", p.uniform("g", 0, 1), NOISE)

    @staticmethod
    def prior(g):
        return (g < 1).astype(float)


def log_evidence(model, x):
    """By the midpoint rule."""
    g = (np.arange(400000) + 0.5) * 1e-4
    return math.log(np.sum(model.prior(g) * np.exp(-((x - g) / NOISE) ** 2 / 2)) * 1e-4 / (NOISE * math.sqrt(2 * math.pi)))


class Supports(unittest.TestCase):
    def test_evidence(self):
        """Within 0.01 nats of quadrature, however it was learned."""
        for model in (GammaByLogNormal, UniformByBeta):
            for method in ("ww", "ws", "vimco", "reinforce"):
                with self.subTest(model=model.__name__, method=method):
                    run = rws.train(model(), data=np.repeat(XS, 100), method=method, iterations=300, particles=10, lr=1e-2, seed=1,
                                    progress=False)
                    for x in XS:
                        a = run.infer(x=float(x), particles=40000)
                        self.assertLess(abs(a.log_evidence - log_evidence(model, float(x))), 0.01)
                        self.assertGreater(a.ess, 0.4)
                    run.close()

    def test_score_and_given(self):
        """log p is by the model's family, log q and log_given by the guide's."""
        with rws.train(GammaByLogNormal(), data=XS, iterations=1, seed=1, progress=False) as run:
            log_p, log_q = run.score({"g": 1.5}, x=1.0)
            self.assertAlmostEqual(log_p, math.log(1.5) - 1.5 - 0.5 - math.log(NOISE * math.sqrt(2 * math.pi)), places=4)
            a = run.infer(x=1.0, given={"g": 1.5}, particles=4)
            self.assertAlmostEqual(a.log_evidence, log_p, places=4)
            self.assertTrue(math.isfinite(log_q))

    def refused(self, guide, model, sentence, method="ww"):
        class M(rws.Model):
            def setup(self, s):
                s.field("x")
        
        M.guide, M.model = guide, lambda self, p: (model(self, p), p.normal("x", 0, 1))
        with self.assertRaisesRegex(rws.Error, sentence):
            rws.train(M(), data=XS, iterations=1, method=method, progress=False)

    def test_refused(self):
        for method in ("ww", "ws"):
            self.refused(lambda m, p: p.normal("g", 0, 1), lambda m, p: p.gamma("g", 2, 1),
                         r'Site "g" is .* The guide must reach all values of the model, and no others: use a family such as gamma',
                         method)
            self.refused(lambda m, p: p.beta("g", 1, 1), lambda m, p: p.uniform("g", 0, 3),
                         r'At site "g" in the .*, uniform has values from 0 to 3 in the model and beta from 0 to 1 in the guide, '
                         'which cannot reach all of them', method)

    def test_own_families(self):
        """A family of Python's own stands for one of the library's, with bounds that its parameters give."""
        own = rws.Family("triangle", 1, lambda p, x, top: rws.log(2 * x) - 2 * rws.log(top),
                         draw=lambda p, top: top * rws.sqrt(p.noise_uniform(1)), support="interval", bounds=lambda p, top: (0, top))

        class M(rws.Model):
            top = 2.0

            def setup(self, s):
                s.field("x")
        
            def guide(self, p):
                p.site("g", own, self.top)

            def model(self, p):
                p.normal("x", p.uniform("g", 0, 2), NOISE)

        with rws.train(M(), data=XS, iterations=1, progress=False) as run:
            g = (np.arange(200000) + 0.5) * 1e-5
            want = np.log(np.sum(np.exp(-((1 - g) / NOISE) ** 2 / 2)) * 1e-5 / 2 / (NOISE * math.sqrt(2 * math.pi)))
            self.assertLess(abs(run.infer(x=1.0, particles=40000).log_evidence - want), 0.02)
        M.top = 1.0
        with self.assertRaisesRegex(rws.Error, "a family of its own from 0 to 1 in the guide, which cannot reach all of them"):
            rws.train(M(), data=XS, iterations=1, progress=False)
        with self.assertRaisesRegex(ValueError, "needs bounds"):
            rws.Family("f", 1, lambda p, x, a: x, support="interval")


if __name__ == "__main__":
    unittest.main()
