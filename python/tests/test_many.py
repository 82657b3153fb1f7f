"""Many questions at once."""

import pickle
import tempfile
import unittest

import numpy as np

import rws
from toys import Mixture, Steps, clusters, walks


class Many(unittest.TestCase):
    def test_answers(self):
        with rws.train(Mixture(), data={"x": clusters()}, iterations=20, progress=False) as run:
            x = clusters(200, 5)
            t = run.ask_many({"x": x}, particles=50, threads=2)
            self.assertEqual(t.n, 200)
            self.assertEqual(set(t["verdict"]) - {"reliable", "doubtful", "unreliable"}, set())
            one = run.infer(x=float(x[0]), particles=50)  # datum 0 has the draws of a single question
            self.assertAlmostEqual(t["log_evidence"][0], one.log_evidence, places=5)
            self.assertAlmostEqual(t["ess"][0], one.ess, places=5)
            np.testing.assert_allclose(sum(np.nan_to_num(t[f"z={k}"]) for k in range(3)), 1, atol=1e-6)
            for i in range(0, 200, 20):
                a = run.infer(x=float(x[i]), particles=20000)
                self.assertAlmostEqual(run.ask_many(x[i:i + 1], particles=20000)["log_evidence"][0], a.log_evidence, places=4)

    def test_same_bits(self):
        with rws.train(Steps(), data={"x": walks()}, iterations=5, progress=False) as run:
            x = walks(300, 3)
            one, two = (run.ask_many(x, particles=30, threads=n, progress=False) for n in (1, 2))
            self.assertEqual(list(one), list(two))
            for name, column in one.items():
                if isinstance(column, np.ndarray):
                    np.testing.assert_array_equal(column, two[name])
            self.assertIn("end:1.visited", one)
            self.assertEqual(len(one["report.n"]), 300)

    def test_data(self):
        with rws.train(Mixture(), data={"x": clusters()}, iterations=2, progress=False) as run:
            x = clusters(5)
            array, named = run.ask_many(x, particles=9), run.ask_many({"x": x[:, None]}, particles=9, listed=False)
            np.testing.assert_array_equal(array["ess"], named["ess"])
            self.assertIn("z", array)
            self.assertNotIn("z", named)
            self.assertEqual(run.ask_many(test=range(7), particles=9).n, 7)
            given = run.ask_many(x, particles=9, given={"z": 1})
            np.testing.assert_array_equal(given["z"], 1)
            with self.assertRaisesRegex(rws.Error, "no field 'y'"):
                run.ask_many({"y": x})
            with self.assertRaisesRegex(rws.Error, "has 1 numbers, not 2"):
                run.ask_many({"x": np.zeros((3, 2))})
            with self.assertRaises(TypeError):
                run.ask_many()
            failed = run.ask_many(["a text"])
            self.assertIn("cannot be asked by a text", failed["error"][0])
            mixed = run.ask_many(test=[0, -1])
            self.assertEqual(mixed["error"][0], None)
            self.assertIn("test datum -1", mixed["error"][1])
            self.assertTrue(np.isnan(mixed["ess"][1]) and mixed["ess"][0] > 0)


    def test_refined(self):
        """Error level: 5 standard errors of 15 degrees of freedom, 2e-4."""
        with rws.train(Exact(3.0), data={"x": np.zeros(9, np.float32)}, iterations=1, progress=False) as run:
            a = run.infer(x=2.0, particles=160, refine=300)
            self.assertEqual((a.n_chains, a.n_draws, a.verdict), (16, 16 * 150, "reliable"))
            self.assertTrue(a.r_hat < 1.05 and a.n_effective > 100)
            m = a.marginals[0]
            self.assertAlmostEqual(m["mean"][0], 1.0, delta=5 * m["mean_error"][0])
            self.assertAlmostEqual(m["sd"][0], 0.5 ** 0.5, delta=0.15)
            self.assertEqual(a.to_dict()["n_chains"], 16)
            self.assertEqual({p.chain for p in a.particles}, set(range(17)))
            plain = run.infer(x=2.0, particles=160)
            self.assertEqual((plain.n_chains, plain.log_evidence), (0, a.log_evidence))
            self.assertNotIn("r_hat", plain.to_dict())
            t = run.ask_many(np.full(3, 2.0), particles=160, refine=30, chains=4)
            self.assertTrue((t["r_hat"] > 0).all() and len(set(t["z.mean"])) == 3)
            self.assertEqual([q["quantity"] for q in run.calibrate(60, particles=32, refine=8)], ["z", "z"])
            with self.assertRaisesRegex(rws.Error, "2 to 1000 chains, not 1"):
                run.infer(x=2.0, refine=1, chains=1)

    def test_predictions(self):
        """x given x' is N(x' / 2, 3 / 2). Error level: 5 standard errors, 6e-7 each."""
        with rws.train(Exact(), data={"x": np.zeros(9, np.float32)}, iterations=1, progress=False) as run:
            a = run.infer(x=3.0, particles=20000)
            x = np.array([s.fields["x"][0] for s in run.predict(a, 4000, seed=2)])
            self.assertAlmostEqual(x.mean(), 1.5, delta=5 * (1.5 / 4000) ** 0.5 + 5 * (0.5 / 20000) ** 0.5)
            self.assertAlmostEqual(x.var(), 1.5, delta=5 * 1.5 * (2 / 4000) ** 0.5)
            with self.assertRaisesRegex(rws.Error, "ask again"):
                run.predict(pickle.loads(pickle.dumps(a)))
            with self.assertRaisesRegex(rws.Error, "must ask for particles"):
                run.predict(run.infer(x=3.0, listed=False))

    def test_draws(self):
        with rws.train(Steps(), data={"x": walks()}, iterations=5, progress=False) as run:
            t = run.ask_many(walks(4, 3), particles=400, draws=3000)
            drawn = {(s, v): x.reshape(4, 3000) for s, v, x in t._drawn}
            for (site, visit), x in drawn.items():
                name = site + (f":{visit}" if visit else "")
                for i in range(4):
                    if visit >= 0:  # within 5 standard deviations of a share of 3000 draws
                        self.assertAlmostEqual(np.mean(~np.isnan(x[i])), np.nan_to_num(t[name + ".visited"])[i], delta=0.05)
            self.assertTrue(np.isfinite(drawn["lp", -1]).all())
            with self.assertRaisesRegex(rws.Error, "draws=1000"):
                run.ask_many(walks(2, 3), particles=9).to_arviz()

    def test_resume(self):
        class Stop(Exception):
            pass

        def stop(done, n):
            if done > 520:
                raise Stop
        with rws.train(Mixture(), data={"x": clusters()}, iterations=5, progress=False) as run, tempfile.TemporaryDirectory() as f:
            x, how = clusters(700, 5), {"particles": 64, "draws": 2}
            whole = run.ask_many(x, **how)
            path = f"{f}/answers.npz"
            with self.assertRaises(Stop):
                run._posterior().ask_many(x, None, 64, 1, True, None, 0, 0, 0, 16, 2, path, stop)
            with np.load(path) as kept:
                self.assertEqual(len(kept["column0"]), 512)
            counted = []
            again = run._posterior().ask_many(x, None, 64, 1, True, None, 0, 0, 0, 16, 2, path, lambda done, n: counted.append((done, n)))
            self.assertTrue(all(done > 512 and n == 700 for done, n in counted))
            self.assertEqual(list(whole), list(again))
            for name, column in whole.items():
                np.testing.assert_array_equal(column, again[name])
            for (s, v, a), (t, w, b) in zip(whole._drawn, again._drawn):
                self.assertEqual((s, v), (t, w))
                np.testing.assert_array_equal(a, b)
            self.assertEqual(run.ask_many(x, resume=path, **how).n, 700)
            with self.assertRaisesRegex(rws.Error, "other questions"):
                run.ask_many(x[1:], resume=path, **how)


