"""rws.check: every planted mistake is found and named, right models have no finding; and mistakes that are errors at once."""

import glob
import importlib
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest
import warnings

import numpy as np

import rws
from rws import _code, _helpers
from toys import Mixture, Steps, clusters, walks

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "mistakes"))
QUIET = dict(iterations=2, particles=3, progress=False)


class Check(unittest.TestCase):
    def test_planted(self):
        n = 0
        for name in sorted(os.listdir(os.path.join(HERE, "mistakes"))):
            if not name.endswith(".py"):
                continue
            for model, kind, severity, about, says, refused in importlib.import_module(name[:-3]).PLANTED:
                n += 1
                with self.subTest(model=model.__name__):
                    data = getattr(model, "arrays", clusters())
                    found = rws.check(model(), data=data, max_operations=20000)
                    self.assertTrue(any(f.kind == kind and f.severity == severity and (about is None or f.about == about)
                                        and says in f.text for f in found), found)
                    self.assertNotRegex(repr(found), r"\brws_|`")
                    self.assertFalse(found.ok)
                    if refused:
                        with self.assertRaisesRegex(rws.Error, r"check=False accepts it"):
                            rws.train(model(), data=data, **QUIET)
        self.assertGreaterEqual(n, 20)

    def test_right(self):
        for model, data in ((Mixture, clusters()), (Steps, walks())):
            found = rws.check(model, data=data)
            self.assertEqual([f for f in found if f.kind != "sum"], [])  # advice is no complaint
            self.assertTrue(found.ok)
            self.assertRegex(repr(found), "An iteration takes .* rows")
        trainer = rws.Trainer(Mixture(), data=clusters())
        before = trainer.state_dict()
        self.assertTrue(trainer.check().ok)
        self.assertTrue(all((a == before[n]).all() for n, a in trainer.state_dict().items()))

    def test_examples(self):
        """The examples in Python have no finding."""
        import dp
        import grammar
        import hmm
        import lines
        import mixture
        import party
        import sticks
        for model, data in ((dp.Galaxies(), None), (grammar.Grammar(), {"the sentence": grammar.data(grammar.sentences(100))}),
                            (hmm.Hmm(), hmm.data(100)), (mixture.Mixture(), {"x": mixture.data(1000)}),
                            (sticks.Sticks(), {"x": sticks.data()}),
                            (lines.Lines(), None), (party.Party(), {"x": party.data(500)})):
            self.assertEqual([f for f in rws.check(model, data=data) if f.kind != "sum"], [], type(model).__name__)

    def test_groups(self):
        """A guide's network in no group is an error under methods that step the two apart, and only there."""
        from programs import NetInNoGroup
        for method in ("ws", "wws", "dww"):
            with self.assertRaisesRegex(rws.Error, "Only the guide uses the parameter \"net.0.weight\""):
                rws.train(NetInNoGroup(), data=clusters(), method=method, **QUIET)
        rws.train(NetInNoGroup(), data=clusters(), method="ww", **QUIET).close()
        rws.train(NetInNoGroup(), data=clusters(), method="wws", check=False, **QUIET).close()

    def test_attributes(self):
        t = rws.Trainer(Mixture(), data=clusters())
        for name, says in (("lr", "resume"), ("batch", "batch=…"), ("l2", "cannot be set"), ("best", "no effect")):
            with self.assertRaisesRegex(AttributeError, says):
                setattr(t, name, 1)
        prior = []

        class Kept(Mixture):
            def setup(self, s):
                super().setup(s)
                prior.append(self.prior)

        with rws.Trainer(Kept(), data=clusters()):
            for compare in (lambda q: q == 0, lambda q: q < 1, lambda q: q != 1.5):
                with self.assertRaisesRegex(TypeError, "no gradient passes through a comparison"):
                    compare(prior[0])
            for f in (float, int, bool):
                with self.assertRaisesRegex(TypeError, "would lose its gradient"):
                    f(prior[0])
            self.assertTrue(prior[0] == prior[0] and prior[0] is not None and prior[0] != None)  # noqa: E711
            self.assertIn(prior[0], {prior[0]: 1})

    def test_impossible(self):
        from data import Times
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            rws.train(Times(), data=Times.arrays, batch=100, order="in order", test_last=True, **QUIET).close()
        told = [str(w.message) for w in caught if "training data" in str(w.message)]
        self.assertEqual(len(told), 1, caught)
        self.assertIn("row 17 of \"the data\" (x = -3), which is impossible at site \"x\"", told[0])
        with self.assertRaisesRegex(rws.Broken, r'first is row \d+ of "the data" \(x = -1\), which is impossible at site "x"'):
            rws.train(Times(), data={"x": np.full(200, -1.0)}, **QUIET)

    def test_recursion(self):
        from programs import NeverEnds
        with self.assertRaisesRegex(Exception, "never ends with a probability above 0"):
            rws.train(NeverEnds(), data=clusters(), **QUIET)

    def test_words(self):
        """No message names a function of C: all that are named in texts of the library have a name in Python."""
        self.assertEqual(_helpers.spelled("Say it (rws_setup_unused), by rws_observed or rws_look."),
                         "Say it (s.unused), by p.observed or p.look.")
        self.assertEqual(_helpers.spelled("rws_layer_bias, rws_exp, rws_item"), "layer.bias, rws.exp, p.item")
        has = {"p": rws.Path, "s": rws.Setup, "rws": rws, "table": rws.Table, "layer": rws.Layer, "param": rws.Param}
        for file in glob.glob(os.path.join(os.environ.get("RWS_TESTS_ROOT", os.path.join(HERE, "..", "..")), "lib", "*", "*.[ch]")):
            with open(file) as f:
                texts = re.findall(r'"((?:[^"\\\n]|\\.)*)"', f.read())
            for name in {n for t in texts if " " in t for n in re.findall(r"\brws_[a-z0-9][a-z0-9_]*\b", t)}:
                spelled = _helpers.spelled(name)
                owner, _, member = spelled.partition(".")
                self.assertTrue(name in _helpers._SPELLED or owner in has and hasattr(has[owner], member), f"{name}: {spelled} in {file}")


