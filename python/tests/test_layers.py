"""Matrices and layers against numpy, and models with such layers in training."""

import unittest

import numpy as np

import rws

A = np.array([[4.0, 1, 0.5], [1, 3, 0.2], [0.5, 0.2, 2]], np.float32)
L = np.linalg.cholesky(A).astype(np.float32)
M = np.arange(6, dtype=np.float32).reshape(2, 3)
X = np.array([0.5, 2.0, 3.0], np.float32)


def computed(declare, f, dim):
    """(the value of f(self, p, x) for the datum X, the parameters by name). `declare(self, s)` is the setup."""
    got = {}

    class Only(rws.Model):
        def setup(self, s):
            s.field("x", 3)
            self.w = s.param("theta.w", (2, 3), init=M)
            declare(self, s)

        def guide(self, p):
            p.normal("z", 0, 1)

        def model(self, p):
            p.normal("x", p.normal("z", 0, 1) + np.zeros(3, np.float32), 1)

        @rws.metric
        def m(self, e):
            got["v"] = e.compute(lambda p: f(self, p, p.observed("x")), dim, x=X[None])
            return 0.0

    with rws.Trainer(Only(), data={"x": np.stack([X, X])}, particles=2) as t:
        t.evaluate()
        return got["v"].reshape(-1), t.state_dict()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(w, x, h, c, name="phi.l.", end=""):
    i, f, g, o = np.split(w[name + "weight_ih" + end] @ x + w[name + "bias_ih" + end].reshape(-1)
                          + w[name + "weight_hh" + end] @ h + w[name + "bias_hh" + end].reshape(-1), 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


class Matrices(unittest.TestCase):
    def same(self, f, want):
        want = np.asarray(want).reshape(-1)
        got, _ = computed(lambda self, s: None, f, want.size)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)

    def test_products(self):
        self.same(lambda m, p, x: rws.matvec(m.w, x), M @ X)
        self.same(lambda m, p, x: m.w @ x, M @ X)
        self.same(lambda m, p, x: A @ x, A @ X)
        self.same(lambda m, p, x: x @ A, X @ A)
        self.same(lambda m, p, x: m.w @ A, M @ A)
        self.same(lambda m, p, x: x @ x, X @ X)
        self.same(lambda m, p, x: rws.matmul(m.w, A), M @ A)
        self.same(lambda m, p, x: rws.matmul(x, x, 1), np.outer(X, X))
        self.same(lambda m, p, x: rws.matmul(x, x, inner=3), X @ X)
        self.same(lambda m, p, x: rws.transpose(m.w), M.T)
        self.same(lambda m, p, x: rws.transpose(m.w * 1, cols=3), M.T)

    def test_refused(self):
        with self.assertRaisesRegex(TypeError, "needs the number of columns"):
            self.same(lambda m, p, x: rws.matmul(x, x), X)
        with self.assertRaisesRegex(TypeError, "needs the number of columns"):
            self.same(lambda m, p, x: rws.transpose(x), X)
        with self.assertRaises(rws.Error):
            self.same(lambda m, p, x: rws.matmul(x, x, 2), X)
        with self.assertRaises(rws.Broken):
            self.same(lambda m, p, x: rws.cholesky(-A), A)

    def test_factors(self):
        self.same(lambda m, p, x: rws.diagonal(A), np.diag(A))
        self.same(lambda m, p, x: rws.add_diagonal(A, x), A + np.diag(X))
        self.same(lambda m, p, x: rws.add_diagonal(A, 2), A + 2 * np.eye(3))
        self.same(lambda m, p, x: rws.cholesky(A), L)
        self.same(lambda m, p, x: rws.cholesky_solve(L, x), np.linalg.solve(A, X))
        self.same(lambda m, p, x: rws.triangular_solve(L, x), np.linalg.solve(L, X))
        self.same(lambda m, p, x: rws.triangular_solve(L, x, transposed=True), np.linalg.solve(L.T, X))
        self.same(lambda m, p, x: rws.log_determinant(L), np.linalg.slogdet(A)[1])

    def test_attention_without_parameters(self):
        scores = np.array([X @ X, X @ (2 * X)]) / np.sqrt(3)
        w = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
        self.same(lambda m, p, x: rws.dot_attention(x, [x, 2 * x], [[1, 0], [0, 1]]), w)
        with self.assertRaisesRegex(ValueError, "as many keys as values"):
            self.same(lambda m, p, x: rws.dot_attention(x, [x, x], [x]), X)

    def test_pool(self):
        picture = np.arange(16, dtype=np.float32).reshape(4, 4)
        windows = picture.reshape(2, 2, 2, 2).transpose(0, 2, 1, 3).reshape(4, 4)
        for how in ("max", "mean", "sum"):
            self.same(lambda m, p, x: rws.pool2d(picture, 1, 4, 2, how), getattr(windows, how)(axis=1))
        with self.assertRaisesRegex(ValueError, "pooled by"):
            self.same(lambda m, p, x: rws.pool2d(picture, 1, 4, 2, how="min"), [0])