class Regression(rws.Model):
    """slope ~ N(0, 1), y ~ N(slope x, 0.1), where x is an input."""

    def setup(self, s):
        s.input("x", 1)
        s.field("y", 1)
        s.param("theta.unused", 1)
        s.param("phi.unused", 1)

    def guide(self, p):
        x, y = p.observed("x"), p.observed("y")
        v = 1.0 / (1.0 + 100.0 * x * x)
        p.normal("slope", 100.0 * x * y * v, v ** 0.5)

    def model(self, p):
        p.normal("y", p.normal("slope", 0.0, 1.0) * p.observed("x"), 0.1)


class Conditional(unittest.TestCase):
    def test_predictions_have_the_inputs_of_the_question(self):
        """y given (x, y) = (2, 4): N(2 m, 4 v + 0.01) with v = 1 / 401, m = 800 / 401. Error level: 5 standard errors."""
        data = {"x": np.ones(5, np.float32), "y": np.ones(5, np.float32)}
        with rws.train(Regression(), data=data, iterations=1, progress=False) as run:
            samples = run.predict(run.infer(x=2.0, y=4.0, particles=5000), 2000)
            y = np.array([s.fields["y"][0] for s in samples])
            sd = (4 / 401 + 0.01) ** 0.5
            self.assertAlmostEqual(y.mean(), 1600 / 401, delta=5 * sd * (1 / 2000 + 1 / 5000) ** 0.5)
            self.assertAlmostEqual(y.std(), sd, delta=5 * sd / 4000 ** 0.5)


class Exact(rws.Model):
    """z ~ N(0, 1), x ~ N(z, 1): the posterior is N(x / 2, 1 / 2), and the guide has `sd` for its deviation."""

    def __init__(self, sd=0.5 ** 0.5):
        self.sd = sd

    def setup(self, s):
        s.field("x", 1)
        s.param("theta.unused", 1)
        s.param("phi.unused", 1)

    def guide(self, p):
        p.normal("z", p.observed("x") * 0.5, self.sd)

    def model(self, p):
        p.normal("x", p.normal("z", 0.0, 1.0), 1.0)


class Calibrated(unittest.TestCase):
    def test_calibrate(self):
        """Error level of the exact guide: 1e-4."""
        x = np.zeros(10, np.float32)
        with rws.train(Exact(), data={"x": x}, iterations=1, progress=False) as run:
            c = run.calibrate(300, particles=50, threads=2, progress=False)
            self.assertEqual([q["quantity"] for q in c], ["z", "z"])
            self.assertTrue(all(q["p"] > 1e-4 for q in c))
            self.assertEqual(len(c.ranks["z.rank"]), 300)
            self.assertEqual(sum(c[0]["histogram"]), 300)
            np.testing.assert_array_equal(c.ranks["z.rank"], run.calibrate(300, particles=50, threads=1).ranks["z.rank"])
        with rws.train(Exact(1.5 * 0.5 ** 0.5), data={"x": x}, iterations=1, progress=False) as run:
            self.assertEqual(run.calibrate(300, particles=50).rejected(guide=True), ["z"])


if __name__ == "__main__":
    unittest.main()
