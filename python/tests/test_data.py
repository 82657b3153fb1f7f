"""Data: arrays, series, files."""

import os
import tempfile
import unittest
import warnings

import numpy as np

import rws
from toys import Mixture, clusters


class Chain(rws.Model):
    """Items that are seen one after the other, as many as the datum has."""

    def setup(self, s):
        self.mean = s.param("theta.mean", 1)
        self.more = s.param("theta.more", 1)
        self.net = s.linear("phi.net", 1, 1)
        self.declare(s)

    def declare(self, s):
        s.series("y")

    def guide(self, p):
        n = p.length("y")
        for t in range(n):
            p.normal("z", self.net(p.item("y", t)), 1)
            if t < 5:
                p.bernoulli("more", 60.0 if t + 1 < n else -60.0)

    def model(self, p):
        for t in range(6):
            p.normal("y", p.normal("z", self.mean, 1), 1)
            if t < 5 and not p.flip("more", self.more):
                break


class Undeclared(Chain):
    def declare(self, s):
        pass


class Pairs(rws.Model):
    """Items of two numbers."""

    dim = 2

    def setup(self, s):
        self.mean = s.param("theta.mean", 2)
        self.net = s.linear("phi.net", 2, 2)
        s.series("y", self.dim)

    def guide(self, p):
        for t in range(3):
            p.normal("z", self.net(p.item("y", t)), 1)

    def model(self, p):
        for t in range(3):
            p.normal("y", p.normal("z", self.mean, 1), 1)


def bits(t):
    return {k: v.tobytes() for k, v in t.state_dict().items()}


def trained(model, data=None, test=None, **options):
    t = rws.Trainer(model, data, test, iterations=3, particles=4, seed=1, **options)
    for _ in range(3):
        t.step()
    return t


