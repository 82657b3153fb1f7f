"""Frames of pandas, ArviZ and tensors of PyTorch, where they are installed."""

import tempfile
import unittest
import warnings

import numpy as np

import rws
from toys import Mixture, Steps, clusters, walks


def needs(name):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return __import__(name)
    except ImportError:
        raise unittest.SkipTest(f"{name} is not installed") from None


class Frames(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.trained = rws.train(Mixture(), data=clusters(), iterations=300, seed=1, lr=5e-3, progress=False)
        cls.answers = cls.trained.infer(x=2.2, particles=2000)

    def test_pandas(self):
        pd = needs("pandas")
        frame = self.answers.to_pandas()
        self.assertEqual(list(frame.columns), ["z", "weight", "count", "log_p", "log_q"])
        self.assertAlmostEqual(frame["weight"].sum(), 1)
        self.assertEqual(frame["count"].sum(), 2000)
        table = self.answers.table()
        self.assertEqual(len(table), len(self.answers))
        self.assertTrue((table["posterior"].diff().dropna() <= 0).all())
        with tempfile.TemporaryDirectory() as f:
            for seed in (1, 2):
                r = rws.train(Mixture(), data=clusters(), iterations=10, eval_every=5, seed=seed, out=f"{f}/{seed}", progress=False)
                self.assertEqual(list(r.metrics.index), [1, 5, 10])
                self.assertEqual(r.metrics.index.name, "iteration")
                self.assertIn("log_evidence", r.metrics.columns)
                r.close()
            stored = rws.runs(f).to_pandas()
            self.assertEqual(sorted(stored["run"]), ["1", "2"])
            self.assertEqual(sorted(stored["seed"].astype(int)), [1, 2])
        x = clusters()
        a = rws.train(Mixture(), data=pd.DataFrame({"x": x}), iterations=5, seed=1, progress=False)
        b = rws.train(Mixture(), data={"x": x}, iterations=5, seed=1, progress=False)
        self.assertTrue(all((v == b.state_dict()[k]).all() for k, v in a.state_dict().items()))
        lists = pd.DataFrame({"x": x[:3], "y": [[1.0], [1.0, 2.0], [3.0]]})  # a column of sequences is a series

        class M(Mixture):
            def setup(self, s):
                super().setup(s)
                s.label_series("y")

        self.assertEqual(rws.train(M(), data=lists, iterations=2, progress=False).iteration, 2)

    def test_arviz(self):
        arviz = needs("arviz")
        drawn = self.answers.to_arviz(seed=3)
        z = np.asarray(drawn.posterior["z"])
        self.assertEqual(z.shape, (1, 2000))
        for value, probability in self.answers.marginal("z").items():
            self.assertAlmostEqual((z == value).mean(), probability, delta=0.05)
        lp = np.asarray(drawn.sample_stats["lp"])
        best = {p.choices["z"]: p.log_p for p in self.answers.particles}
        np.testing.assert_allclose(lp, np.vectorize(best.get)(z))
        self.assertEqual(np.asarray(self.answers.to_arviz(draws=7).posterior["z"]).shape, (1, 7))
        self.assertAlmostEqual(float(arviz.summary(drawn)["mean"].iloc[0]), z.mean(), places=2)
        paths = rws.train(Steps(), data=walks(), iterations=5, progress=False).infer(x=2.0)
        with self.assertRaisesRegex(rws.Error, "No site"):
            paths.to_arviz()
        with self.assertRaisesRegex(rws.Error, "listed"):
            self.trained.infer(x=1.0, listed=False).to_arviz()

    def test_arviz_of_many(self):
        arviz = needs("arviz")
        x = clusters(6, 2)
        drawn = self.trained.ask_many({"x": x}, particles=500, draws=800).to_arviz()
        z = np.asarray(drawn.posterior["z"])
        self.assertEqual((z.shape, drawn.posterior["z"].dims), ((1, 800, 6), ("chain", "draw", "datum")))
        for i in range(6):  # 5 standard deviations of 800 draws from 500 particles
            exact = self.trained.infer(x=float(x[i]), particles=20000).mean("z")
            self.assertAlmostEqual(z[0, :, i].mean(), exact, delta=0.3)
        self.assertEqual(np.asarray(drawn.sample_stats["lp"]).shape, (1, 800, 6))
        self.assertEqual(len(arviz.summary(drawn)), 6)
        walked = rws.train(Steps(), data=walks(), iterations=5, progress=False).ask_many(walks(3, 1), particles=50, draws=10).to_arviz()
        self.assertTrue(all(v.dims[:3] == ("chain", "draw", "datum") for v in walked.posterior.values()))

    def test_torch(self):
        torch = needs("torch")
        state = self.trained.state_dict(torch=True)
        net = torch.nn.Sequential(torch.nn.Linear(1, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))
        net.load_state_dict({k: state["phi.net." + k] for k in net.state_dict()})  # the sizes are those of PyTorch
        q = torch.log_softmax(net(torch.tensor([[3.9]])), 1)[0].detach()
        for z in range(3):
            self.assertAlmostEqual(float(q[z]), self.trained.score({"z": z}, x=3.9)[1], places=4)
        t = rws.Trainer(Mixture(), data=clusters())
        t.load_state_dict(state)  # tensors go back
        self.assertTrue(all((v == self.trained.state_dict()[k]).all() for k, v in t.state_dict().items()))
        x = torch.tensor(clusters())
        self.assertEqual(rws.train(Mixture(), data={"x": x}, iterations=2, progress=False).iteration, 2)
