"""Training, asking, keeping, and what a run says."""

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest

import numpy as np

import rws
from toys import Mixture, Steps, clusters, walks


def bits(run):
    return {k: v.tobytes() for k, v in run.state_dict().items()}


class Training(unittest.TestCase):
    def test_learns(self):
        run = rws.train(Mixture(), data=clusters(2000), iterations=1500, particles=20, seed=1, lr=5e-3, progress=False)
        theta = run.state_dict()["theta.prior"]
        p = np.exp(theta) / np.exp(theta).sum()
        self.assertLess(np.abs(p - [0.2, 0.3, 0.5]).max(), 0.06)
        a = run.infer(x=3.9)
        self.assertEqual(a[0].reports["z"], 1.0)
        self.assertGreater(a[0].posterior, 0.98)
        self.assertAlmostEqual(sum(q.posterior for q in a), 1, places=6)
        self.assertAlmostEqual(sum(a.marginal("z").values()), 1, places=6)
        log_p, log_q = run.score({"z": 1}, x=3.9)
        self.assertAlmostEqual(log_p, np.log(p[1]) - 0.005 - np.log(2 * np.pi) / 2, places=4)
        self.assertLess(log_q, 0)
        s = run.sample(500, seed=3)
        self.assertLess(abs(np.mean([t.choices["z"] == 2 for t in s]) - p[2]), 0.1)
        self.assertEqual(s[0].fields["x"].shape, (1,))

    def test_answers_at_present_parameters(self):
        """A run that was asked answers by new parameters once they are loaded, and once they are trained."""
        with rws.train(Mixture(), data=clusters(), iterations=2, particles=3, progress=False) as run:
            first = run.score({"z": 1}, x=1.0)[0]
            run.trainer.load_state_dict({"theta.prior": [0, 5, 0]})
            second = run.score({"z": 1}, x=1.0)[0]
            self.assertGreater(second, first + 0.5)
            self.assertEqual(run.score({"z": 1}, x=1.0)[0], second)
            run.trainer.step()
            self.assertNotEqual(run.score({"z": 1}, x=1.0)[0], second)

    def test_all_methods(self):
        class M(Mixture):
            def setup(self, s):
                super().setup(s)
                s.field("x")
                s.relaxed("z", 3)

            def relaxed(self, p, log_s, temperature, how):
                pi = rws.log_softmax(self.prior)
                if how == "soft":
                    prior = rws.log_sum_exp(log_s + pi)
                elif how == "density":
                    prior = rws.relaxed_density(log_s, pi, temperature)
                else:
                    prior = pi[rws.argmax(log_s)]
                mean = rws.sum(rws.exp(log_s) * np.array([0, 4, 8], np.float32))
                return prior + rws.normal_density(p.observed("x"), mean, 1)

        for method in rws.methods():
            if method == "em":
                continue
            with self.subTest(method):
                run = rws.train(M(), data=clusters(), method=method, iterations=5, particles=5, progress=False)
                self.assertEqual(run.iteration, 5)
                self.assertTrue(np.isfinite(run.evaluate()["log_evidence"]))

    def test_em(self):
        class M(Mixture):
            def em(self, n_fresh, random):
                self.prior.values = np.log([0.2, 0.3, 0.5])

        run = rws.train(M(), data=clusters(), method="em", iterations=2, progress=False)
        np.testing.assert_allclose(np.exp(run.state_dict()["theta.prior"]), [0.2, 0.3, 0.5], rtol=1e-5)

    def test_control_flow(self):
        run = rws.train(Steps(), data=walks(1000), iterations=400, particles=10, seed=2, lr=1e-2, progress=False)
        stop = 1 / (1 + np.exp(-run.state_dict()["theta.stop"][0]))
        self.assertLess(abs(stop - 0.4), 0.12)
        self.assertEqual(run.infer(x=2.0)[0].reports["n"], 2)
        best = max(run.infer(x=2.0).particles, key=lambda q: q.weight)
        self.assertEqual(best.choices["end"], [0.0, 0.0, 1.0])

    def test_names_of_parameters(self):
        """A parameter may have a name that begins like those of the other numbers in a checkpoint."""
        class Named(Mixture):
            def setup(self, s):
                super().setup(s)
                self.more = s.param("method.more", 2)

        with tempfile.TemporaryDirectory() as folder:
            run = rws.train(Named(), data=clusters(), iterations=1, out=f"{folder}/run", progress=False)
            self.assertEqual(bits(run), bits(rws.open(f"{folder}/run", Named())))

    def test_names_of_folders(self):
        """A folder may have any name that a file may have, also one that is not UTF-8."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, os.fsdecode(b"caf\xe9"))
            rws.train(Mixture(), data=clusters(), iterations=1, out=path, progress=False).close()
            self.assertEqual(rws.open(path, Mixture()).iteration, 1)
            self.assertEqual([r.name for r in rws.runs(folder)], [os.path.basename(path)])
            self.assertEqual(rws.resume(path, Mixture(), clusters(), iterations=2, progress=False).iteration, 2)

    def test_same_bits(self):
        """Threads, scalar mode's draws, resuming, functions instead of a class: the same numbers."""
        given = dict(data=walks(), iterations=20, particles=6, seed=3, shards=4, progress=False)
        one = bits(rws.train(Steps(), **given))
        self.assertEqual(one, bits(rws.train(Steps(), threads=3, **given)))
        m = Steps()
        functions = rws.Model(setup=lambda s: (m.setup(s), m)[1], guide=lambda p, m: m.guide(p), model=lambda p, m: m.model(p))
        self.assertEqual(one, bits(rws.train(functions, **given)))
        with tempfile.TemporaryDirectory() as folder:
            rws.train(Steps(), out=f"{folder}/a", callbacks=lambda t, m: False, **given).close()
            again = rws.resume(f"{folder}/a", Steps(), walks(), progress=False)
            self.assertEqual(again.iteration, 20)
            self.assertEqual(one, bits(again))
            again.close()
            self.assertEqual(one, bits(rws.open(f"{folder}/a", Steps())))
            opened = rws.open(f"{folder}/a", Steps(), walks())
            self.assertEqual(one, bits(opened))
            self.assertEqual(str(opened.infer(x=1.0)), str(rws.open(f"{folder}/a", Steps()).infer(x=1.0)))
            self.assertEqual(opened.infer(test=3).n_particles, 1000)
            stored = rws.runs(folder)
            self.assertEqual([r.name for r in stored], ["a"])
            self.assertIn("log_evidence", stored[0].histories)
            self.assertEqual(opened.history["ess"][0][-1], 20)

    def test_exported_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/runs.csv", "w") as f:
                f.write("run,version,failure,method,seed,iterations,iteration,seconds,ess,loss\n"
                        "a,0.8.0,,ww,1,20,10,0.5,0.25,\na,0.8.0,,ww,1,20,20,1,0.5,-3\nb,0.8.0,It broke.,ws,2,20,10,1,1,2\n")
            a, b = rws.runs(f"{folder}/runs.csv")
            self.assertEqual((a.name, a.state, a.version, a.iteration, a.last("loss")), ("a", "finished", "0.8.0", 20, -3))
            self.assertEqual((a.config["method"], list(a.histories["ess"][0]), list(a.histories["loss"][0])), ("ww", [10, 20], [20]))
            self.assertEqual((b.state, b.failure), ("failed", "It broke."))
            self.assertEqual([r.name for r in rws.runs(f"{folder}/runs.csv", where="seed=2")], ["b"])

    def test_data(self):
        class Fresh(Mixture):
            def setup(self, s):
                super().setup(s)
                s.field("x", 1)

            def data(self, split, first, n, random):
                assert split in ("train", "test")
                return {"x": random.normals(n) + 4 * np.floor(3 * random.uniforms(n))}

        self.assertEqual(rws.train(Fresh(), iterations=3, progress=False).iteration, 3)

        class Wrong(Fresh):
            def data(self, split, first, n, random):
                return {"x": np.zeros(n + 1)}

        with self.assertRaisesRegex(ValueError, "not 101"):
            rws.train(Wrong(), iterations=3, progress=False)
        with self.assertRaisesRegex(rws.Error, r"'x' has nan at \[1\]; data must be finite"):
            rws.train(Mixture(), data={"x": [1.0, np.nan]}, iterations=3, progress=False)

        class Labelled(Mixture):
            def setup(self, s):
                super().setup(s)
                s.label("truth")

        with self.assertRaisesRegex(rws.Error, "The data have no 'truth', which setup declares; they have 'x'"):
            rws.train(Labelled(), data={"x": [1.0, 2.0]}, iterations=3, progress=False)
        answers = rws.train(Mixture(), data={"x": [1.0, 2.0]}, iterations=1, progress=False).infer(x=1.0)
        self.assertAlmostEqual(answers.mean("z"), sum(z * p for z, p in answers.marginal("z").items()), places=5)
        for ask in (answers.marginal, answers.mean):
            with self.assertRaisesRegex(KeyError, "No particle visits a site 'zz', or reports it; the sites are 'z'"):
                ask("zz")
        unlisted = rws.train(Mixture(), data={"x": [1.0, 2.0]}, iterations=1, progress=False).infer(x=1.0, listed=False)
        for ask in (unlisted.marginal, unlisted.mean):
            with self.assertRaisesRegex(rws.Error, "There are no particles: ask with listed=True"):
                ask("z")

        class Sometimes(rws.Model):
            def setup(self, s):
                self.at = s.param("theta.at", 1)

            def guide(self, p):
                if p.flip("some", 0.0):
                    p.normal("z", 0.0, 1.0)

            def model(self, p):
                p.normal("x", self.at + (p.normal("z", 0.0, 1.0) if p.flip("some", 0.0) else 0.0), 1.0)

        answers = rws.train(Sometimes(), data={"x": [1.0, 2.0]}, iterations=1, progress=False).infer(x=1.0)
        visiting = [q for q in answers.particles if "z" in q.choices]
        self.assertLess(0, len(visiting))
        self.assertLess(len(visiting), len(answers.particles))
        self.assertAlmostEqual(float(answers.mean("z")), np.average([float(q.choices["z"]) for q in visiting],
                                                                    weights=[q.weight for q in visiting]), places=6)
        self.assertIn("marginal(site)", str(answers))

        class Vectors(rws.Model):
            """A site whose values are vectors, at several visits; and one whose visits have different sizes."""

            def setup(self, s):
                self.at = s.param("theta.at", 1)

            def guide(self, p):
                for n in (2, 2):
                    p.normal("w", [0.0] * n, 1.0)
                for n in (1, 2):
                    p.normal("v", [0.0] * n, 1.0)

            def model(self, p):
                self.guide(p)
                p.normal("x", self.at, 1.0)

        run = rws.train(Vectors(), data={"x": [1.0, 2.0]}, iterations=1, progress=False)
        answers = run.infer(x=1.0, particles=5)
        for site in ("w", "v"):
            self.assertAlmostEqual(sum(answers.marginal(site).values()), 1, places=5)
        self.assertEqual(np.shape(next(iter(answers.marginal("w")))), (2, 2))
        self.assertEqual(answers.mean("w").shape, (2, 2))
        with self.assertRaisesRegex(rws.Error, "The values of site 'v' have different sizes"):
            answers.mean("v")
        for question, fields in ((("text",), {"x": 1.0}), ((), {"x": 1.0, "test": 0}), (("text",), {"test": 0})):
            with self.assertRaisesRegex(TypeError, "A question is one text, one picture, fields by name, or test=NUMBER"):
                run.infer(*question, **fields)
        unlisted = rws.train(Sometimes(), data={"x": [1.0, 2.0]}, iterations=1, progress=False).infer(x=1.0, listed=False)
        self.assertIn("listed=True", str(unlisted))
        with self.assertRaisesRegex(rws.Error, "has . rows, and .* has"):
            rws.train(Mixture(), data={"x": [1.0, 2.0], "y": [1.0]}, iterations=3, progress=False)

    def test_series(self):
        class Chain(rws.Model):
            def setup(self, s):
                self.mean = s.param("theta.mean", 1)
                self.more = s.param("theta.more", 1)
                self.net = s.mlp("phi.net", [1, 4, 1])
                s.series("y")

            def guide(self, p):
                n = p.length("y")
                for t in range(n):
                    p.bernoulli("z", self.net(p.item("y", t)))
                    if t < 3:
                        p.bernoulli("more", 60.0 if t + 1 < n else -60.0)

            def model(self, p):
                for t in range(4):
                    p.normal("y", self.mean * p.bernoulli("z", 0.0), 1)
                    if t < 3 and not p.bernoulli("more", self.more):
                        break

        r = np.random.default_rng(0)
        y = [3.0 * r.integers(0, 2, size=n) + r.normal(size=n) for n in r.integers(1, 5, size=200)]
        run = rws.train(Chain(), data={"y": y}, method="wws", iterations=400, lr=3e-2, particles=10, progress=False)
        self.assertLess(abs(run.state_dict()["theta.mean"][0] - 3), 1)
        self.assertEqual(len(run.sample(3)[0].fields["y"].shape), 2)
        self.assertEqual(len(run.infer(y=[0.1, 2.9, 3.1]).particles[0].choices["z"]), 3)
        with self.assertRaisesRegex(rws.Error, "at most"):
            run.infer(y=[0.0] * 9)
        with self.assertRaisesRegex(rws.Error, "no series"):
            rws.train(Chain(), data={"y": np.zeros(5)}, iterations=2, progress=False)

    def test_mean_of_visits(self):
        """Particles that visit a site differently often have no mean of it."""
        with rws.train(Steps(), data=walks(), iterations=2, particles=3, progress=False) as run:
            answers = run.infer(x=2.0)
            self.assertGreater(len({np.size(p.choices["end"]) for p in answers.particles}), 1)
            with self.assertRaisesRegex(rws.Error, r"equally often; marginal\('end'\) and to_pandas"):
                answers.mean("end")
            self.assertAlmostEqual(sum(answers.marginal("end").values()), 1, places=5)

    def test_settings_of_numpy(self):
        got = []

        class M(Mixture):
            settings = {"a": np.int64(3), "b": np.float32(0.5), "c": np.bool_(True), "d": rws.Setting(np.int32(4), 1, 9)}

            def setup(self, s):
                super().setup(s)
                got.append([s[k] for k in "abcd"])

        with rws.Trainer(M(), data=clusters()):
            pass
        self.assertEqual([(type(x), x) for x in got[-1]], [(int, 3), (float, 0.5), (bool, True), (int, 4)])

    def test_fields_of_compute(self):
        """A field that is missing is refused; a label that is missing is not known."""
        got = []

        class M(Mixture):
            fields: dict = {}

            def setup(self, s):
                super().setup(s)
                s.field("x", 1)
                s.field("n", 1)
                s.label("truth", 1)

            def model(self, p):
                super().model(p)
                p.normal("n", 0.0, 1.0)

            @rws.metric
            def m(self, e):
                got.append(e.compute(lambda p: p.observed("x") + p.observed("n"), 1, **self.fields))
                return 0.0

        data = {k: np.ones(20) for k in ("x", "n", "truth")}
        for fields, sentence in (({"x": [[1.0], [2.0]]}, "The field 'n' is missing"), ({"x": [[1.0]], "k": [[1.0]]}, "There is no field 'k'"),
                                 ({"x": [[1.0], [2.0]], "n": [[3.0], [4.0]]}, None), ({}, None)):
            M.fields = fields
            with self.subTest(fields=fields), rws.Trainer(M(), data=data, particles=2) as t:
                if sentence is None:
                    t.evaluate()
                else:
                    with self.assertRaisesRegex(rws.Error, sentence):
                        t.evaluate()
        np.testing.assert_array_equal(got[0].reshape(-1), [4, 6])

    def test_metrics_snapshots_settings(self):
        class M(Mixture):
            settings = {"spread": 1.0, "n": rws.Setting(3, 2, 9, help="clusters"), "kind": "plain"}
            defaults = dict(iterations=4, eval_every=2, particles=4, lr="1e-2")

            def setup(self, s):
                super().setup(s)
                self.seen = s["spread"], s["n"], s["kind"]

            @rws.metric
            def total(self, e):
                """The sum of the prior."""
                q = e.compute(lambda p: rws.exp(rws.log_softmax(self.net(p.observed("x")))), 3)
                assert q.shape == (e.size, 3)
                return float(q.sum() / e.size) + self.seen[0]

            @rws.posterior_metric
            def right(self, particle):
                return particle.report("z") == round(particle.datum("x")[0] / 4)

            @rws.guide_metric(name="guess")
            def other(self, particle):
                return particle.report("z")

            @rws.snapshot
            def p(self, e):
                for i, x in enumerate(self.prior.values[0]):
                    e.show(x, f"z = {i}")

        with tempfile.TemporaryDirectory() as folder:
            run = rws.train(M(), data=clusters(), set={"spread": 2.5}, out=f"{folder}/r", progress=False)
            m = run.evaluate()
            self.assertAlmostEqual(m["total"], 3.5, places=4)
            self.assertTrue(0 <= m["right"] <= 1)
            self.assertIn("guess", m)
            self.assertEqual(run.snapshots()["p"][0][2], ["z = 0", "z = 1", "z = 2"])
            run.close()
        with self.assertRaisesRegex(rws.Error, "n "):
            rws.Trainer(M(), data=clusters(), set={"n": 99})

        class Bad(M):
            @rws.posterior_metric
            def right(self, particle):
                raise KeyError("oh")

        with self.assertRaisesRegex(KeyError, "oh"):
            rws.train(Bad(), data=clusters(), progress=False)

    def test_questions(self):
        class M(Mixture):
            def read(self, text):
                return {"x": float(text)}

            def posterior(self, x):
                l = self.prior.values[0] - 0.5 * (x[0] - 4 * np.arange(3)) ** 2
                return 0.0, {"z": {str(i): q for i, q in enumerate(np.exp(l) / np.exp(l).sum())}}

            def model(self, p):
                z = p.categorical("z", self.prior)
                if p.reports:
                    p.report("z", str(int(z)))
                p.normal("x", 4 * z, 1)

        run = rws.train(M(), data=clusters(), iterations=50, progress=False)
        a = run.infer("2.1", particles=5000)
        for q in a:
            self.assertAlmostEqual(q.exact, q.posterior, delta=0.05)
        with self.assertRaisesRegex(ValueError, "could not convert"):
            run.infer("two")
        with self.assertRaisesRegex(rws.Error, "no field 'y'"):
            run.infer(y=3)
        with self.assertRaises(rws.Error):
            run.score({"z": 7}, x=1.0)
        with self.assertRaises(rws.Error):
            run.score({}, x=1.0)

    def test_built_in_and_plugin(self):
        run = rws.train("gmm", iterations=20, particles=4, progress=False, set={"components": 5})
        self.assertEqual(run.state_dict()["theta"].shape, (5,))
        self.assertIn("gmm", rws.models())
        with self.assertRaisesRegex(rws.Error, "no model"):
            rws.train("nothing")
        toy = os.path.join(os.environ.get("RWS_TESTS_BUILD", ""), "tests", "toy.so")
        if os.path.exists(toy):
            self.assertEqual(rws.train(toy, iterations=3, progress=False).iteration, 3)
            t = rws.Trainer(toy)
            asker = t._posterior()
            t.close()  # the posterior continues with the code of the shared object
            self.assertEqual(asker.infer(test=1, particles=10).n_particles, 10)

    def test_kernels(self):
        class K(Mixture):
            @staticmethod
            def near(datum, made):
                return -0.5 * float((datum[0] - made[0]) ** 2)

            def model(self, p):
                z = p.choose("z", self.prior)
                p.simulate("x", [4.0 * z], self.near)

        a = rws.train(K(), data=clusters(), iterations=10, seed=1, progress=False)
        b = rws.train(Mixture(), data=clusters(), iterations=10, seed=1, progress=False)
        np.testing.assert_allclose(a.state_dict()["theta.prior"], b.state_dict()["theta.prior"], rtol=1e-3, atol=1e-5)

        class Bad(K):
            @staticmethod
            def near(datum, made):
                raise KeyError("in a kernel")

        with self.assertRaisesRegex(KeyError, "in a kernel"):
            rws.train(Bad(), data=clusters(), iterations=2, progress=False)

    def test_own_distributions(self):
        if rws._rws.replays:
            self.skipTest("programs are replayed")
        half = 0.5 * np.log(2 * np.pi)
        mine = rws.Family("mine", 2, lambda p, x, m, s: rws.sum(-0.5 * ((x - m) / s) ** 2 - rws.log(s) - half),
                          draw=lambda p, m, s: m + s * p.noise_normal(1), reparameterised=True)

        class A(rws.Model):
            family = mine

            def setup(self, s):
                self.m = s.param("theta.m", 1)
                self.net = s.linear("phi.net", 1, 1)
                s.field("x", 1)

            def guide(self, p):
                p.site("z", self.family, self.net(p.observed("x")), 0.8)

            def model(self, p):
                z = p.site("z", self.family, self.m, 1.0)
                p.observe("x", lambda p, x: p.log_density(self.family, x, z, 1.0) if self.family is mine else
                          rws.normal_density(x, z, 1), draw=lambda p: z + p.noise_normal(1))

        class B(A):
            def guide(self, p):
                p.normal("z", self.net(p.observed("x")), 0.8)

            def model(self, p):
                p.normal("x", p.normal("z", self.m, 1), 1)

        x = clusters(200)
        for method in ("ww", "ws", "vimco"):
            a, b = (rws.train(m, data=x, method=method, iterations=20, seed=1, progress=False) for m in (A(), B()))
            for k, v in a.state_dict().items():
                np.testing.assert_allclose(v, b.state_dict()[k], rtol=2e-3, atol=2e-4, err_msg=method)
        self.assertEqual(len(a.sample(4)), 4)

        class Bad(A):
            family = rws.Family("bad", 2, lambda p, x, m, s: 1 / 0)

        with self.assertRaises((ZeroDivisionError, rws.Error)):
            rws.train(Bad(), data=x, iterations=2, progress=False)

        class Bad2(A):
            def model(self, p):
                z = p.site("z", self.family, self.m, 1.0)
                p.observe("x", lambda p, x: 1 / 0)

        t = rws.Trainer(Bad2(), data=x)
        for _ in range(3):
            with self.assertRaises(ZeroDivisionError):
                t.step()

        class Bad3(A):
            def model(self, p):
                z = p.site("z", self.family, self.m, 1.0)
                p.observe("x", lambda p, x: x + [1, 2])

        with self.assertRaisesRegex(rws.Error, "2 numbers"):
            rws.train(Bad3(), data=x, iterations=2, progress=False)

        class Mix(B):
            def model(self, p):
                z = p.normal("z", self.m, 1)
                p.mixture("x", [0.0, 0.0], [("normal", z, 1.0), ("normal", z, 1.0)])

        a, b = (rws.train(m, data=x, iterations=20, seed=1, progress=False) for m in (Mix(), B()))
        np.testing.assert_allclose(a.state_dict()["theta.m"], b.state_dict()["theta.m"], rtol=1e-3)

    def test_step_by_step(self):
        with rws.Trainer(Mixture(), data=clusters(), particles=4) as t:
            before = t.state_dict()["theta.prior"].copy()
            t.step()
            self.assertFalse((before == t.state_dict()["theta.prior"]).all())
            t.load_state_dict({"theta.prior": before})
            self.assertTrue((before == t.state_dict()["theta.prior"]).all())
            self.assertEqual(t.gradient().size, sum(v.size for v in t.state_dict().values()))
            self.assertEqual(len(t.infer(x=1.0)), 3)
        with self.assertRaisesRegex(rws.Error, "closed"):
            t.step()


