"""The stubs have every name of the extension, and no other; everything public has a docstring."""

import ast
import os
import unittest

import rws
from rws import _rws


class Stubs(unittest.TestCase):
    def test_names(self):
        path = os.path.join(os.path.dirname(rws.__file__), "_rws.pyi")
        with open(path) as f:
            tree = ast.parse(f.read())
        stub = {n.name: n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
        inner = {"Scope", "Eval", "Particle"}
        real = {n for n in dir(_rws) if not n.startswith("_") and callable(getattr(_rws, n))} - inner
        self.assertEqual(real, set(stub))
        for name in ("Path", "Setup", "Random", "Layer", "Param"):
            have = {n.name for n in stub[name].body if isinstance(n, ast.FunctionDef)}
            want = {n for n in vars(getattr(_rws, name)) if not n.startswith("_")}
            self.assertEqual(want - have, set(), name)

    def test_docstrings(self):
        for name in dir(rws):
            o = getattr(rws, name)
            if name.startswith("_") or not callable(o):
                continue
            self.assertTrue(o.__doc__, name)