class Series(unittest.TestCase):
    def test_equal_lengths(self):
        """A declared series is one whatever the lengths are: lists, arrays, and either in the test data."""
        equal = [[0.1, 0.2, 0.3], [1.1, 1.2, 1.3], [2.0, 3.0, 4.0], [0.5, 0.5, 0.5]]
        a = trained(Chain(), {"y": equal})
        self.assertEqual(bits(a), bits(trained(Chain(), {"y": np.array(equal)})))
        self.assertEqual(bits(a), bits(trained(Chain(), equal)))
        self.assertEqual(len(a.infer(y=[1.0, 2.0]).particles[0].choices["z"]), 2)  # shorter than any of the data
        ragged = [[0.1], [0.2, 0.3]]
        for data, test in ((equal, ragged), (ragged, equal), (np.array(equal), ragged)):
            t = trained(Chain(), {"y": data}, {"y": test})
            self.assertTrue(np.isfinite(t.evaluate()["log_evidence"]))
            with self.assertRaisesRegex(rws.Error, "at most 3"):
                t.infer(y=[1.0] * 4)

    def test_undeclared(self):
        """What setup does not declare is a series if lengths differ, and a field if they do not."""
        self.assertEqual(bits(trained(Undeclared(), {"y": [[0.1], [0.2, 0.3]]})), bits(trained(Chain(), {"y": [[0.1], [0.2, 0.3]]})))
        with self.assertRaisesRegex(rws.Error, "series"):
            trained(Undeclared(), {"y": [[0.1, 0.2], [0.2, 0.3]]})

    def test_items_of_several_numbers(self):
        y = np.random.default_rng(0).normal(size=(20, 3, 2)).astype(np.float32)
        a = bits(trained(Pairs(), {"y": y}))
        self.assertEqual(a, bits(trained(Pairs(), {"y": list(y)})))
        self.assertEqual(a, bits(trained(Pairs(), {"y": y.reshape(20, 6)})))  # setup says what an item is

        class Any(Pairs):
            def guide(self, p):
                p.length("y")

            def model(self, p):
                for _ in range(p.choose("n", [0.0, 0.0, 0.0, 0.0])):
                    p.normal("y", self.mean, 1)

        short = [y[0], [], y[1, :1]]  # one without items
        b = bits(trained(Any(), {"n": [3, 0, 1], "y": short}))
        self.assertEqual(b, bits(trained(Any(), {"n": [3, 0, 1], "y": [y[0], np.zeros((0, 2)), y[1, :1]]})))

        class Told(Pairs):
            dim = None

        self.assertEqual(a, bits(trained(Told(), {"y": y})))

        class Wrong(Pairs):
            dim = 4

        with self.assertRaisesRegex(rws.Error, "4 numbers in setup and 2 in the data"):
            trained(Wrong(), {"y": y})

    def test_missing_items(self):
        """Items that a second series marks as missing are 0 for certain and add nothing (docs/data.md)."""
        class Holes(rws.Model):
            def setup(self, s):
                self.seen = s.param("theta.seen", 1)
                self.mean = s.param("theta.mean", 2, init=[-1, 2])
                self.net = s.linear("phi.net", 1, 1)
                s.series("seen")
                s.series("y")

            def guide(self, p):
                p.flip("z", self.net(p.item("y", 0)))

            def model(self, p):
                z = p.flip("z", 0.0)
                for _ in range(3):
                    if p.flip("seen", self.seen):
                        p.normal("y", self.mean[z], 1)
                    else:
                        p.delta("y", 0)

        seen, y = [[1, 0, 1], [0, 0, 0], [1, 1, 1]], [[0.8, 0, 1.1], [0, 0, 0], [-1, 0, 1]]
        t = rws.Trainer(Holes(), {"seen": seen, "y": y}, method="wws", batch=3, iterations=20)
        of = lambda mean: sum(-0.5 * (v - mean) ** 2 - 0.5 * np.log(2 * np.pi) for v in (0.8, 1.1))
        exact = np.logaddexp(of(-1), of(2)) + np.log(0.5) + 3 * np.log(0.5)
        self.assertAlmostEqual(t.infer(seen=seen[0], y=y[0], particles=20000).log_evidence, exact, delta=0.03)
        t.train()

    def test_most(self):
        class M(Chain):
            most = 6

            def declare(self, s):
                s.series("y", most=self.most)

        t = trained(M(), {"y": [[0.1], [0.2, 0.3]]}, method="ws")  # dreams are longer than the data
        self.assertEqual(len(t.infer(y=[1.0] * 6).particles[0].choices["z"]), 6)
        with tempfile.TemporaryDirectory() as f:
            trained(M(), {"y": [[0.1], [0.2, 0.3]]}, out=f"{f}/r").close()
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                rws.resume(f"{f}/r", M(), {"y": [[0.1], [0.2, 0.3]]}, progress=False).close()
            with self.assertWarnsRegex(UserWarning, "training data are not those"):
                rws.resume(f"{f}/r", M(), {"y": [[0.1], [0.2, 0.4]]}, progress=False).close()
            self.assertEqual(len(rws.open(f"{f}/r", M()).infer(y=[1.0] * 6).particles[0].choices["z"]), 6)

            class Other(M):
                most = 7

            with self.assertRaisesRegex(rws.Error, "trained with"):
                rws.open(f"{f}/r", Other())
            fields = f"{f}/r/fields.json"
            for text in ("{", "[]", '[["y"]]', '[["y", 1e999, 2]]', '[["y", 1, -2]]', '[[1, 1, 2]]', "[" * 100000):
                with open(fields, "w") as file:
                    file.write(text)
                with self.assertRaisesRegex(rws.Error, "fields.json"):
                    rws.open(f"{f}/r", M())
            os.unlink(fields)
            os.mkfifo(fields)  # which would be waited for
            with self.assertRaisesRegex(rws.Error, "fields.json"):
                rws.open(f"{f}/r", M())
            os.mkdir(f"{f}/new")
            with open(f"{f}/precious", "w"):
                os.symlink(f"{f}/precious", f"{f}/new/fields.json")
                os.symlink(f"{f}/precious", f"{f}/new/code.json")
            trained(M(), {"y": [[0.1], [0.2, 0.3]]}, out=f"{f}/new").close()
            os.unlink(f"{f}/new/code.json")
            os.symlink(f"{f}/precious", f"{f}/new/code.json")
            rws.resume(f"{f}/new", M(), {"y": [[0.1], [0.2, 0.3]]}, changed=True).close()
            self.assertEqual(os.path.getsize(f"{f}/precious"), 0)
        M.most = 1
        with self.assertRaisesRegex(rws.Error, "up to 2 items, more than 1"):
            trained(M(), {"y": [[0.1], [0.2, 0.3]]})

    def test_data_of_a_method(self):
        """One sequence for each datum, also where there is one datum."""
        class M(Chain):
            def declare(self, s):
                s.series("y", 1, most=6)

            def data(self, split, first, n, random):
                return {"y": [random.normals(1 + i % 3) for i in range(n)]}

            def read(self, text):
                return {"y": [float(w) for w in text.split()]}

        t = trained(M(), batch=1)
        self.assertEqual(len(t.infer("1 2 3 4").particles[0].choices["z"]), 4)

        class Wrong(M):
            def data(self, split, first, n, random):
                return {"y": random.normals(n + 1)}

        with self.assertRaisesRegex(rws.Error, "one for each datum"):
            trained(Wrong())

    def test_mistakes(self):
        class Field(Chain):
            def declare(self, s):
                s.field("y")

        with self.assertRaisesRegex(rws.Error, r"declare it with series\(\)"):
            trained(Field(), {"y": [[0.1], [0.2, 0.3]]})

        class Twice(Mixture):
            def setup(self, s):
                super().setup(s)
                s.field("x", 1)
                s.label("x", 1)

        with self.assertRaisesRegex(rws.Error, "declared twice"):
            trained(Twice(), clusters())

        class More(Mixture):
            def setup(self, s):
                super().setup(s)
                s.field("x")
                s.field("w", 2)

        with self.assertRaisesRegex(rws.Error, "'w' is declared, but is not among the data"):
            trained(More(), {"x": clusters()})
        with self.assertRaisesRegex(rws.Error, "another shape"):
            trained(Mixture(), {"x": np.zeros((4, 1))}, {"x": np.zeros((4, 2))})
        with self.assertRaisesRegex(rws.Error, "other fields"):
            trained(Mixture(), {"x": np.zeros(4)}, {"y": np.zeros(4)})
        with self.assertRaisesRegex(rws.Error, "no fields"):
            trained(Mixture(), {})


