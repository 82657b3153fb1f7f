"""Conditional models: inputs, which both programs read and nobody observes; and observed data, which the model must not know."""

import math
import tempfile
import unittest

import numpy as np

import lines
import rws


def log_normal(x, mean, sd=1.0):
    return -0.5 * ((x - mean) / sd) ** 2 - np.log(sd * math.sqrt(2 * math.pi))


class Regression(rws.Model):
    """y = a + b . x + c with c ~ N(0, 0.5), seen with noise of 0.5: p(y | x) is normal with variance 0.5"""

    defaults = {"batch": 64, "particles": 5, "lr": "3e-2,800:3e-3", "iterations": 1500, "n_test": 64}
    sd = math.sqrt(0.25)

    def setup(self, s):
        s.input("x")
        self.line, self.slopes = s.param("theta.line", 1), s.param("theta.slopes", 3)
        self.guess = s.linear("phi.guess", 4, 1)
        self.log_sd = s.param("phi.log_sd", 1)

    def model(self, p):
        c = p.normal("c", 0, self.sd)
        p.normal("y", self.line + rws.dot(self.slopes, p.observed("x")) + c, self.sd)

    def guide(self, p):
        p.normal("c", self.guess(rws.concat([p.observed("x"), p.observed("y")])), rws.exp(self.log_sd))


def rows(n=64, seed=3):
    r = np.random.default_rng(seed)
    x = r.normal(size=(n, 3))
    return {"x": x, "y": 1 + x @ [2, -1, 0.5] + math.sqrt(0.5) * r.normal(size=n)}


class Switch(rws.Model):
    """A mixture of two whose weights and means depend on an input; w is a series that only the model reads."""

    defaults = {"batch": 50, "particles": 20, "n_test": 50, "iterations": 200, "lr": "1e-2"}

    def setup(self, s):
        s.input("u", 1)
        s.series("w", 1, 3)
        s.is_input("w")
        s.field("x", 1)
        self.net = s.mlp("phi.net", [2, 8, 2])

    def model(self, p):
        u = p.observed("u") + rws.sum(rws.concat([0.0] + p.items("w")))
        z = p.categorical("z", rws.concat([0.0, u]))
        p.normal("x", 3 * z + u, 1)

    def guide(self, p):
        p.categorical("z", self.net([p.observed("u"), p.observed("x")]))

    @staticmethod
    def exact(u, w, x):
        u = u + sum(w)
        q = 1 / (1 + math.exp(-u))
        return math.log((1 - q) * math.exp(log_normal(x, u)) + q * math.exp(log_normal(x, 3 + u)))


def switches(n=100, seed=1):
    r = np.random.default_rng(seed)
    return {"u": r.normal(size=n), "w": [r.normal(size=r.integers(0, 4)) for _ in range(n)], "x": r.normal(size=n)}


class Closed(unittest.TestCase):
    def test_regression(self):
        data = rows()
        design = np.concatenate([np.ones((64, 1)), data["x"]], axis=1)
        best = np.linalg.lstsq(design, data["y"], rcond=None)[0]
        for method in ("vimco", "ww", "ws"):
            with rws.train(Regression(), data, data, method=method, seed=2, eval_particles=2000, progress=False) as run:
                values = run.state_dict()
                line = np.concatenate([values["theta.line"].ravel(), values["theta.slopes"].ravel()])
                found = run.evaluate()["log_evidence"]
                of_line, of_best = (log_normal(data["y"], design @ w, math.sqrt(0.5)).mean() for w in (line, best))
                self.assertLess(abs(found - of_line), 0.01, method)
                self.assertLess(of_best - found, 0.01, method)

    def test_conditional_mixture(self):
        data = switches()
        with rws.train(Switch(), data, data, method="ws", progress=False) as run:
            for i in range(5):
                exact = Switch.exact(data["u"][i], data["w"][i], data["x"][i])
                for a in (run.infer(u=data["u"][i], w=data["w"][i], x=data["x"][i], particles=100000), run.infer(test=i, particles=100000)):
                    self.assertLess(abs(a.log_evidence - exact), 0.01)

    def test_coefficients(self):
        """The posterior of coefficients given rows of x and y, by a network that was trained once."""
        with rws.train(lines.Lines(), method="vimco", iterations=1500, lr="5e-3,1000:5e-4", seed=1, progress=False) as run:
            r, off = np.random.default_rng(0), []
            for n in (1, 2, 4, 8):
                x = r.normal(size=n)
                y = r.normal() + r.normal() * x + lines.NOISE * r.normal(size=n)
                a = run.infer(x=x, y=y, particles=100000)
                mean, _, log_p = lines.exact(x, y)
                off.append(abs(a.log_evidence - log_p))
                np.testing.assert_allclose(a.mean("w"), mean, atol=0.03)
            self.assertLess(max(off), 0.01)


