"""Choices that are known: in questions, as labels in training; and how the gradient of a site comes."""

import math
import os
import tempfile
import unittest

import numpy as np

import rws
from toys import Mixture, Steps, clusters, walks


def log_normal(x, mean, sd=1.0):
    return -0.5 * ((x - mean) / sd) ** 2 - math.log(sd * math.sqrt(2 * math.pi))


class Questions(unittest.TestCase):
    def test_given(self):
        with rws.train(Mixture(), data={"x": clusters()}, iterations=3, progress=False) as run:
            a = run.infer(x=3.9, particles=10, given={"z": 2})
            self.assertAlmostEqual(a.log_evidence, -math.log(3) + log_normal(3.9, 8), places=1)
            self.assertEqual(a.log_evidence, run.infer(x=3.9, particles=10, given={("z", 0): 2.0}).log_evidence)
            self.assertEqual({p.choices["z"] for p in a.particles}, {2.0})
            log_p, log_q = run.score({"z": 2}, x=3.9)
            self.assertAlmostEqual(a.log_evidence, log_p, places=4)
            self.assertAlmostEqual(a.particles[0].log_given, log_q, places=4)
            self.assertEqual(run.infer(x=3.9, particles=10).particles[0].log_given, 0)
            self.assertEqual({p.choices["z"] for p in run.trainer.infer(x=3.9, particles=5, given={"z": 0}).particles}, {0.0})
            with self.assertRaisesRegex(rws.Error, "z"):
                run.infer(x=3.9, given={"z": 7})
            with self.assertRaises(rws.Error):
                run.infer(x=3.9, given={"y": 1})

    def test_visits(self):
        with rws.train(Steps(), data={"x": walks()}, iterations=3, progress=False) as run:
            a = run.infer(x=2.0, particles=50, given={("end", 0): 0, ("end", 1): 1})
            self.assertEqual({tuple(p.choices["end"]) for p in a.particles}, {(0.0, 1.0)})
            b = run.infer(x=2.0, particles=50, given={"end": [0, 1]})
            self.assertEqual(a.log_evidence, b.log_evidence)
            some = run.infer(x=2.0, particles=50, given={("end", 1): 0})
            self.assertTrue(all(p.weight == 0 or p.choices["end"][1] == 0 for p in some.particles))


class Labelled(Mixture):
    """The guide is told z of some data; without labels, nothing says which cluster is which to a model that learns means."""

    def setup(self, s):
        super().setup(s)
        s.field("x")
        s.label("truth")
        s.label_site("truth", "z")


class Walk(rws.Model):
    """A series of choices, one for each item, of which some are known."""

    def setup(self, s):
        s.series("x")
        s.label_series("truth")
        s.label_site("truth", "z")
        self.prior = s.param("theta.prior", 2)
        self.net = s.mlp("phi.net", [1, 4, 2])

    def guide(self, p):
        x = p.items("x")
        p.choose("n", np.where(np.arange(7) == len(x), 0, -1e4))
        for v in x:
            p.categorical("z", self.net(v))

    def model(self, p):
        for t in range(p.choose("n", np.zeros(7))):
            p.normal("x", 3 * p.categorical("z", self.prior), 1)


class Drawn(rws.Model):
    def __init__(self, how):
        self.how = how

    def setup(self, s):
        s.field("x", 1)
        s.gradient("z", self.how)
        self.mean = s.param("phi.mean", 1)

    def guide(self, p):
        p.normal("z", self.mean, 1)

    def model(self, p):
        p.normal("x", p.normal("z", 0, 1), 1)