class Threads(unittest.TestCase):
    def test_two_threads_ask(self):
        run = rws.train(Steps(), data=walks(), iterations=30, progress=False)
        want = [str(run.infer(x=float(i % 5), seed=i)) for i in range(8)]
        got = [None] * 8

        def ask(k):
            for i in range(k, 8, 2):
                got[i] = str(run.infer(x=float(i % 5), seed=i))

        threads = [threading.Thread(target=ask, args=(k,)) for k in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(got, want)

    def test_two_trainers(self):
        want = bits(rws.train(Steps(), data=walks(), iterations=15, seed=1, progress=False))
        got = [None, None]

        def work(k):
            got[k] = bits(rws.train(Steps(), data=walks(), iterations=15, seed=1, threads=2, progress=False))

        threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(got, [want, want])

    def test_in_use(self):
        t = rws.Trainer(Steps(), data=walks(), iterations=100000, threads=2)
        thread = threading.Thread(target=lambda: t.train(progress=False))
        thread.start()
        time.sleep(0.3)
        with self.assertRaisesRegex(RuntimeError, "in use"):
            t.step()
        t.stop()
        thread.join(20)
        self.assertFalse(thread.is_alive())
        t.step()


def process(text, *arguments, **options):
    """Another Python with this program, which sees the package and these toys."""
    path = os.pathsep.join([os.path.dirname(os.path.abspath(__file__)), *sys.path])
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(text), *arguments], env={**os.environ, "PYTHONPATH": path},
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


