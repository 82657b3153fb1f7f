"""Many questions at once."""

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
