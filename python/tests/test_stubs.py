"""The stubs say what the extension has: names, arguments and docstrings. Everything public has a docstring."""

import ast
import inspect
import os
import re
import types
import unittest

import stubs

import rws
from rws import _rws


def named(body):
    """Functions and classes by name; of a property, its getter, which comes first."""
    return {n.name: n for n in reversed(body) if isinstance(n, (ast.FunctionDef, ast.ClassDef))}


def arguments(f):
    a = f.args
    listed = [x.arg for x in a.args if x.arg != "self"] + (["*" + a.vararg.arg] if a.vararg else [])
    return listed + [x.arg for x in a.kwonlyargs] + (["**" + a.kwarg.arg] if a.kwarg else [])


class Stubs(unittest.TestCase):
    def setUp(self):
        with open(os.path.join(os.path.dirname(rws.__file__), "_rws.pyi")) as f:
            self.source = f.read()
        self.tree = ast.parse(self.source)
        self.stub = named(self.tree.body)

    def same(self, where, real, stub):
        """The docstring of a method or function begins with "name(arguments)" and an empty line; that of a property does not."""
        if real.__doc__ is None:
            self.assertTrue(stub.name.startswith("_"), where)
        elif not inspect.isgetsetdescriptor(real):
            head = re.match(r"(\w+)\((.*?)\)\n\n", real.__doc__, re.S)
            self.assertTrue(head, f"{where}: {real.__doc__!r}")
            listed = [a.split("=")[0].strip() for a in head[2].split(",") if a.strip()]
            self.assertEqual((head[1], listed), (stub.name, arguments(stub)), where)

    def test_texts(self):
        self.assertEqual(stubs.written(self.source, _rws), self.source,
                         "python/tests/stubs.py python/rws/_rws.pyi writes the docstrings of the extension into the stubs")

    def test_names(self):
        real = {n for n in dir(_rws) if not n.startswith("__")}
        data = {n.target.id for n in self.tree.body if isinstance(n, ast.AnnAssign)}
        self.assertEqual(real, set(self.stub) | data)

    def test_functions(self):
        for name, stub in self.stub.items():
            if isinstance(stub, ast.FunctionDef):
                self.same(name, getattr(_rws, name), stub)

    def test_classes(self):
        for name, stub in self.stub.items():
            if not isinstance(stub, ast.ClassDef):
                continue
            real = getattr(_rws, name)
            methods = named(stub.body)
            have = {n for n, o in vars(real).items() if not n.startswith("__")}
            self.assertEqual(have, {n for n in methods if not n.startswith("__")}, name)
            head = re.match(name + r"\((.*?)\)\n\n", real.__doc__, re.S)
            if head:
                self.assertEqual([a.split("=")[0].strip() for a in head[1].split(",")], arguments(methods["__init__"]))
            for n, m in methods.items():
                if n.startswith("__"):
                    self.assertTrue(hasattr(real, n), f"{name}.{n}")
                else:
                    self.same(f"{name}.{n}", vars(real)[n], m)

    def test_docstrings(self):
        public = {n for n, o in vars(rws).items() if not n.startswith("_") and not isinstance(o, types.ModuleType)}
        self.assertEqual(public | {"__version__"}, set(rws.__all__))
        self.assertEqual(len(rws.__all__), len(set(rws.__all__)))
        for name in public:
            o = getattr(rws, name)
            self.assertTrue(o.__doc__, name)
            if isinstance(o, type):
                for n, m in vars(o).items():
                    if not n.startswith("_") and (callable(m) or isinstance(m, property)) and n not in ("setup", "guide", "model"):
                        self.assertTrue(m.__doc__, f"{name}.{n}")

    def test_setup(self):
        """rws.Setup has all declarations of the extension's."""
        with open(os.path.join(os.path.dirname(rws.__file__), "_model.py")) as f:
            source = f.read()
        for name in vars(_rws.Setup):
            if not name.startswith("_"):
                self.assertTrue(f'"{name}"' in source or hasattr(rws.Setup, name), name)
