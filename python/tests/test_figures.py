"""Figures: made by the program, shown in notebooks."""

import contextlib
import io
import os
import tempfile
import unittest

import numpy as np

import rws
from toys import Mixture, clusters


class Figures(unittest.TestCase):
    def good(self, figure):
        self.assertIn("<svg", figure._repr_svg_())
        self.assertEqual(figure._repr_png_()[:4], b"\x89PNG")
        with tempfile.TemporaryDirectory() as f:
            figure.save(f + "/a.pdf")
            with open(f + "/a.pdf", "rb") as p:
                self.assertEqual(p.read(4), b"%PDF")

    def test_trees(self):
        self.good(rws.tree("(S (NP stars) (VP (V saw) (NP ears)))", title="a tree"))
        self.good(rws.tree(["(S a)", "(S b)"], captions=["0.6", "0.4"]))
        with self.assertRaisesRegex(rws.Error, "tree"):
            rws.tree("(S (NP")._repr_svg_()

    def test_hinton(self):
        self.good(rws.hinton({"true": [0.1, 0.2, 0.7], "ww": [0.3, 0.3, 0.4]}))
        self.good(rws.hinton({"ww": [[0.5, 0.5], [0.1, 0.9]]}, columns=["before", "after"]))

    def test_grid(self):
        self.good(rws.grid(np.random.default_rng(0).random((7, 8, 8)), columns=3))
        with self.assertRaisesRegex(ValueError, "no images"):
            rws.grid(np.zeros((0, 8, 8)))

    def test_without_a_folder(self):
        run = rws.train(Mixture(), data=clusters(), iterations=20, eval_every=5, progress=False)
        self.good(run.plot("ess"))
        self.assertEqual(run.config["seed"], 1)  # as on the command line
        table = run._repr_html_()
        self.assertIn("<th>ess</th>", table)
        self.assertIn("20 of 20", table)
        run.close()
        self.assertIn("closed", run._repr_html_())

    def test_chart(self):
        with tempfile.TemporaryDirectory() as f:
            for seed in range(2):
                rws.train(Mixture(), data=clusters(), iterations=20, eval_every=5, seed=seed, out=f"{f}/{seed}", progress=False).close()
            self.good(rws.runs(f).plot("log_evidence", "ess"))
            run = rws.open(f"{f}/0", Mixture())
            self.good(run.plot("ess", title="ess"))
            with self.assertRaises(rws.Error):
                run.plot("nothing")._repr_svg_()

    def test_bar(self):
        """A bar on a terminal, to its end, and where training is stopped."""
        out = io.StringIO()
        with contextlib.redirect_stderr(out):
            rws.train(Mixture(), data=clusters(), iterations=30, eval_every=10, progress=True)
            rws.train(Mixture(), data=clusters(), iterations=3000, eval_every=10, progress=True, callbacks=lambda t, m: m.iteration < 20)
        first, second = (text.split("\r")[-1] for text in out.getvalue().strip("\n").split("\n"))
        self.assertRegex(first, r"\[#{20}\] 30/30  \d+ it/s  0:0\d taken  log_evidence -")
        self.assertRegex(second, r"\[\.{20}\] 20/3000  .* taken")

    def test_notebook(self):
        """A notebook, executed without a screen; what its cells show is looked at."""
        try:
            import nbclient
            import nbformat
        except ImportError:
            self.skipTest("nbclient is not installed")
        here = os.path.dirname(os.path.abspath(__file__))
        package = os.path.dirname(os.path.dirname(os.path.abspath(rws.__file__)))
        cells = ["import sys; sys.path[:0] = [%r, %r]\nimport rws\nfrom toys import Mixture, clusters" % (here, package),
                 "run = rws.train(Mixture(), data=clusters(), iterations=300, out='r')",
                 "run.infer(x=3.9)", "run.plot('log_evidence')", "rws.tree('(S a b)')", "rws.runs('.')"]
        nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
        with tempfile.TemporaryDirectory() as f:
            nbclient.NotebookClient(nb, timeout=120, resources={"metadata": {"path": f}}).execute()
        kinds = [{k for o in c.outputs for k in o.get("data", {})} for c in nb.cells]
        self.assertIn("text/html", kinds[1])  # the bar
        self.assertIn("progress", str(nb.cells[1].outputs))
        self.assertIn("text/html", kinds[2])
        self.assertIn("image/svg+xml", kinds[3])
        self.assertIn("image/svg+xml", kinds[4])
        self.assertIn("finished", str(nb.cells[5].outputs[0]["data"]["text/html"]))
        self.assertIn("300/300", str(nb.cells[1].outputs))
        self.assertNotIn("left", str(nb.cells[1].outputs))  # the bar ends with the time that was taken