CODE = """
    import rws
    SHIFT = {shift}
    def far(z): return {factor} * z
    class M(rws.Model):
        "{text}"
        def setup(self, s):
            self.prior = s.param("theta.prior", 3)
            self.net = s.mlp("phi.net", [1, 4, 3])
        def guide(self, p): p.categorical("z", self.net(p.observed("x")))
        def model(self, p):
            z = p.categorical("z", self.prior)
            p.normal("x", far(z), 1)
"""


class Code(unittest.TestCase):
    def model(self, folder, name="mine", **values):
        """The model of a file with this text."""
        with open(os.path.join(folder, name + ".py"), "w") as f:
            f.write(textwrap.dedent(CODE).format(**{"shift": 0, "factor": 4, "text": "a model", **values}))
        sys.modules.pop(name, None)
        sys.path.insert(0, folder)
        sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
        try:
            importlib.invalidate_caches()
            return importlib.import_module(name).M()
        finally:
            sys.path.remove(folder)
            sys.dont_write_bytecode = before

    def told(self, f):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            f()
        return [str(w.message) for w in caught if "code of the model" in str(w.message)]

    def test_changed(self):
        with tempfile.TemporaryDirectory() as folder:
            run = os.path.join(folder, "run")
            rws.train(self.model(folder), data=clusters(), out=run, **QUIET).close()
            same, other = self.model(folder, text="another docstring"), self.model(folder, factor=40)
            self.assertEqual(self.told(lambda: rws.open(run, same).close()), [])
            told = self.told(lambda: rws.open(run, other).close())
            self.assertEqual(len(told), 1)
            self.assertRegex(told[0], r"began: far changed\. .*changed=True accepts it")
            self.assertEqual(self.told(lambda: rws.open(run, other, changed=True).close()), [])
            self.assertEqual(len(self.told(lambda: rws.resume(run, other, data=clusters(), iterations=3, progress=False).close())), 1)
            resumed = lambda: rws.resume(run, other, data=clusters(), iterations=4, changed=True, progress=False).close()  # noqa: E731
            self.assertEqual(self.told(resumed), [])
            self.assertEqual(self.told(lambda: rws.open(run, other).close()), [])  # it was accepted for good
            with open(os.path.join(run, "code.json"), "w") as f:
                f.write("[")
            self.assertIn("damaged", self.told(lambda: rws.open(run, other).close())[0])

    def test_stable(self):
        """The fingerprint is the same in another interpreter, which orders sets otherwise."""
        with tempfile.TemporaryDirectory() as folder:
            here = _code.fingerprint(self.model(folder))
            script = "import sys; sys.path.insert(0, sys.argv[1]); import mine; from rws import _code; print(_code.fingerprint(mine.M()))"
            for seed in ("1", "2"):
                out = subprocess.run([sys.executable, "-c", script, folder], capture_output=True, text=True, check=True,
                                     env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONDONTWRITEBYTECODE": "1"}).stdout
                self.assertEqual(out.strip(), str(here))
            self.assertEqual(sorted(here["functions"]), ["M.guide", "M.model", "M.setup", "far"])

    def test_functions(self):
        """A model of functions, and another version of Python."""
        m = Mixture()
        f = rws.Model(setup=m.setup, guide=m.guide, model=m.model)
        self.assertTrue(any(n.endswith("Mixture.guide") for n in _code.functions(f)))
        now = _code.fingerprint(m)
        self.assertEqual(_code.differences({"python": "2.7", "functions": {}}, now), [])
        self.assertEqual(_code.differences({**now, "functions": {}}, now), [", ".join(now["functions"]) + " new"])