class FromFile(Mixture):
    settings = {"data": "", "test_data": ""}
    columns = "x"

    def setup(self, s):
        self.table = s.table(test="test_data")
        self.told = self.table.columns, self.table.field("x", self.columns), self.table.rows(), self.table.rows(test=True)
        FromFile.seen = self.told
        super().setup(s)


class Files(unittest.TestCase):
    def test_csv_and_npy(self):
        """A table of a file gives the bits of the same numbers as an array."""
        x = clusters(200)
        with tempfile.TemporaryDirectory() as f:
            with open(f"{f}/x.csv", "w") as out:
                out.write("who,x\n" + "".join(f"somebody,{v!r}\n" for v in x.tolist()))
            np.save(f"{f}/x.npy", x)
            want = bits(trained(Mixture(), {"x": x}))
            self.assertEqual(want, bits(trained(FromFile(), set={"data": f"{f}/x.csv"})))
            self.assertEqual(FromFile.seen, (["who", "x"], 1, 180, 20))
            self.assertEqual(want, bits(trained(FromFile(), f"{f}/x.csv")))  # a path is the setting "data"
            FromFile.columns = None
            self.assertEqual(want, bits(trained(FromFile(), f"{f}/x.npy")))
            FromFile.columns = "x"
            a = bits(trained(Mixture(), x, x[:50]))
            np.save(f"{f}/t.npy", x[:50])
            FromFile.columns = "1"
            self.assertEqual(a, bits(trained(FromFile(), f"{f}/x.npy", f"{f}/t.npy")))
            self.assertEqual(FromFile.seen[2:], (200, 50))
            FromFile.columns = "x"
            t = trained(FromFile(), f"{f}/x.csv", out=f"{f}/run")
            told = str(t.infer(x=1.0))
            t.save()
            t.close()
            here = os.getcwd()
            try:
                os.chdir("/")  # the run knows where its file is
                run = rws.open(f"{f}/run", FromFile())
                self.assertEqual(str(run.infer(x=1.0)), told)
                self.assertEqual(run.infer(test=3).n_particles, 1000)
                rws.resume(f"{f}/run", FromFile(), iterations=5, progress=False).close()
            finally:
                os.chdir(here)
            with self.assertRaisesRegex(rws.Error, "leave data"):
                rws.resume(f"{f}/run", FromFile(), f"{f}/x.csv")
            os.rename(f"{f}/x.csv", f"{f}/y.csv")
            self.assertEqual(rws.open(f"{f}/run", FromFile(), f"{f}/y.csv").infer(test=3).n_particles, 1000)

    def test_ids(self):
        class Sessions(Chain):
            settings = {"data": ""}

            def declare(self, s):
                t = s.table("data", id="session", test_share=1, order="in order")
                self.n = t.series("y", "seconds", most=6)
                t.label("page", "kind")

        y = [[12.5, 4.0, 7.25], [31.0], [1.0, 2.0]]
        with tempfile.TemporaryDirectory() as f:
            with open(f"{f}/log.csv", "w") as out:
                out.write("session,kind,seconds\na,1,12.5\na,1,4\nb,2,31\na,1,7.25\nc,,1\nc,,2\n")
            a = trained(Sessions(), f"{f}/log.csv", batch=3)
        b = trained(Chain(), {"y": y}, order="in order", test_share=1.0, batch=3)
        self.assertEqual(bits(a), bits(b))

    def test_several(self):
        class Two(Mixture):
            settings = {"data": "", "labels": ""}

            def setup(self, s):
                super().setup(s)
                s.table("data").field("x")
                s.table("labels").label("true")
                s.label_site("true", "z")

        x = clusters(100)
        with tempfile.TemporaryDirectory() as f:
            np.save(f"{f}/x.npy", x)
            np.save(f"{f}/z.npy", np.round(x / 4).clip(0, 2))
            t = trained(Two(), set={"data": f"{f}/x.npy", "labels": f"{f}/z.npy"})

        class One(Mixture):
            def setup(self, s):
                super().setup(s)
                s.label("true")
                s.label_site("true", "z")

        self.assertEqual(bits(t), bits(trained(One(), {"x": x, "true": np.round(x / 4).clip(0, 2)})))

    def test_mistakes(self):
        with tempfile.TemporaryDirectory() as f:
            with open(f"{f}/x.csv", "w") as out:
                out.write("x,y\n1,2\n3,soon\n")
            with self.assertRaisesRegex(rws.Error, "nowhere.csv"):
                trained(FromFile(), f"{f}/nowhere.csv")
            FromFile.columns = "miles"
            with self.assertRaisesRegex(rws.Error, "no column .miles."):
                trained(FromFile(), f"{f}/x.csv")
            FromFile.columns = "y"
            with self.assertRaisesRegex(rws.Error, "soon"):
                trained(FromFile(), f"{f}/x.csv")
            FromFile.columns = "x"
            with self.assertRaisesRegex(rws.Error, "given twice"):
                trained(FromFile(), f"{f}/x.csv", set={"data": "b"})
            with self.assertRaisesRegex(rws.Error, "setting"):
                trained(Mixture(), f"{f}/x.csv")
            t = trained(FromFile(), f"{f}/x.csv")
            kept = []

            class Late(FromFile):
                def setup(self, s):
                    super().setup(s)
                    kept.append(self.table)

            trained(Late(), f"{f}/x.csv").close()
            with self.assertRaisesRegex(rws.Error, "in setup only"):
                kept[0].field("w", "x")
            with self.assertRaisesRegex(rws.Error, "closed"):
                kept[0].rows()
            t.close()

            class Mixed(FromFile):
                def setup(self, s):
                    super().setup(s)
                    s.field("w", 1)

            with self.assertRaisesRegex(rws.Error, "'w' is declared"):
                trained(Mixed(), f"{f}/x.csv")
