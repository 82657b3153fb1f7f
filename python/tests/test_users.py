"""What users do in a notebook: stop and continue, look at closed runs, give data and parameters of the wrong kind."""

import gc
import json
import pickle
import signal
import tempfile
import threading
import unittest
import warnings
import weakref

import numpy as np

import rws
from rws._program import call
from toys import Mixture, Steps, clusters, walks


class Stopping(unittest.TestCase):
    def test_an_evaluation_that_was_stopped_leaves_nothing(self):
        """A stop lands in an evaluation about every third time; what its programs raised is not raised by the next call."""
        for i in range(12):
            t = rws.Trainer(Mixture(), clusters(), iterations=10**6, batch=10, particles=5, eval_particles=2000, eval_every=20)
            timer = threading.Timer(0.06 + 0.003 * i, t.stop)
            timer.start()
            self.assertFalse(t.train(progress=False))
            t.evaluate()
            t.step()
            t.close()

    def test_an_evaluation_that_was_stopped_is_made_again(self):
        t = rws.Trainer(Mixture(), clusters(), iterations=40, particles=5, eval_every=10)
        for _ in range(20):
            t.step()
        t.train(progress=False)
        self.assertEqual([m.iteration for m in t.evaluations], [20, 30, 40])

    def test_callbacks_are_called_once_for_each_evaluation(self):
        seen = []
        rws.train(Mixture(), clusters(), iterations=30, eval_every=10, progress=False,
                  callbacks=lambda t, m: seen.append(m.iteration))
        self.assertEqual(seen, [1, 10, 20, 30])

    def test_an_interrupted_run_goes_on_in_the_same_process(self):
        with tempfile.TemporaryDirectory() as folder:
            def interrupt(t, m):
                if m.iteration == 10:
                    signal.raise_signal(signal.SIGINT)

            with self.assertRaises(rws.Interrupted) as caught:
                rws.train(Mixture(), clusters(), iterations=10**6, eval_every=10, progress=False, out=folder, callbacks=interrupt)
            kept = caught.exception.run  # as sys.last_value keeps it in a notebook
            done = kept.iteration
            run = rws.resume(folder, Mixture(), clusters(), iterations=done + 5, progress=False)
            self.assertEqual(run.iteration, done + 5)
            self.assertIn("closed", repr(kept))
            with self.assertRaisesRegex(rws.Error, "rws.open"):
                kept.infer(x=1.0)
            again = rws.resume(folder, Mixture(), clusters(), iterations=done + 7, progress=False)
            self.assertEqual(again.iteration, done + 7)
            again.close()


class Memory(unittest.TestCase):
    def test_a_giver_may_refer_to_its_trainer(self):
        t = rws.Trainer(Mixture(), clusters(), iterations=10)
        t.give(lambda iteration, datum, fields: {"z": t.iteration % 3})
        t.step()
        gone = weakref.ref(t._inner)
        del t
        gc.collect()
        self.assertIsNone(gone())