class Wide(rws.Model):
    """Parameters of one number for a latent vector, a vector of bits and a series with items of two; or vectors of them."""

    def __init__(self, listed):
        super().__init__()
        self.listed = listed

    def setup(self, s):
        s.field("bits", 4)
        s.series("t", 2, 3)
        self.a = s.param("theta.a", 1)

    def model(self, p):
        n, bits, item = (np.zeros(k) if self.listed else 0.0 for k in (3, 4, 2))
        z = p.normal("z", self.a + n, 1)
        Wide.shapes = p.shape("bits"), p.shape("t")
        p.bernoulli("bits", z[0] + bits)
        for _ in range(2):
            p.normal("t", z[1] + item, 2)

    def guide(self, p):
        p.normal("z", [0.1, 0.2, 0.3], 1)


class Spread(unittest.TestCase):
    def test_single_numbers(self):
        r = np.random.default_rng(0)
        data = {"bits": r.integers(0, 2, size=(20, 4)), "t": [r.normal(size=(2, 2)) for _ in range(20)]}
        options = dict(iterations=5, particles=4, batch=10, n_test=10, seed=1, progress=False)
        for method in ("ww", "vimco"):
            found = []
            for listed in (False, True):
                model = Wide(listed)
                with rws.train(model, data, data, method=method, **options) as run:
                    found.append((run.evaluate()["log_evidence"], run.state_dict()["theta.a"].tobytes()))
                self.assertEqual(Wide.shapes, ((4,), (3, 2)))
            self.assertAlmostEqual(found[0][0], found[1][0], places=5, msg=method)
        with self.assertRaisesRegex(IndexError, "The value has 1 components"):  # a model that dreams says how many there are
            rws.train(Wide(False), data, data, method="ws", **options)
        rws.train(Wide(True), data, data, method="ws", **options).close()


class Dreams(unittest.TestCase):
    def test_samples(self):
        data = switches()
        with rws.train(Switch(), data, data, method="ws", progress=False) as run:
            for given in ({"u": 1.5, "w": [-0.5]}, {"test": 3}):
                s = run.sample(4000, **given)
                u, w = (1.5, [-0.5]) if "u" in given else (data["u"][3], data["w"][3])
                self.assertAlmostEqual(float(s[0].fields["u"][0]), u, places=5)
                np.testing.assert_allclose(s[0].fields["w"].ravel(), w, rtol=1e-5)
                at = u + sum(w)
                q = 1 / (1 + math.exp(-at))
                x = np.array([float(i.fields["x"][0]) for i in s])
                sd = math.sqrt(1 + 9 * q * (1 - q))
                self.assertLess(abs(x.mean() - (3 * q + at)), 6 * sd / math.sqrt(len(x)))  # one in 10^8 seeds
            pairs = {round(float(u), 4): w for u, w in zip(data["u"], data["w"])}
            for s in run.sample(50):
                np.testing.assert_allclose(s.fields["w"].ravel(), pairs[round(float(s.fields["u"][0]), 4)], rtol=1e-4)
            self.assertEqual([float(i.fields["x"][0]) for i in run.sample(20)], [float(i.fields["x"][0]) for i in run.sample(20)])
            with self.assertRaisesRegex(rws.Error, "'w' is missing"):
                run.sample(1, u=1.0)

    def test_folder_command_and_threads(self):
        data = switches()
        with tempfile.TemporaryDirectory() as f:
            options = dict(method="ws", iterations=6, progress=False)
            with rws.train(Switch(), data, data, out=f + "/a", **options) as whole:
                values = whole.state_dict()
            with rws.Trainer(Switch(), data, data, out=f + "/b", threads=2, **{k: options[k] for k in ("method", "iterations")}) as t:
                for _ in range(3):
                    t.step()
                t.save()
            with rws.resume(f + "/b", Switch(), data, data, progress=False) as again:
                for k, v in again.state_dict().items():
                    self.assertEqual(v.tobytes(), values[k].tobytes(), k)
            with rws.open(f + "/a", Switch()) as opened:  # without data: samples need inputs
                self.assertEqual(len(opened.sample(3, u=0.0, w=[])), 3)

    def test_table(self):
        """Inputs that are columns of a file."""
        data = rows()

        class OfTable(Regression):
            settings = {"data": "", "inputs": "x0:x2", "output": "y"}

            def setup(self, s):
                t = s.table()
                t.field("x", s["inputs"])
                s.is_input("x")
                t.field("y", s["output"])
                self.line, self.slopes = s.param("theta.line", 1), s.param("theta.slopes", 3)
                self.guess = s.linear("phi.guess", 4, 1)
                self.log_sd = s.param("phi.log_sd", 1)

        table = np.concatenate([data["x"], data["y"][:, None]], axis=1).astype(np.float32)
        with tempfile.TemporaryDirectory() as f:
            np.savetxt(f + "/rows.csv", table, delimiter=",", header="x0,x1,x2,y", comments="")
            np.save(f + "/rows.npy", table)
            options = dict(method="ws", iterations=5, progress=False, n_test=5)
            found = []
            for name, columns in (("rows.csv", {}), ("rows.npy", {"inputs": "1:3", "output": "4"})):
                with rws.train(OfTable(), f"{f}/{name}", set=columns, **options) as run:
                    found.append(run.state_dict())
                    self.assertEqual(run.sample(2)[0].fields["x"].size, 3)
            for k, v in found[0].items():
                np.testing.assert_allclose(v, found[1][k], rtol=1e-5, atol=1e-6)