class Processes(unittest.TestCase):
    def finish(self, p, timeout=60):
        out, err = p.communicate(timeout=timeout)
        return p.returncode, out, err

    def test_ctrl_c(self):
        with tempfile.TemporaryDirectory() as folder:
            p = process("""
                import rws, sys
                from toys import Steps, walks
                try:
                    rws.train(Steps(), data=walks(), iterations=10**7, out=sys.argv[1], progress=False, eval_every=10**6,
                              callbacks=lambda t, m: print("on", flush=True))
                except rws.Interrupted as e:
                    print(e)
                    print(e.run.infer(x=1.0).n_particles)
                """, folder + "/r")
            p.stdout.readline()
            time.sleep(0.5)
            p.send_signal(signal.SIGINT)
            code, out, err = self.finish(p)
            self.assertEqual((code, err), (0, ""))
            self.assertRegex(out, r"(?s)Stopped after iteration \d+; the checkpoint is in .*1000")
            again = rws.open(folder + "/r", Steps())
            self.assertGreater(again.iteration, 0)

    def test_ctrl_c_of_a_c_model(self):
        p = process("""
            import rws
            try:
                rws.train("gmm", iterations=10**7, progress=False, callbacks=lambda t, m: print("on", flush=True))
            except KeyboardInterrupt:
                print("stopped")
            """)
        p.stdout.readline()
        p.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(p)[:2], (0, "stopped\n"))

    def test_exit_with_everything_open(self):
        for how in ("pass", "sys.exit(0)", "raise SystemExit(0)"):
            p = process(f"""
                import rws, sys
                from toys import Steps, walks
                t = rws.Trainer(Steps(), data=walks(), threads=3)
                t.step()
                run = rws.train(Steps(), data=walks(), iterations=3, threads=2, progress=False)
                run.infer(x=1.0)
                keep = [t, run]
                {how}
                """)
            self.assertEqual(self.finish(p), (0, "", ""))

    def test_exit_while_training(self):
        p = process("""
            import rws, threading, time
            from toys import Steps, walks
            t = rws.Trainer(Steps(), data=walks(), iterations=10**7)
            threading.Thread(target=lambda: t.train(progress=False), daemon=True).start()
            time.sleep(0.5)
            """)
        self.assertEqual(self.finish(p)[0], 0)

    def test_ctrl_c_of_a_question(self):
        p = process("""
            import os, rws, signal, threading, time
            from toys import Steps, walks
            run = rws.train(Steps(), data=walks(), iterations=3, progress=False)
            threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            start = time.monotonic()
            try:
                run.infer(x=1.0, particles=10000000, listed=False)
            except KeyboardInterrupt:
                print("interrupted", time.monotonic() - start < 10, flush=True)
            print(len(run.infer(x=1.0, particles=10)) > 0, flush=True)
            """)
        self.assertEqual(self.finish(p), (0, "interrupted True\nTrue\n", ""))

    def test_fork(self):
        p = process("""
            import os, rws
            from toys import Steps, walks
            t = rws.Trainer(Steps(), data=walks(), threads=2)
            t.step()
            run = rws.train(Steps(), data=walks(), iterations=3, progress=False)
            want = str(run.infer(x=1.0))
            import warnings
            warnings.simplefilter("ignore")  # of fork in a process with threads
            pid = os.fork()
            if pid == 0:
                try:
                    t.step()
                except RuntimeError as e:
                    print("forked" in str(e), flush=True)
                again = rws.train(Steps(), data=walks(), iterations=3, threads=2, progress=False)
                print(str(again.infer(x=1.0)) == want, flush=True)
                os._exit(0)
            print(os.waitpid(pid, 0)[1], flush=True)
            t.step()
            """)
        self.assertEqual(self.finish(p), (0, "True\nTrue\n0\n", ""))

    def test_program(self):
        done = subprocess.run([sys.executable, "-m", "rws", "--version"], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
        self.assertEqual(done.stdout.strip(), "rws " + rws.__version__)