class Answers(unittest.TestCase):
    def test_equal_particles_are_one_row(self):
        run = rws.train(Mixture(), clusters(), iterations=20, progress=False)
        answers = run.infer(x=2.1, particles=10000)
        self.assertLessEqual(len(answers.particles), 3)
        self.assertEqual(sum(p.count for p in answers.particles), 10000)
        for p in answers.particles:
            self.assertAlmostEqual(p.weight, answers.marginal("z")[p.choices["z"]])

    def test_visits_and_reports(self):
        run = rws.train(Steps(), {"x": walks()}, iterations=20, progress=False)
        answers = run.infer(x=2.0, particles=500)
        first, second = answers.marginal(("end", 0)), answers.marginal(("end", 1))
        self.assertAlmostEqual(sum(first.values()), 1)
        self.assertAlmostEqual(second.get(None, 0.0), first[1.0])  # a walk that ended has no second visit
        n = answers.marginal("n")
        self.assertAlmostEqual(sum(k * w for k, w in n.items()), float(answers.mean("n")))
        self.assertAlmostEqual(n[0.0], first[1.0])
        for wrong in "nothing", ("end", 9):
            with self.assertRaisesRegex(KeyError, "the sites are 'end', and the reports 'n'"):
                answers.marginal(wrong)
        with self.assertRaisesRegex(TypeError, "rws.open"):
            pickle.dumps(run)

    def test_a_dict_is_what_the_program_prints(self):
        with tempfile.TemporaryDirectory() as folder:
            run = rws.train("gmm", iterations=20, seed=3, out=f"{folder}/run", progress=False)
            answers = run.infer(x=3.5, particles=200, seed=5)
            printed = json.loads(call("infer", f"{folder}/run", "3.5", "-k", "200", "--seed", "5", "--top", "0", "--choices", "--marginals",
                                      "--json"))
            del printed["asked"]
            self.assertEqual(answers.to_dict(), printed)
            self.assertEqual(answers.marginals, printed["marginals"])
            z = printed["marginals"][0]
            self.assertEqual(answers.marginal("z"), {v["value"]: v["posterior"] for v in z["values"]})
            self.assertEqual([p.weight for p in answers.particles], [p["weight"] for p in printed["particles_listed"]])
            unlisted = run.infer(x=3.5, particles=200, seed=5, listed=False)
            self.assertEqual(unlisted.to_dict(), {k: v for k, v in printed.items() if k not in ("marginals", "particles_listed")})
            copy = pickle.loads(pickle.dumps(answers))
            self.assertEqual((copy.to_dict(), copy.marginals, copy.mean("z")), (answers.to_dict(), answers.marginals, answers.mean("z")))

    def test_marginals_are_those_of_the_particles(self):
        class Both(Mixture):
            def model(self, p):
                z = p.categorical("z", self.prior)
                p.normal("x", p.normal("a", 4 * z, 1), 1)

            def guide(self, p):
                x = p.observed("x")
                p.categorical("z", self.net(x))
                p.normal("a", x, 1)

        answers = rws.train(Both(), clusters(), iterations=20, progress=False).infer(x=2.1, particles=500)
        a, z = answers.marginals
        self.assertEqual((a["site"], z["site"]), ("a", "z"))
        w, values = (np.array(v) for v in zip(*((p.weight, p.choices["a"]) for p in answers.particles)))
        self.assertAlmostEqual(a["mean"][0], answers.mean("a"), places=12)
        self.assertAlmostEqual(a["sd"][0], np.sqrt((w * (values - w @ values) ** 2).sum()), places=6)
        for v in z["values"]:
            having = [p for p in answers.particles if p.choices["z"] == v["value"]]
            self.assertAlmostEqual(v["posterior"], sum(p.weight for p in having), places=12)
            self.assertAlmostEqual(v["guide"], sum(p.count for p in having) / 500, places=12)

    def test_asking_a_trainer_sets_no_model_up(self):
        calls = []

        class Counted(Mixture):
            def setup(self, s):
                calls.append(1)
                super().setup(s)

        t = rws.Trainer(Counted(), clusters(), iterations=10)
        n = len(calls)
        first = t.infer(x=2.1, particles=100)
        self.assertEqual(t.infer(x=2.1, particles=100).log_evidence, first.log_evidence)
        t.give(lambda iteration, datum, fields: {"z": 0})
        t.step()
        self.assertNotEqual(t.infer(x=2.1, particles=100).log_evidence, first.log_evidence)
        self.assertEqual(len(calls), n)
        self.assertEqual(rws.Run(t).infer(x=2.1, particles=100).to_dict(), t.infer(x=2.1, particles=100).to_dict())

    def test_questions(self):
        run = rws.train(Mixture(), clusters(300), iterations=5, progress=False)
        run.infer(test=29)
        with self.assertRaisesRegex(rws.Error, "no test datum 30; there are 30"):
            run.infer(test=30)
        for seed in -1, 2**64:
            with self.assertRaisesRegex(ValueError, "seed"):
                run.infer(x=1.0, seed=seed)
        for wrong in {"seed": 1.5}, {"particles": 1e3}:
            with self.assertRaises(TypeError):
                run.infer(x=1.0, **wrong)
        with run:
            pass
        self.assertEqual(repr(run), "<rws.Run, closed>")