class Peeking(rws.Model):
    """A model that uses what the guide has read of the data: by the value, a series, a look."""

    def __init__(self, way):
        self.way = way

    def setup(self, s):
        if self.way in ("item", "items", "length"):
            s.series("x", 1, 3)
        else:
            s.field("x", 1)
        s.relaxed("z", 2)

    def guide(self, p):
        if self.way == "item":
            self.d = p.item("x", 0)
        elif self.way == "items":
            self.d = p.items("x")[0]
        elif self.way == "sum":
            self.d = rws.tanh(p.observed("x")) + 1
        elif self.way == "look":
            self.d = p.look(p.observed("x"))
        else:
            self.d = p.observed("x")
        p.categorical("z", np.zeros(2))

    def model(self, p):
        p.categorical("z", np.zeros(2))
        if self.way == "reads":
            self.d = p.observed("x")
        if self.way == "looks":
            self.d = p.look(self.d)[0]
        if self.way == "branches":
            self.d = p.branch(self.d)
        mean = self.d[0] if self.way == "look" else self.d
        for _ in range(2 if self.way in ("item", "items") else 1):
            p.normal("x", mean, 1)

    def relaxed(self, p, log_s, temperature, how):
        return rws.sum(log_s)


class Honest(unittest.TestCase):
    def test_the_model_does_not_know_the_data(self):
        for way in ("value", "sum", "item", "items", "look", "reads", "looks", "branches"):
            data = {"x": [[1.0, 0.0]] * 20 if way in ("item", "items") else np.ones(20)}
            for method in ("ws", "ww", "wws", "dww", "vimco", "reinforce", "rloo", "nvil", "rebar", "relax", "muprop"):
                if way in ("item", "items") and method in ("rebar", "relax", "muprop"):
                    continue  # a relaxed model of one field
                with rws.Trainer(Peeking(way), data, method=method, iterations=2, particles=2) as t:
                    with self.assertRaisesRegex((rws.Error, RuntimeError), "look|over", msg=(way, method)):
                        t.step()

    def test_inputs_are_not_observed(self):
        class Observes(Switch):
            def model(self, p):
                super().model(p)
                p.normal("u", 0, 1)

        with self.assertRaisesRegex(rws.Error, "\"u\", which is an input"):
            rws.train(Observes(), switches(), progress=False)

    def test_wrong_names(self):
        class Wrong(Regression):
            def setup(self, s):
                super().setup(s)
                s.is_input("z")

        with self.assertRaisesRegex(rws.Error, "no field \"z\" to be an input"):
            rws.train(Wrong(), rows(), progress=False)


if __name__ == "__main__":
    unittest.main()
