"""The Python of the documents runs as it stands."""

import os
import re
import unittest

from test_train import process

ROOT = os.environ.get("RWS_TESTS_ROOT", "")


def blocks(name):
    path = os.path.join(ROOT, name)
    if not ROOT or not os.path.exists(path):
        raise unittest.SkipTest("the documents are not here")
    with open(path) as f:
        return re.findall(r"```python\n(.*?)```", f.read(), re.S)


def runs(code):
    p = process(code)
    out, err = p.communicate(timeout=300)
    return p.returncode, out, err


class Documents(unittest.TestCase):
    def block(self, name, having):
        found = [b for b in blocks(name) if having in b]
        self.assertEqual(len(found), 1, having)
        return found[0]

    def test_first_example(self):
        code = blocks("docs/python.md")[0]
        self.assertIn("iterations=2000", code)
        self.assertEqual(runs(code.replace("iterations=2000", "iterations=100"))[::2], (0, ""))

    def test_readme(self):
        code = self.block("README.md", "rws.train")
        status, out, err = runs(code)
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out, r"\nAnswer\({'guests': 3.0}, posterior=0\.6")

    def test_every_block_compiles(self):
        for b in blocks("docs/python.md") + blocks("README.md"):
            compile(b, "a block", "exec")

    def test_coming_from_pyro(self):
        """Both programs learn the same weights; Pyro's runs where it is installed."""
        status, out, err = runs(self.block("docs/python.md", "lr=2e-2"))
        self.assertEqual((status, err), (0, ""))
        found = [float(v) for v in re.findall(r"0\.\d+", out)]
        for p, true in zip(found, (0.2, 0.3, 0.5), strict=True):
            self.assertAlmostEqual(p, true, delta=0.06)
        try:
            import pyro  # noqa: F401
        except ImportError:
            self.skipTest("Pyro is not installed")
        status, out, err = runs(self.block("docs/python.md", "import pyro\n").replace("range(500)", "range(20)"))
        self.assertEqual(status, 0, err)
        self.assertIn("tensor", out)

    def test_files(self):
        """The model of the section on data, with a body, on the file of examples."""
        code = self.block("docs/python.md", "class Trips").replace("        ...\n", """\
        self.prior = s.param("theta.prior", 3)

    def guide(self, p):
        p.categorical("z", self.net(p.observed("x")))

    def model(self, p):
        p.normal("x", rws.onehot(p.categorical("z", self.prior), 2 + 1)[:2] * 10, 20)
""").replace("\"trips.csv\"", repr(os.path.join(ROOT, "examples", "trips.csv"))).replace("out=\"run\"", "out=\"run\", iterations=5")
        with_folder = "import os, tempfile, rws\nos.chdir(tempfile.mkdtemp())\n" + code
        self.assertEqual(runs(with_folder)[::2], (0, ""))

    def test_gaussian_process(self):
        """The lines about a Gaussian process agree with numpy."""
        lines = self.block("docs/python.md", "rws.cholesky")
        code = f"""
import math
import numpy as np
import rws

n, s2 = 3, 0.5
k = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.5], [0.2, 0.5, 1.0]], np.float32)

class M(rws.Model):
    def setup(self, s):
        self.net = s.linear("phi.net", 3, 1)
    def guide(self, p):
        p.bernoulli("z", self.net(p.observed("y")))
    def model(self, p):
        p.bernoulli("z", 0)
        p.observe("y", self.log_p)
    def log_p(self, p, y):
        global k
{''.join('        ' + line + chr(10) for line in lines.strip().split(chr(10))).replace('rws.add_diagonal(k, s2)', 'rws.add_diagonal(p.constant(k), s2)')}
        return log_p

y = np.array([0.3, -1.0, 0.7])
t = rws.Trainer(M(), dict(y=np.stack([y] * 4)))
got = t._posterior().score(dict(z=0), y=y)[0] - math.log(0.5)
c = k + s2 * np.eye(3)
want = -0.5 * (y @ np.linalg.solve(c, y) + np.log(np.linalg.det(c)) + 3 * math.log(2 * math.pi))
assert abs(got - want) < 1e-4, (got, want)
"""
        if runs("import rws; assert not rws._rws.replays")[0]:
            self.skipTest("programs are replayed")
        self.assertEqual(runs(code)[::2], (0, ""))

    def test_checkpoint(self):
        code = self.block("docs/python.md", "def load(path)")
        first = """
import os, tempfile, numpy as np, rws
os.chdir(tempfile.mkdtemp())
rws.train("gmm", iterations=2, progress=False, out="run").close()
"""
        status, out, err = runs(first + code)
        self.assertEqual((status, out, err), (0, "(16, 1)\n", ""))