class Labels(unittest.TestCase):
    def gradients(self, model, *data, **more):
        out = []
        for d in data:
            with rws.Trainer(model, data=d, particles=5, batch=4, seed=3, **more) as t:
                out.append(t.gradient())
        return out

    def test_label(self):
        x, nan = clusters(), np.full(300, np.nan)
        plain, = self.gradients(Mixture(), {"x": x})
        none, all_one = self.gradients(Labelled(), {"x": x, "truth": nan}, {"x": x, "truth": np.ones(300)})
        np.testing.assert_array_equal(plain, none)
        self.assertTrue((none != all_one).any())
        with rws.train(Labelled(), data={"x": x, "truth": np.full(300, 2)}, iterations=200, lr=1e-2, progress=False) as run:
            self.assertGreater(run.infer(x=0.0, particles=100).particles[0].count, 90)  # the guide believes the labels
            self.assertEqual(run.infer(x=0.0, particles=100).particles[0].choices["z"], 2.0)
        with self.assertRaisesRegex(rws.Error, "site \"z\" of datum"):
            with rws.Trainer(Labelled(), data={"x": x, "truth": np.full(300, 5)}) as t:
                t.step()

    def test_label_series(self):
        r = np.random.default_rng(0)
        x = [r.normal(size=n).astype(np.float32) for n in [1, 2, 3, 4, 5, 6] * 10]
        unknown = [np.full(len(i), np.nan) for i in x]
        ones = [np.ones(len(i)) for i in x]
        first = [np.array([1.0] + [np.nan] * (len(i) - 1)) for i in x]
        none, every, some = self.gradients(Walk(), *({"x": x, "truth": y} for y in (unknown, ones, first)))
        self.assertTrue((none != every).any() and (none != some).any() and (some != every).any())
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        folder = temporary.name
        by_sign = [(i > 0).astype(np.float32) for i in x]  # labels must belong to their own data
        with rws.train(Walk(), data={"x": x, "truth": by_sign}, test={"x": x[:6], "truth": by_sign[:6]}, iterations=600,
                       batch=8, particles=2, lr=2e-2, progress=False, out=folder + "/run") as run:
            for at, want in ((-1.5, 0.0), (1.5, 1.0)):
                p = run.infer(x=[at], particles=100).particles
                self.assertGreater(sum(i.count for i in p if i.choices["z"] == want), 80)
            self.assertTrue(np.isfinite(run.evaluate()["log_evidence"]))
            want = run.infer(x=[1.5, -1], particles=20).log_evidence
        with rws.open(folder + "/run", Walk()) as run:
            self.assertEqual(run.infer(x=[1.5, -1], particles=20).log_evidence, want)

    def test_label_series_of_data(self):
        class Fresh(Walk):
            def setup(self, s):
                s.series("x", 1, 6)
                s.label_series("truth", 1, 6)
                s.label_site("truth", "z")
                self.prior = s.param("theta.prior", 2)
                self.net = s.mlp("phi.net", [1, 4, 2])

            def data(self, split, first, n, random):
                return {"x": [[1.0, 2.0]] * n, "truth": [[1.0, np.nan]] * n}

        with rws.Trainer(Fresh(), particles=3) as t:
            t.step()

    def test_give(self):
        x, calls = clusters(), []

        def give(iteration, datum, fields):
            calls.append((iteration, datum, float(fields["x"][0])))
            return {"z": 1} if datum % 2 else None

        with rws.Trainer(Mixture(), data={"x": x}, particles=5, batch=4, seed=3) as t:
            plain = t.gradient()
            t.give(give)
            given = t.gradient()
            self.assertTrue((plain != given).any())
            t.give(None)
            np.testing.assert_array_equal(t.gradient(), plain)
            t.give(lambda iteration, datum, fields: None)
            np.testing.assert_array_equal(t.gradient(), plain)
            t.give(give)
            calls.clear()
            t.step()
            t.step()
            self.assertEqual([c[:2] for c in calls], [(i, d) for i in range(2) for d in range(4)])
            self.assertTrue(all(np.isclose(x, c[2]).any() for c in calls))
            t.give(lambda iteration, datum, fields: 1 / 0)
            with self.assertRaises(ZeroDivisionError):
                t.step()
            with self.assertRaises(ZeroDivisionError):
                t.train(progress=False)
            t.give(lambda iteration, datum, fields: {"z": 1, "y": 2})
            t.give(give)
            t.step()

    def test_give_fails(self):
        """An exception of the function ends training before the iteration moves anything."""
        def give(iteration, datum, fields):
            if iteration == 3 and datum == 2:
                raise ZeroDivisionError("mine")
            return {"z": 1}

        with tempfile.TemporaryDirectory() as f:
            out = os.path.join(f, "run")
            with rws.Trainer(Mixture(), data={"x": clusters()}, particles=5, batch=4, iterations=10 ** 6, out=out) as t:
                t.give(give)
                for _ in range(3):
                    t.step()
                t.save()
                before = t.state_dict()
                for ask in (t.step, t.gradient, lambda: t.train(progress=False, save_every=0)):
                    with self.assertRaisesRegex(ZeroDivisionError, "mine"):
                        ask()
                    self.assertEqual(t.iteration, 3)
                    for name, x in t.state_dict().items():
                        np.testing.assert_array_equal(x, before[name])
                t.give(None)
                t.step()
            with rws.open(out, Mixture()) as run:
                self.assertEqual(run.iteration, 3)

    def test_wrong_name(self):
        class Wrong(Mixture):
            def setup(self, s):
                super().setup(s)
                s.gradient("zz", "score")

        with self.assertWarnsRegex(UserWarning, "No particle has visited site 'zz'"):
            rws.train(Wrong(), data={"x": clusters()}, iterations=2, method="vimco", progress=False).close()

    def test_gradient_of_a_site(self):
        x = {"x": np.full((8, 1), 2.0)}
        through, = self.gradients(Drawn("reparameterised"), x, method="vimco")
        score, = self.gradients(Drawn("score"), x, method="vimco")
        self.assertTrue((through != score).any())
        with self.assertRaisesRegex(ValueError, "\"score\" or \"reparameterised\""):
            rws.Trainer(Drawn("both"), data=x)