class Parameters(unittest.TestCase):
    def test_shapes(self):
        t = rws.Trainer(Mixture(), clusters())
        before = t.state_dict()
        w = before["phi.net.0.weight"]
        for wrong, error, sentence in (({"theta.prior": [1, 2, 3], "phi.net.0.weight": w.T}, ValueError, r"\(16, 1\), not \(1, 16\)"),
                                       ({"theta.prior": [1, 2, 3], "nope": 1}, KeyError, "nope"),
                                       ({"theta.prior": [1, np.nan, 3]}, ValueError, "finite")):
            with self.assertRaisesRegex(error, sentence):
                t.load_state_dict(wrong)
            for name, a in t.state_dict().items():
                np.testing.assert_array_equal(a, before[name])
        t.load_state_dict({"theta.prior": [1, 2, 3]})
        np.testing.assert_array_equal(t.state_dict()["theta.prior"], [1, 2, 3])

        class M(Mixture):
            def setup(self, s):
                super().setup(s)
                s.param("theta.q", (2, 3), init=np.arange(6).reshape(3, 2))

        with self.assertRaisesRegex(ValueError, r"\(2, 3\), not \(3, 2\)"):
            rws.Trainer(M(), clusters())

    def test_a_parameter_that_does_not_learn(self):
        class M(Mixture):
            def setup(self, s):
                self.prior, self.net = s.param("theta.prior", 3), s.mlp("net", [1, 16, 3])

        with self.assertWarnsRegex(UserWarning, "'net.0.weight' has had no gradient"):
            rws.train(M(), clusters(), method="ws", iterations=5, progress=False, check=False)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for method in "ws", "ww", "dww", "vimco":
                rws.train(Mixture(), clusters(), method=method, iterations=5, progress=False)

    def test_help(self):
        self.assertIn("network of linear layers", rws.Setup.mlp.__doc__)
        self.assertEqual(rws.Model(setup=lambda s: None, guide=lambda p, s: None, model=lambda p, s: None).name, "model")


class Data(unittest.TestCase):
    def test_what_is_no_number(self):
        x = clusters(50)
        for wrong, sentence in ((np.ma.array(x, mask=x > 4), "'x' has masked numbers"),
                                (np.array(["a"] * 50), "'x' has values of the type"),
                                (x.astype(complex), "'x' has values of the type"),
                                (np.array(["2020-01-01"] * 50, "datetime64[s]"), "'x' has values of the type")):
            with self.assertRaisesRegex(rws.Error, sentence):
                rws.Trainer(Mixture(), {"x": wrong})
        rws.Trainer(Mixture(), {"x": np.ma.array(x)}).close()
        for name in "iterations", "particles", "batch", "eval_every":
            with self.assertRaisesRegex(ValueError, f"{name} is at least 1"):
                rws.Trainer(Mixture(), x, **{name: 0})

    def test_data_that_no_particle_explains(self):
        class M(Mixture):
            def model(self, p):
                p.delta("x", p.categorical("z", self.prior))

        x = np.arange(100) // 10 % 5  # every tenth is a test datum
        with self.assertWarnsRegex(UserWarning, "No particle explains 40 % of the test data"):
            run = rws.train(M(), x, iterations=5, progress=False)
        self.assertAlmostEqual(run.evaluate().impossible, 0.4)

    def test_a_value_is_no_array(self):
        class M(Mixture):
            def model(self, p):
                np.array(p.categorical("z", self.prior))

        with self.assertRaisesRegex(TypeError, "Path.look"):
            rws.train(M(), clusters(), iterations=1, progress=False)


if __name__ == "__main__":
    unittest.main()