class Layers(unittest.TestCase):
    def same(self, declare, f, want, dim):
        got, w = computed(declare, f, dim)
        np.testing.assert_allclose(got, np.asarray(want(w)).reshape(-1), rtol=1e-4, atol=1e-5)

    def test_lstm(self):
        def declare(self, s):
            self.cell = s.lstm("phi.l", 3, 2)

        def f(m, p, x):
            h, c = m.cell(x, (np.zeros(2), np.ones(2)))
            h, c = m.cell([x[:2], x[2]], (h, c))
            return rws.concat(h, c)

        def want(w):
            return np.concatenate(lstm(w, X, *lstm(w, X, np.zeros(2), np.ones(2))))

        self.same(declare, f, want, 4)
        with self.assertRaisesRegex(TypeError, r"h, c = cell\(x, \(h, c\)\)"):
            computed(declare, lambda m, p, x: m.cell(x, [0.0, 0.0, 0.0]), 2)
        with self.assertRaisesRegex(TypeError, r"cell\(x, \(h, c\)\) takes 2 arguments"):
            computed(declare, lambda m, p, x: m.cell(x), 2)

    def test_bidirectional(self):
        def declare(self, s):
            self.reader = s.bidirectional("phi.b", 1, 2, "lstm")

        def f(m, p, x):
            last, states = m.reader([x[0], x[1], x[2]])
            return rws.concat(last, *states)

        def want(w):
            directions = []
            for end, order in (("_l0", X), ("_l0_reverse", X[::-1])):
                h, c, states = np.zeros(2), np.zeros(2), []
                for x in order:
                    h, c = lstm(w, np.array([x]), h, c, "phi.b.", end)
                    states.append(h)
                directions.append(states)
            there, back = directions
            return np.concatenate([there[-1], back[-1]] + [np.concatenate([a, b]) for a, b in zip(there, back[::-1])])

        self.same(declare, f, want, 16)
        got, _ = computed(declare, lambda m, p, x: m.reader([])[0], 4)
        np.testing.assert_array_equal(got, np.zeros(4))
        with self.assertRaisesRegex(ValueError, "\"rnn\", \"gru\" or \"lstm\""):
            computed(lambda self, s: s.bidirectional("phi.b", 1, 2, "gnu"), lambda m, p, x: x, 3)

    def test_sets(self):
        def declare(self, s):
            self.encoder = s.set_encoder("phi.s", [1, 4, 2], "mean", hidden="relu")
            self.attention = s.attention("phi.a", 4, 2, 1)

        def each(w, x):
            h = np.maximum(w["phi.s.0.weight"] @ [x] + w["phi.s.0.bias"].reshape(-1), 0)
            return w["phi.s.2.weight"] @ h + w["phi.s.2.bias"].reshape(-1)

        self.same(declare, lambda m, p, x: m.encoder([x[0], x[1], x[2]]), lambda w: np.mean([each(w, x) for x in X], 0), 2)
        self.same(declare, lambda m, p, x: m.encoder(x), lambda w: np.mean([each(w, x) for x in X], 0), 2)
        self.same(declare, lambda m, p, x: m.encoder([]), lambda w: np.zeros(2), 2)
        one, _ = computed(declare, lambda m, p, x: m.attention(np.ones(4), [x[0], x[1], x[2]]), 4)
        two, _ = computed(declare, lambda m, p, x: m.attention(np.ones(4), [x[2], x[0], x[1]]), 4)
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-6)  # a set has no order
        self.assertGreater(np.abs(one).max(), 0)

    def test_norm_and_residual(self):
        def declare(self, s):
            self.norm = s.layer_norm("phi.n", 3)
            self.net = s.residual_mlp("phi.r", 3, 4, 1, 2, hidden="tanh")

        def norm(x):
            return (x - x.mean()) / np.sqrt(x.var() + 1e-5)

        def layer(w, name, x):
            return w[name + ".weight"] @ x + w[name + ".bias"].reshape(-1)

        def residual(w):
            h = layer(w, "phi.r.in", X)
            h = h + layer(w, "phi.r.blocks.0.3", np.tanh(layer(w, "phi.r.blocks.0.1", norm(h))))
            return layer(w, "phi.r.out", h)

        self.same(declare, lambda m, p, x: m.norm(x), lambda w: norm(X), 3)
        self.same(declare, lambda m, p, x: m.net([x[:2], x[2]]), residual, 2)

    def test_convolutions(self):
        shapes = {}
        picture = np.arange(16, dtype=np.float32).reshape(4, 4) / 10

        def declare(self, s):
            self.down = s.conv2d("phi.c", 1, 2, 4, 4, 3, stride=2, padding=1)
            shapes["down"] = self.down.picture, self.down.n_out
            self.up = s.conv_transpose2d("phi.t", 2, 1, 2, 2, kernel=3, stride=2, padding=1, output_padding=1)
            shapes["up"] = self.up.picture, self.up.n_out
            self.linear = s.linear("phi.o", self.up.n_out, 1)
            shapes["linear"] = self.linear.picture

        def want(w):
            padded, k = np.pad(picture, 1), w["phi.c.weight"].reshape(2, 3, 3)
            return [(padded[i:i + 3, j:j + 3] * k[o]).sum() + w["phi.c.bias"].reshape(-1)[o]
                    for o in range(2) for i in (0, 2) for j in (0, 2)]

        self.same(declare, lambda m, p, x: m.down(picture), want, 8)
        got, w = computed(declare, lambda m, p, x: m.up(m.down(picture) * 0), 16)
        np.testing.assert_allclose(got, np.full(16, w["phi.t.bias"].reshape(-1)[0]), rtol=1e-5)
        self.assertEqual(shapes, {"down": ((2, 2, 2), 8), "up": ((1, 4, 4), 16), "linear": (1, 1, 1)})


