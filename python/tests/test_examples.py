"""The examples in Python and their twins in C: the same parameters, bit for bit."""

import os
import tempfile
import unittest

import numpy as np

import rws

import dp
import grammar
import hmm
import mixture
import party
import sticks

BUILD = os.path.join(os.environ.get("RWS_TESTS_BUILD", "."), "examples")


def plugin(name):
    path = os.path.join(BUILD, name + ".so")
    if not os.path.exists(path):
        raise unittest.SkipTest(f"{name}.so is not built")
    return path


class Twins(unittest.TestCase):
    def same(self, python, c, n=30):
        for t in (python, c):
            for _ in range(n):
                t.step()
        a, b = python.state_dict(), c.state_dict()
        self.assertEqual(list(a), list(b))
        for k in a:
            self.assertEqual(a[k].tobytes(), b[k].tobytes(), k)
        python.close()
        c.close()

    def test_mixture(self):
        for method in ("ww", "ws", "vimco"):
            self.same(rws.Trainer(mixture.FreshMixture(), method=method, seed=5), rws.Trainer("gmm", method=method, seed=5))

    def test_grammar(self):
        with tempfile.TemporaryDirectory() as f:
            train, test = grammar.sentences(100, 1), grammar.sentences(10, 2)
            for name, texts in (("a", train), ("b", test)):
                with open(f"{f}/{name}.txt", "w") as out:
                    out.writelines(" ".join(s) + "\n" for s in texts)
            field = "the sentence"
            for method in ("ww", "ws"):
                self.same(rws.Trainer(grammar.Grammar(), {field: grammar.data(train)}, {field: grammar.data(test)}, order="drawn",
                                      method=method, seed=3),
                          rws.Trainer("pcfg", method=method, seed=3, set=dict(data=f"{f}/a.txt", test_data=f"{f}/b.txt")))

    def test_hmm(self):
        d = hmm.data(200)
        with tempfile.TemporaryDirectory() as f:
            rows = np.zeros((200, 2 + hmm.LONGEST), np.float32)
            for row, n, y in zip(rows, d["n"], d["y"]):
                row[0], row[1], row[2:2 + len(y)] = n, len(y), y
            np.save(f"{f}/rows.npy", rows)
            self.same(rws.Trainer(hmm.Hmm(), d, method="ww", seed=2),
                      rws.Trainer(plugin("sequences"), method="ww", seed=2, set=dict(data=f"{f}/rows.npy")))

    def test_sticks(self):
        x = sticks.data(500)
        with tempfile.TemporaryDirectory() as f:
            np.save(f"{f}/x.npy", x)
            self.same(rws.Trainer(sticks.Sticks(), {"x": x}, method="ww", seed=2),
                      rws.Trainer(plugin("sticks"), method="ww", seed=2, set=dict(data=f"{f}/x.npy")))

    def test_dp(self):
        for method in ("ww", "vimco"):
            self.same(rws.Trainer(dp.Galaxies(), method=method, seed=2), rws.Trainer(plugin("dp"), method=method, seed=2))

    def test_dp_is_right(self):
        """The metric that sums over all partitions agrees with that of the twin in C, and particles with both."""
        t, c = (rws.Trainer(m, method="ww", seed=2, n_test=5, eval_particles=20000) for m in (dp.Galaxies(), plugin("dp")))
        a, b = t.evaluate(), c.evaluate()
        self.assertAlmostEqual(a["exact"], b["exact"], places=4)
        self.assertAlmostEqual(a["exact"], a["log_evidence"], delta=0.5)

    def test_party(self):
        """Without a guide, against the sum over all numbers of guests; the run is opened again and asked alike."""
        with tempfile.TemporaryDirectory() as f:
            run = rws.train(party.Party(), data={"x": party.data(2000)}, iterations=500, seed=1, lr=5e-3, out=f"{f}/run", progress=False)
            rate = 1 / (1 + np.exp(-float(run.state_dict()["theta.more"][0])))
            n = np.arange(40)
            p = (1 - rate) * rate ** n * np.exp(-((2.7 - n) / 0.4) ** 2 / 2) / (0.4 * np.sqrt(2 * np.pi))
            a = run.infer(x=2.7, particles=4000)
            self.assertAlmostEqual(a.log_evidence, float(np.log(p.sum())), delta=0.02)
            self.assertAlmostEqual(a.marginal("guests").get(3.0, 0), p[3] / p.sum(), delta=0.04)
            self.assertGreater(a.ess, 0.9)
            run.close()
            with rws.open(f"{f}/run", model=party.Party()) as again:
                self.assertEqual(again.infer(x=2.7, particles=4000).log_evidence, a.log_evidence)

    def test_a_partial_guide(self):
        class Two(party.Party):
            def model(self, p):
                self.flips(p)
                p.normal("more x", 0, 1)
                p.normal("x", 0, 1)

            def flips(self, p):
                while p.flip("more", self.more - 1):
                    pass

            def guide(self, p):
                self.flips(p)

        with self.assertRaisesRegex(rws.Error, "visits site \"more x\".*but the guide does not"):
            rws.train(Two(), data={"x": party.data(100)}, iterations=2, progress=False)
        with rws.train(Two(), data={"x": party.data(100)}, iterations=2, progress=False, set={"guide": "rest"}) as run:
            self.assertGreater(run.evaluate()["ess"], 0.1)

    def test_functions_without_a_guide(self):
        m = rws.Model(setup=lambda s: None, model=lambda p, s: p.normal("x", p.normal("z", 0, 1), 1))
        with rws.train(m, data={"x": party.data(100)}, iterations=20, progress=False, method="vimco", particles=4) as run:
            self.assertIn("phi.auto.out.z.weight", run.state_dict())

    def test_hmm_is_right(self):
        run = rws.train(hmm.Hmm(), data=hmm.data(500), iterations=300, seed=1, progress=False)
        y = [-2.0, 0.1, 1.9]
        m = hmm.Hmm()
        values = run.state_dict()

        class P:
            def __init__(self, a):
                self.values = np.atleast_2d(a)  # a Param is always a matrix

        m.lengths, m.first, m.next, m.mean = (P(values["theta." + n]) for n in ("lengths", "first", "next", "mean"))
        self.assertAlmostEqual(run.infer(n=2, y=y, particles=20000).log_evidence, m.exact(y), delta=0.05)
