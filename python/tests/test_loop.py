"""Loops that say what they carry: the numbers are those of Python's own loop and of particles that run alone."""

import unittest

import numpy as np

import rws

STATES, MOST = 3, 4


class Days(rws.Model):
    """Segments of one or two days with a level, in series of unequal length."""

    plain = False
    name = None  # of the loop, if guide and model share it; then "end" is drawn in its last step

    def setup(self, s):
        s.field("n", 1)
        s.series("x", 1, MOST)
        self.next = s.param("theta.next", (STATES + 1) * STATES)
        self.shift = s.param("theta.shift", STATES)
        self.state = s.mlp("phi.state", [1 + STATES, 8, STATES])
        self.level = s.mlp("phi.level", [1, 8, 1])

    def loop(self, p, step, **carry):
        if not self.plain:
            return p.loop(self.name, step, **carry) if self.name else p.loop(step, **carry)
        c = rws._helpers.Carry(**carry)
        while step(p, c):
            pass
        return c

    def days(self, p, n, choose, level, see):
        def day(p, c):
            if not n > c.t:
                total = c.sum
                if self.name:
                    p.flip("end", c.sum)
                c.clear()
                c.sum = total
                return False
            if c.left == 0:
                c.s = p.choose("state", choose(p, c))
                c.left = 1 + p.flip("two", 0.3)
                c.m = p.normal("level", level(p, c), 0.7)
                c.sum = rws.tanh(c.sum + c.m)
            see(p, c)
            c.t, c.left = c.t + 1, c.left - 1
            if c.left == 0:
                c.m = None
            return True

        return self.loop(p, day, t=0, s=-1, left=0, m=None, sum=0.0)

    def guide(self, p):
        def choose(p, c):
            return self.state([p.item("x", c.t), [float(c.s == i) for i in range(STATES)]])

        c = self.days(p, p.length("x"), choose, lambda p, c: self.level(p.item("x", c.t)), lambda p, c: None)
        if not self.name:
            p.flip("end", c.sum)

    def model(self, p):
        n = p.categorical("n", np.zeros(MOST)) + 1
        shift = [p.constant(self.shift)[i] for i in range(STATES)]  # computed before the loop, and used by its steps

        def see(p, c):
            p.normal("x", c.m + shift[c.s] + 0.2 * c.sum, 1)

        c = self.days(p, n, lambda p, c: p.constant(self.next)[STATES * (c.s + 1) : STATES * (c.s + 2)], lambda p, c: 0.0, see)
        if not self.name:
            p.flip("end", c.sum)


def data(n=24):
    r = np.random.default_rng(1)
    lengths = r.integers(1, MOST + 1, n)
    return {"n": (lengths - 1).astype(np.float32), "x": [r.normal(size=k).astype(np.float32) for k in lengths]}


def gradients(model, method, **settings):
    t = rws.Trainer(model, data=data(), method=method, particles=15, batch=12, seed=3, **settings)
    return t.gradient(draw=7)


class Plain(Days):
    plain = True


class Shared(Days):
    name = "days"


class PlainlyShared(Plain):
    name = "days"


class Loops(unittest.TestCase):
    def test_numbers(self):
        for method in ("ww", "ws", "vimco"):
            a, b, c = gradients(Days(), method), gradients(Plain(), method), gradients(Days(), method, scalar=True)
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-3)
            np.testing.assert_allclose(a, c, rtol=0, atol=1e-3)

    def test_shared(self):
        for method in ("ww", "ws", "vimco"):
            a, b, c = gradients(Shared(), method), gradients(PlainlyShared(), method), gradients(Shared(), method, scalar=True)
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-3)
            np.testing.assert_allclose(a, c, rtol=0, atol=1e-3)

    def test_filter(self):
        evidence = []
        for resample in (0, 1):
            with rws.Trainer(Shared(), data=data(), seed=3, eval_particles=2000, n_test=5, resample=resample) as t:
                evidence.append(t.evaluate()["log_evidence"])
        self.assertAlmostEqual(evidence[0], evidence[1], delta=0.5)
        with self.assertRaisesRegex(rws.Error, "share no loop"):
            rws.Trainer(Days(), data=data(), resample=0.5).evaluate()

    def refused(self, step, words, **carry):
        class Wrong(Days):
            def guide(self, p):
                self_p = p

                def day(p, c):
                    return step(self_p, p, c)

                p.loop(day, **carry)
                super().guide(p)

        with self.assertRaisesRegex(Exception, words):
            gradients(Wrong(), "ww")

    def test_mistakes(self):
        kept = []

        def leaks(owner, p, c):
            c.t += 1
            kept.append(p.constant(1))
            if c.t == 2:
                kept[-2] + kept[-1]
            return c.t < 3

        def adds(owner, p, c):
            c.other = 1
            return False

        def turns(owner, p, c):
            c.t = 0.5
            return False

        def falls(owner, p, c):
            c.t -= 1
            return True

        self.refused(lambda owner, p, c: owner.constant(1), "uses the path that it is given", t=0)
        self.refused(leaks, "does not belong to this execution", t=0)
        self.refused(adds, "neither add an attribute", t=0)
        self.refused(turns, "t is an integer of the loop", t=0)
        self.refused(falls, "falls from 0 to -1", t=0)
        self.refused(falls, "needs an integer, the clock", m=None)


if __name__ == "__main__":
    unittest.main()