class Reader(rws.Model):
    """A hidden state for each item of a series; the guide reads the series from both ends, and with an lstm."""

    def setup(self, s):
        s.series("x", 1, most=6)
        self.stay = s.param("theta.stay", 1)
        self.prior = s.param("theta.prior", 2)
        self.reader = s.bidirectional("phi.reader", 1, 4)
        self.encoder = s.set_encoder("phi.set", [1, 4])
        self.attention = s.attention("phi.attention", 4, 2, 1)
        self.cell = s.lstm("phi.cell", 9, 5)
        self.out = s.linear("phi.out", 5, 2)

    def guide(self, p):
        x = p.items("x")
        n = p.choose("n", np.where(np.arange(7) == len(x), 0, -1e4))
        last, states = self.reader(x)
        about = self.attention(self.encoder(x), x)
        h, c = last[:5], np.zeros(5)
        for t in range(n):
            h, c = self.cell([states[t], x[t]], (h, c)) if t else self.cell([states[t], about[0]], (h, c))
            p.categorical("z", self.out(h))

    def model(self, p):
        n = p.choose("n", np.zeros(7))
        for t in range(n):
            z = p.categorical("z", self.prior)
            p.normal("x", 3 * z, 1)


class Biases(unittest.TestCase):
    def test_names(self):
        biases = []

        class Nets(rws.Model):
            def setup(self, s):
                s.field("x", 1)
                self.nets = [s.linear("phi.line", 1, 2), s.mlp("phi.one", [1, 2]), s.mlp("phi.net", [1, 4, 3]),
                             s.mlp("phi.deep", [1, 4, 5, 2])]
                for net, start in zip(self.nets, (1, 2, 3, 4)):
                    net.bias.values = [start] * net.n_out
                biases.extend(net.bias.name for net in self.nets)
                self.no_bias = s.gru("phi.cell", 1, 2).bias

            def guide(self, p):
                pass

            def model(self, p):
                p.normal("x", 0.0, 1.0)

        with rws.Trainer(Nets(), data={"x": [1.0, 2.0]}) as t:
            state = t.state_dict()
            self.assertEqual(biases, ["phi.line.bias", "phi.one.0.bias", "phi.net.2.bias", "phi.deep.4.bias"])
            for name, start in zip(biases, (1, 2, 3, 4)):
                self.assertTrue((state[name] == start).all())


class Train(unittest.TestCase):
    def test_reader(self):
        r = np.random.default_rng(0)
        data = [(3 * r.integers(0, 2, size=n) + r.normal(size=n)).astype(np.float32) for n in r.integers(0, 7, size=40)]
        with rws.Trainer(Reader(), data={"x": data}, particles=4, batch=8, method="ww") as t:
            before = t.state_dict()
            t.step()
            t.step()
            after = t.state_dict()
            for name in before:
                self.assertTrue(np.isfinite(after[name]).all(), name)
                if name not in ("theta.stay",):
                    self.assertTrue((before[name] != after[name]).any(), name)
            self.assertTrue(np.isfinite(t.evaluate()["log_evidence"]))