class Evaluations(unittest.TestCase):
    def test_dream_and_guess(self):
        got = {}

        class Measured(Mixture):
            @rws.metric
            def error(self, e):
                def truth(p):
                    z = p.categorical("z", [0.0, 0.0, -1e4])
                    p.normal("x", 4 * z, 1)

                counts = {}

                def each(particle, count):
                    z = particle.report("z")
                    counts[z] = counts.get(z, 0) + count
                    self.seen = particle.datum("x")

                e.guess(each, 600, x=3.5)
                got["counts"], got["seen"], self.seen = counts, self.seen, None
                got["log_q"] = e.dream(truth, 500)
                return -got["log_q"]

            @rws.metric
            def broken(self, e):
                if self.fails:
                    e.guess(lambda particle, count: 1 / 0, 10, x=1.0)
                return 0.0

            fails = False

        with rws.Trainer(Measured(), data={"x": clusters()}, particles=3) as t:
            t.load_state_dict({"phi.net.2.weight": np.zeros((3, 16)), "phi.net.2.bias": [0, 0, 0]})
            m = t.evaluate()
            self.assertAlmostEqual(m["error"], math.log(3), places=4)
            self.assertEqual(sum(got["counts"].values()), 600)
            for z in range(3):
                self.assertAlmostEqual(got["counts"][z] / 600, 1 / 3, delta=0.08)
            self.assertEqual(got["seen"].tolist(), [3.5])
        Measured.fails = True
        with rws.Trainer(Measured(), data={"x": clusters()}, particles=3) as t:
            with self.assertRaises(ZeroDivisionError):
                t.evaluate()

    def test_particle_shards(self):
        with rws.Trainer(Mixture(), data={"x": clusters()}, particles=4, particle_shards=2) as t:
            t.step()
            self.assertEqual(t.config["particle_shards"], 2)
