"""Everything that can be done with values, against numpy."""

import math
import unittest

import numpy as np

import rws


def computed(f, dim, x=(0.0,), params=None):
    """The value of f(p, x) for the datum x, through a metric of a model that only computes."""
    got = {}

    class Only(rws.Model):
        def setup(self, s):
            s.field("x", len(x))
            self.w = s.param("theta.w", (2, 3), init=np.arange(6))
            self.cell = s.gru("phi.g", 2, 4)
            self.emb = s.embedding("phi.e", 5, 3)

        def guide(self, p):
            p.normal("z", 0, 1)

        def model(self, p):
            p.normal("x", p.normal("z", 0, 1) + np.zeros(len(x), np.float32), 1)

        @rws.metric
        def m(self, e):
            got["v"] = e.compute(lambda p: f(self, p, p.observed("x")), dim, x=np.asarray([x], np.float32))
            return 0.0

    t = rws.Trainer(Only(), data={"x": np.asarray([x, x], np.float32)}, particles=2)
    t.evaluate()
    t.close()
    return got["v"].reshape(-1)


class Values(unittest.TestCase):
    x = (0.5, 2.0, 3.0)

    def same(self, f, g, dim=3):
        x = np.asarray(self.x, np.float32)
        np.testing.assert_allclose(computed(lambda m, p, v: f(v), dim, self.x), np.asarray(g(x)).reshape(-1), rtol=1e-5)

    def test_operators(self):
        for f in (lambda v: v + 1, lambda v: 1 + v, lambda v: v - 2, lambda v: 2 - v, lambda v: v * 3, lambda v: 3 * v,
                  lambda v: v / 2, lambda v: 2 / v, lambda v: -v, lambda v: +v, lambda v: v ** 2, lambda v: v ** 1.5,
                  lambda v: abs(-v), lambda v: v + v, lambda v: v * v, lambda v: v - v * 2, lambda v: v / v,
                  lambda v: v + np.array([1, 2, 3], np.float32), lambda v: np.array([1.0, 2, 3]) * v,
                  lambda v: np.float32(2) * v, lambda v: v * np.int64(2)):
            self.same(f, f)
        self.same(lambda v: v > 1, lambda x: x > 1)
        self.same(lambda v: v < 1, lambda x: x < 1)
        self.same(lambda v: v >= 2.0, lambda x: x >= 2)
        self.same(lambda v: v <= 2.0, lambda x: x <= 2)
        self.same(lambda v: v @ v, lambda x: x @ x, 1)
        self.same(lambda v: [1, 2, 3] + v, lambda x: x + [1, 2, 3])

    def test_equal(self):
        """v == x asks for the number in v, of whatever kind x is; what cannot be compared is refused and never just unequal."""
        for x in (2, 2.0, np.int64(2), np.int8(2), np.float32(2), np.float64(2), np.array(2)):
            with self.subTest(x=repr(x)):
                got = computed(lambda m, p, v: [float(v[1] == x), float(v[2] == x), float(v[1] != x), float(x == v[1]),
                                                float(x == v[2])], 5, self.x)
                self.assertEqual(list(got), [1, 0, 0, 1, 0])
        for x in (10 ** 30, -10 ** 30, 1e30, None, "2"):
            self.assertEqual(list(computed(lambda m, p, v: [float(v[1] == x), float(v[1] != x)], 2, self.x)), [0, 1])
        for x, sentence in ((0.5, "not with 0.5"), (np.float32(0.5), "whole number"), (math.nan, "not with nan"),
                            ([2], r"not with \[2\]"), (np.array([2.0, 3.0]), "whole number")):
            for f in (lambda v: v[1] == x, lambda v: v[1] != x, lambda v: x == v[1]):
                with self.subTest(x=repr(x)), self.assertRaisesRegex(TypeError, sentence):
                    computed(lambda m, p, v: float(f(v)), 1, self.x)
        for f in (lambda m, v: v[1] == v[2], lambda m, v: v[1] == v[1], lambda m, v: v[1] == m.w, lambda m, v: m.w == v[1]):
            with self.assertRaisesRegex(TypeError, r"int\(a\) == int\(b\)"):
                computed(lambda m, p, v: float(f(m, v)), 1, self.x)

    def test_large_powers(self):
        for n in (10 ** 30, -10 ** 30):
            np.testing.assert_array_equal(computed(lambda m, p, v: v ** n, 3, (1.0, 1.0, 1.0)), 1)

    def test_functions(self):
        for name in ("tanh", "exp", "log", "sqrt", "square", "sin", "cos", "log1p", "expm1"):
            self.same(getattr(rws, name), getattr(np, name))
        self.same(rws.relu, lambda x: np.maximum(x, 0))
        self.same(rws.sigmoid, lambda x: 1 / (1 + np.exp(-x)))
        self.same(rws.softplus, lambda x: np.log1p(np.exp(x)))
        self.same(rws.lgamma, lambda x: [math.lgamma(float(a)) for a in x])
        self.same(rws.sum, lambda x: x.sum(), 1)
        self.same(rws.cumulative_sum, np.cumsum)
        self.same(rws.log_sum_exp, lambda x: np.log(np.exp(x).sum()), 1)
        self.same(rws.log_softmax, lambda x: x - np.log(np.exp(x).sum()))
        self.same(rws.argmax, lambda x: x.argmax(), 1)
        self.same(lambda v: rws.minimum(v, 1), lambda x: np.minimum(x, 1))
        self.same(lambda v: rws.maximum(v, 1), lambda x: np.maximum(x, 1))
        self.same(lambda v: rws.clip(v, 1, 2.5), lambda x: np.clip(x, 1, 2.5))
        self.same(lambda v: rws.normal_density(v[0], 0, 1), lambda x: -x[0] ** 2 / 2 - math.log(2 * math.pi) / 2, 1)

    def test_shape(self):
        self.same(lambda v: v[0], lambda x: x[0], 1)
        self.same(lambda v: v[-1], lambda x: x[-1], 1)
        self.same(lambda v: v[1:], lambda x: x[1:], 2)
        self.same(lambda v: v[rws.argmax(v)], lambda x: x.max(), 1)
        self.same(lambda v: rws.concat(v, 1, [2, 3]), lambda x: [*x, 1, 2, 3], 6)
        self.same(lambda v: rws.concat([v, v]), lambda x: [*x, *x], 6)
        self.same(lambda v: rws.sum_many([v, v, v]), lambda x: 3 * x)
        self.same(lambda v: rws.onehot(2, 4), lambda x: [0, 0, 1, 0], 4)
        self.same(lambda v: sum(a for a in v), lambda x: x.sum(), 1)
        self.same(lambda v: rws.concat([len(v) * v[0], v[0]]), lambda x: [3 * x[0], x[0]], 2)

    def test_params_and_layers(self):
        np.testing.assert_allclose(computed(lambda m, p, v: m.w * 2, 6), np.arange(6) * 2.0)
        np.testing.assert_allclose(computed(lambda m, p, v: rws.row(m.w, 1), 3), [3, 4, 5])
        for index in (1, -1, slice(1, 2)):
            np.testing.assert_allclose(computed(lambda m, p, v: m.w[index], 3), [3, 4, 5])
        np.testing.assert_allclose(computed(lambda m, p, v: m.w[p.constant(1)], 3), [3, 4, 5])
        np.testing.assert_allclose(computed(lambda m, p, v: m.w[1, 2], 1), [5])
        np.testing.assert_allclose(computed(lambda m, p, v: m.w[1, :2], 2), [3, 4])
        np.testing.assert_allclose(computed(lambda m, p, v: m.w[0:2], 6), np.arange(6))
        np.testing.assert_allclose(computed(lambda m, p, v: sum(row for row in m.w) + len(m.w), 3), [5, 7, 9])
        for index, kind, words in ((2, IndexError, "The parameter has 2 rows; there is no row 2."),
                                   ((0, 3), IndexError, "The value has 3 components; there is no component 3."),
                                   (slice(2, 2), ValueError, "empty"), (slice(0, 2, 2), ValueError, "step 1"),
                                   ((slice(None), 1), TypeError, "cannot be indexed so: w.i. is a row")):
            with self.assertRaisesRegex(kind, words):
                computed(lambda m, p, v: m.w[index], 1)
        shown = []
        computed(lambda m, p, v: shown.append(repr(p.look(m.w[1]))) or v[0], 1)
        self.assertEqual(shown[0], "[3.0, 4.0, 5.0]")
        self.assertEqual(computed(lambda m, p, v: m.cell([v[0], 1.0], np.zeros(4)), 4, self.x).shape, (4,))
        self.assertEqual(computed(lambda m, p, v: m.emb(3), 3).shape, (3,))
        self.assertEqual(computed(lambda m, p, v: p.constant([v[0], m.w[0, 0], 7]), 3, self.x)[2], 7)

    def test_refused(self):
        with self.assertRaisesRegex(TypeError, "A value, a parameter, a number or an array"):
            computed(lambda m, p, v: rws.exp("x"), 1)
        with self.assertRaisesRegex(IndexError, "3 components"):
            computed(lambda m, p, v: v[3], 1, self.x)
        with self.assertRaisesRegex(ValueError, "step 1"):
            computed(lambda m, p, v: v[::2], 1, self.x)
        with self.assertRaisesRegex(ValueError, "empty"):
            computed(lambda m, p, v: v[2:2], 1, self.x)
        with self.assertRaises(TypeError):
            computed(lambda m, p, v: {v: 1}, 1)  # a value is no key
        with self.assertRaises(TypeError):
            computed(lambda m, p, v: v + "x", 1)
        with self.assertRaises(rws.Error):
            computed(lambda m, p, v: v + [1, 2], 3, self.x)
        with self.assertRaisesRegex(RuntimeError, "inside of a program"):
            rws.exp(1.0)
