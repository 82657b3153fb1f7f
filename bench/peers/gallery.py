#!/usr/bin/env python3
"""Two models of the gallery, hmm and slds, trained by wake-wake in JAX, written for speed on CPU threads.

Everything is vectorised over data, times and particles, and a hundred iterations are one compiled loop. Two things make it
faster than a plain translation. The guide's logits depend on a particle only by the state before, of which there are few
(4 and 2), so its network runs once per datum, time and state instead of once per particle, and particles look their logits up.
And once the states are drawn they are given, so that log p and log q have no loop over times but for the Kalman filter.
Series of different lengths (hmm) are padded to 60 items and masked. Sizes, data, learning rates and Adam are those of
examples/hmm.c and examples/slds.c; an iteration includes making its data.

--form plain is what one writes first: the guide's network and the densities of a particle in one scan over times, for every
particle, by autodiff, with an iteration as a compiled function that Python calls.

    gallery.py --model hmm --particles 10 --threads 1 --json        milliseconds per iteration
    gallery.py --model hmm --check                                  compares bounds and gradients with plain loops in double
    gallery.py --model hmm --train 2000                             trains, and estimates log p(x) with 100 particles
"""
import argparse
import json
import os
import resource
import sys
import time

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--model", choices=["hmm", "slds"], default="hmm")
parser.add_argument("--form", choices=["plain", "tuned"], default="tuned")
parser.add_argument("--particles", type=int, default=10)
parser.add_argument("--batch", type=int, default=50)
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--repeats", type=int, default=5)
parser.add_argument("--json", action="store_true")
parser.add_argument("--check", action="store_true")
parser.add_argument("--train", type=int, default=0, metavar="N")
o = parser.parse_args()

# XLA has as many threads as the process may use processors.
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:o.threads])
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=" + ("true" if o.threads > 1 else "false")
os.environ["JAX_PLATFORMS"] = "cpu"
if o.check:
    os.environ["JAX_ENABLE_X64"] = "1"

import jax
import jax.numpy as jnp
import numpy as np

HIDDEN, WIDE = 32, 32


def uniform_init(key, shape, n_in):
    return jax.random.uniform(key, shape, minval=-1, maxval=1) / np.sqrt(n_in)


def guide_init(key, n_item, n_more, n_out):
    """A GRU of PyTorch's layout, and an mlp over its state and n_more numbers."""
    k = jax.random.split(key, 8)
    return {"wi": uniform_init(k[0], (n_item, 3 * HIDDEN), HIDDEN), "wh": uniform_init(k[1], (HIDDEN, 3 * HIDDEN), HIDDEN),
            "bi": uniform_init(k[2], (3 * HIDDEN,), HIDDEN), "bh": uniform_init(k[3], (3 * HIDDEN,), HIDDEN),
            "w1": uniform_init(k[4], (HIDDEN + n_more, WIDE), HIDDEN + n_more),
            "b1": uniform_init(k[5], (WIDE,), HIDDEN + n_more),
            "w2": uniform_init(k[6], (WIDE, n_out), WIDE), "b2": uniform_init(k[7], (n_out,), WIDE)}


def read_backwards(phi, inputs, mask):
    """States [T, B, HIDDEN] of a GRU that reads from the last item; inputs [T, B, 3 HIDDEN] are products with wi."""
    def step(h, at):
        gi, m = at
        gh = h @ phi["wh"] + phi["bh"]
        r = jax.nn.sigmoid(gi[:, :HIDDEN] + gh[:, :HIDDEN])
        z = jax.nn.sigmoid(gi[:, HIDDEN:2 * HIDDEN] + gh[:, HIDDEN:2 * HIDDEN])
        n = jnp.tanh(gi[:, 2 * HIDDEN:] + r * gh[:, 2 * HIDDEN:])
        new = (1 - z) * n + z * h
        h = new if m is None else jnp.where(m[:, None], new, h)
        return h, h
    zero = jnp.zeros((inputs.shape[1], HIDDEN), inputs.dtype)
    return jax.lax.scan(step, zero, (inputs, mask), reverse=True)[1]


# ---- the hidden Markov model

class Hmm:
    STATES, START, WORDS, MOST = 3, 3, 5, 60
    LR = 1e-2
    next = np.array([[0.85, 0.1, 0.05], [0.2, 0.7, 0.1], [0.1, 0.4, 0.5], [0.6, 0.3, 0.1]])
    says = np.array([[0.7, 0.2, 0.06, 0.02, 0.02], [0.05, 0.15, 0.6, 0.15, 0.05], [0.02, 0.03, 0.1, 0.25, 0.6]])

    @classmethod
    def init(c, key):
        k = jax.random.split(key)
        return ({"next": jnp.zeros((4, 3)), "says": jax.random.normal(k[0], (3, 5))}, guide_init(k[1], c.WORDS, 4, c.STATES))

    @classmethod
    def data(c, key, B):
        """Words [MOST, B] and lengths [B]."""
        k = jax.random.split(key, 3)
        u = jax.random.uniform(k[0], (2, c.MOST, B))
        first, then = np.cumsum(c.next, 1)[:, :-1], np.cumsum(c.says, 1)[:, :-1]
        def step(z, u):
            z = (u[0][:, None] > jnp.asarray(first)[z]).sum(1)
            return z, (u[1][:, None] > jnp.asarray(then)[z]).sum(1)
        x = jax.lax.scan(step, jnp.full(B, c.START), (u[0], u[1]))[1]
        return x, jax.random.randint(k[1], (B,), 1, c.MOST + 1)

    @classmethod
    def table(c, phi, data):
        """Log-probabilities [T, B, 4, 3] of the next state after each state."""
        x, n = data
        mask = jnp.arange(c.MOST)[:, None] < n
        h = read_backwards(phi, phi["wi"][x] + phi["bi"], mask)
        a = (h @ phi["w1"][:HIDDEN] + phi["b1"])[:, :, None] + phi["w1"][HIDDEN:]
        return jax.nn.log_softmax(jnp.tanh(a) @ phi["w2"] + phi["b2"])

    @classmethod
    def draw(c, key, table, K):
        """States [T, B, K]."""
        T, B = table.shape[:2]
        ends = jnp.cumsum(jnp.exp(table), -1)[..., :-1]
        u = jax.random.uniform(key, (T, B, K, 1), dtype=table.dtype)
        def step(z, at):
            ends, u = at
            z = (u > jnp.take_along_axis(ends, z[:, :, None], 1)).sum(2)
            return z, z
        return jax.lax.scan(step, jnp.full((B, K), c.START), (ends, u))[1]

    @classmethod
    def scores(c, theta, table, data, z):
        """Log p and log q [B, K] of given states."""
        x, n = data
        mask = (jnp.arange(c.MOST)[:, None] < n)[:, :, None]
        before = jnp.concatenate([jnp.full_like(z[:1], c.START), z[:-1]])
        log_next, log_says = jax.nn.log_softmax(theta["next"]), jax.nn.log_softmax(theta["says"])
        pair = before * 3 + z
        # One table of log p(z | z') + log p(x | z) for each datum and time, so that particles look up once.
        joint = (log_next[None, None] + log_says.T[x][:, :, None]).reshape(*x.shape, 12)
        log_p = jnp.where(mask, jnp.take_along_axis(joint, pair, 2), 0).sum(0) - np.log(c.MOST)
        log_q = jnp.where(mask, jnp.take_along_axis(table.reshape(*x.shape, 12), pair, 2), 0).sum(0)
        return log_p, log_q

    @classmethod
    def program(c, theta, phi, data, key, K):
        """Log p and log q [B, K] by one scan, with a network for each particle."""
        x, n = data
        mask = jnp.arange(c.MOST)[:, None] < n
        h = read_backwards(phi, jax.nn.one_hot(x, c.WORDS) @ phi["wi"] + phi["bi"], mask)
        u = jax.random.uniform(key, (*x.shape, K, 1), dtype=h.dtype)
        def step(at, given):
            z, log_p, log_q = at
            h, x, m, u = given
            more = jnp.concatenate([jnp.broadcast_to(h[:, None], (*z.shape, HIDDEN)), jax.nn.one_hot(z, 4, dtype=h.dtype)], 2)
            q = jax.nn.log_softmax(jnp.tanh(more @ phi["w1"] + phi["b1"]) @ phi["w2"] + phi["b2"])
            now = (u > jnp.cumsum(jnp.exp(jax.lax.stop_gradient(q)), 2)[..., :-1]).sum(2)
            says = jax.nn.log_softmax(theta["says"])[now, x[:, None]]
            log_p += jnp.where(m[:, None], jax.nn.log_softmax(theta["next"])[z, now] + says, 0)
            log_q += jnp.where(m[:, None], jnp.take_along_axis(q, now[..., None], 2)[..., 0], 0)
            return (now, log_p, log_q), None
        zero = jnp.zeros((x.shape[1], K), h.dtype)
        start = jnp.full((x.shape[1], K), c.START), zero - np.log(c.MOST), zero
        return jax.lax.scan(step, start, (h, x, mask, u))[0][1:]

    @classmethod
    def plain(c, theta, phi, data, z):
        """The same by loops."""
        x, n = data
        soft = lambda v: v - np.log(np.exp(v).sum(-1, keepdims=True))
        sig = lambda v: 1 / (1 + np.exp(-v))
        T, B, K = z.shape
        log_p, log_q = np.full((B, K), -np.log(c.MOST)), np.zeros((B, K))
        for b in range(B):
            h, states = np.zeros(HIDDEN), {}
            for t in reversed(range(n[b])):
                gi, gh = phi["wi"][x[t, b]] + phi["bi"], h @ phi["wh"] + phi["bh"]
                r, u = sig(gi[:HIDDEN] + gh[:HIDDEN]), sig(gi[HIDDEN:2 * HIDDEN] + gh[HIDDEN:2 * HIDDEN])
                h = (1 - u) * np.tanh(gi[2 * HIDDEN:] + r * gh[2 * HIDDEN:]) + u * h
                states[t] = h
            for k in range(K):
                before = c.START
                for t in range(n[b]):
                    now = z[t, b, k]
                    more = np.concatenate([states[t], np.eye(4)[before]])
                    logits = soft(np.tanh(more @ phi["w1"] + phi["b1"]) @ phi["w2"] + phi["b2"])
                    log_q[b, k] += logits[now]
                    log_p[b, k] += soft(theta["next"])[before, now] + soft(theta["says"])[now, x[t, b]]
                    before = now
        return log_p, log_q


# ---- switching linear dynamics

class Slds:
    T, NOISE, LR = 10, 0.25, 1e-2
    stay, a, log_q = 1.7, np.array([0.95, -0.8]), np.array([-1.2, 0.4])

    @classmethod
    def init(c, key):
        theta = {"stay": jnp.zeros(()), "a": jnp.array([0.5, 0.0]), "log_q": jnp.array([-0.5, 0.0])}
        return theta, guide_init(key, 1, 4, 1)

    @classmethod
    def data(c, key, B):
        k = jax.random.split(key, 4)
        flip = jax.random.uniform(k[0], (c.T, B)) > 1 / (1 + np.exp(-c.stay))
        law = (jax.random.bernoulli(k[1], 0.5, (B,)) + jnp.cumsum(flip.at[0].set(False), 0)) % 2
        noise = jax.random.normal(k[2], (2, c.T, B))
        a, q = jnp.asarray(c.a)[law], jnp.asarray(np.exp(c.log_q))[law]
        z, out = jnp.zeros(B), []
        for t in range(c.T):
            z = a[t] * z + q[t] * noise[0, t]
            out.append(z + np.sqrt(c.NOISE) * noise[1, t])
        return jnp.stack(out).astype(noise.dtype)

    @classmethod
    def table(c, phi, x):
        """Logits [T, B, 2] of law 1 after each law."""
        h = read_backwards(phi, x[:, :, None] * phi["wi"][0] + phi["bi"], None)
        w = phi["w1"]
        padded = jnp.pad(x, ((3, 0), (0, 0)))
        a = h @ w[:HIDDEN] + phi["b1"] + sum(padded[2 - i:2 - i + c.T, :, None] * w[HIDDEN + 1 + i] for i in range(3))
        a = a[:, :, None] + jnp.arange(2)[:, None] * w[HIDDEN]
        return (jnp.tanh(a) @ phi["w2"])[..., 0] + phi["b2"][0]

    @classmethod
    def draw(c, key, table, K):
        u = jax.random.uniform(key, (*table.shape[:2], K), dtype=table.dtype)
        law, out = jnp.zeros((table.shape[1], K), int), []
        for t in range(c.T):
            logit = jnp.where(law == 1, table[t, :, 1:], table[t, :, :1])
            law = (u[t] < jax.nn.sigmoid(logit)).astype(int)
            out.append(law)
        return jnp.stack(out)

    @classmethod
    def scores(c, theta, table, x, laws):
        before = jnp.concatenate([jnp.zeros_like(laws[:1]), laws[:-1]])
        sign = 2 * laws - 1
        logit = jnp.where(before == 1, table[:, :, 1:], table[:, :, :1])
        log_q = jax.nn.log_sigmoid(sign * logit).sum(0)
        same = jnp.where(laws[1:] == laws[:-1], theta["stay"], -theta["stay"])
        log_p = jax.nn.log_sigmoid(same).sum(0) - np.log(2)
        one = laws == 1
        a = jnp.where(one, theta["a"][1], theta["a"][0])
        q2 = jnp.where(one, jnp.exp(2 * theta["log_q"][1]), jnp.exp(2 * theta["log_q"][0]))
        mean = variance = jnp.zeros(laws.shape[1:], x.dtype)
        for t in range(c.T):
            mean, variance = a[t] * mean, a[t] * a[t] * variance + q2[t]
            total = variance + c.NOISE
            gain, away = variance / total, x[t][:, None] - mean
            log_p = log_p - 0.5 * (away * away / total + jnp.log(2 * np.pi * total))
            mean, variance = mean + gain * away, gain * c.NOISE
        return log_p, log_q

    @classmethod
    def program(c, theta, phi, x, key, K):
        """Log p and log q [B, K] by one scan, with a network for each particle."""
        h = read_backwards(phi, x[:, :, None] * phi["wi"][0] + phi["bi"], None)
        u = jax.random.uniform(key, (c.T, x.shape[1], K), dtype=x.dtype)
        padded = jnp.pad(x, ((3, 0), (0, 0)))
        old = jnp.stack([padded[2 - i:2 - i + c.T] for i in range(3)], 2)
        def step(at, given):
            law, mean, variance, log_p, log_q = at
            h, old, x, u, first = given
            shared = jnp.concatenate([h, old], 1)
            more = jnp.broadcast_to(shared[:, None], (*law.shape, shared.shape[1]))
            more = jnp.concatenate([more[..., :HIDDEN], law[..., None].astype(x.dtype), more[..., HIDDEN:]], 2)
            logit = (jnp.tanh(more @ phi["w1"] + phi["b1"]) @ phi["w2"])[..., 0] + phi["b2"][0]
            now = (u < jax.nn.sigmoid(logit)).astype(int)
            log_q += jax.nn.log_sigmoid((2 * now - 1) * logit)
            stays = jnp.where(now == law, theta["stay"], -theta["stay"])
            log_p += jnp.where(first, -np.log(2), jax.nn.log_sigmoid(stays))
            a, q = theta["a"][now], jnp.exp(theta["log_q"])[now]
            mean, variance = a * mean, a * a * variance + q * q
            total = variance + c.NOISE
            gain, away = variance / total, x[:, None] - mean
            log_p -= 0.5 * (away * away / total + jnp.log(2 * np.pi * total))
            return (now, mean + gain * away, gain * c.NOISE, log_p, log_q), None
        zero = jnp.zeros((x.shape[1], K), x.dtype)
        start = (zero.astype(int), zero, zero, zero, zero)
        return jax.lax.scan(step, start, (h, old, x, u, jnp.arange(c.T) == 0))[0][3:]

    @classmethod
    def plain(c, theta, phi, x, laws):
        sig = lambda v: 1 / (1 + np.exp(-v))
        T, B, K = laws.shape
        log_p, log_q = np.zeros((B, K)), np.zeros((B, K))
        for b in range(B):
            h, states = np.zeros(HIDDEN), {}
            for t in reversed(range(T)):
                gi, gh = x[t, b] * phi["wi"][0] + phi["bi"], h @ phi["wh"] + phi["bh"]
                r, u = sig(gi[:HIDDEN] + gh[:HIDDEN]), sig(gi[HIDDEN:2 * HIDDEN] + gh[HIDDEN:2 * HIDDEN])
                h = (1 - u) * np.tanh(gi[2 * HIDDEN:] + r * gh[2 * HIDDEN:]) + u * h
                states[t] = h
            for k in range(K):
                mean = variance = 0.0
                for t in range(T):
                    law, before = laws[t, b, k], laws[t - 1, b, k] if t else 0
                    old = [x[t - i, b] if t >= i else 0.0 for i in (1, 2, 3)]
                    more = np.concatenate([states[t], [before], old])
                    p = sig((np.tanh(more @ phi["w1"] + phi["b1"]) @ phi["w2"])[0] + phi["b2"][0])
                    log_q[b, k] += np.log(p if law else 1 - p)
                    log_p[b, k] += np.log(sig(theta["stay"] if law == before else -theta["stay"])) if t else np.log(0.5)
                    a, q = theta["a"][law], np.exp(theta["log_q"][law])
                    mean, variance = a * mean, a * a * variance + q * q
                    total, gain = variance + c.NOISE, variance / (variance + c.NOISE)
                    log_p[b, k] += -(x[t, b] - mean)**2 / total / 2 - np.log(2 * np.pi * total) / 2
                    mean, variance = mean + gain * (x[t, b] - mean), gain * c.NOISE
        return log_p, log_q


MODEL = {"hmm": Hmm, "slds": Slds}[o.model]


# ---- wake-wake

def gradient(params, key, B, K):
    """Minus the batch mean of sum_k w_k (grad log p + grad log q), and the bound."""
    keys = jax.random.split(key)
    data = MODEL.data(keys[0], B)
    table, back = jax.vjp(lambda phi: MODEL.table(phi, data), params[1])
    z = MODEL.draw(keys[1], table, K)

    def loss(theta, table):
        log_p, log_q = MODEL.scores(theta, table, data, z)
        log_w = jax.lax.stop_gradient(log_p - log_q)
        w = jax.nn.softmax(log_w, 1)
        return -((w * (log_p + log_q)).sum(1)).mean(), jax.scipy.special.logsumexp(log_w, 1).mean() - np.log(K)
    by, bound = jax.grad(loss, (0, 1), has_aux=True)(params[0], table)
    return (by[0], back(by[1])[0]), bound


def gradient_plain(params, key, B, K):
    """The same by the program of all particles and autodiff."""
    keys = jax.random.split(key)
    data = MODEL.data(keys[0], B)

    def loss(params):
        log_p, log_q = MODEL.program(*params, data, keys[1], K)
        log_w = jax.lax.stop_gradient(log_p - log_q)
        w = jax.nn.softmax(log_w, 1)
        return -((w * (log_p + log_q)).sum(1)).mean(), jax.scipy.special.logsumexp(log_w, 1).mean() - np.log(K)
    return jax.grad(loss, has_aux=True)(params)


def adam(flat, m, v, g, t):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return flat - MODEL.LR * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8), m, v


def make_run(unravel, B, K, n):
    def iteration(i, at, key):
        flat, m, v, t = at
        by = gradient_plain if o.form == "plain" else gradient
        g = jax.flatten_util.ravel_pytree(by(unravel(flat), jax.random.fold_in(key, i), B, K)[0])[0]
        return (*adam(flat, m, v, g, t + 1), t + 1)
    if o.form == "tuned":
        return jax.jit(lambda state, key: jax.lax.fori_loop(0, n, lambda i, at: iteration(i, at, key), state))
    one = jax.jit(iteration)

    def run(state, key):
        for i in range(n):
            state = one(i, state, key)
        return state
    return run


def check():
    params = MODEL.init(jax.random.PRNGKey(1))
    params = jax.tree.map(lambda p: p + 0.3 * jax.random.normal(jax.random.PRNGKey(2), p.shape), params)
    keys = jax.random.split(jax.random.PRNGKey(3))
    data = MODEL.data(keys[0], 4)
    table = MODEL.table(params[1], data)
    z = MODEL.draw(keys[1], table, 3)
    ours = MODEL.scores(params[0], table, data, z)
    plain = MODEL.plain(*jax.tree.map(np.asarray, (params[0], params[1], data, z)))
    worst = max(float(np.abs(np.asarray(a) - b).max()) for a, b in zip(ours, plain))

    # The gradient along a random direction, at the same draws, by a difference of the plain version.
    direction = jax.tree.map(lambda p: jax.random.normal(jax.random.PRNGKey(4), p.shape), params)
    w = np.exp(plain[0] - plain[1])
    w /= w.sum(1, keepdims=True)
    def value(step):
        moved = jax.tree.map(lambda p, d: np.asarray(p + step * d), params, direction)
        log_p, log_q = MODEL.plain(*moved, *jax.tree.map(np.asarray, (data, z)))
        return (w * (log_p + log_q)).sum(1).mean()
    def target(params):
        log_p, log_q = MODEL.scores(params[0], MODEL.table(params[1], data), data, z)
        return (jnp.asarray(w) * (log_p + log_q)).sum(1).mean()
    slope = sum(jax.tree.leaves(jax.tree.map(lambda g, d: float((g * d).sum()), jax.grad(target)(params), direction)))
    other = (value(1e-5) - value(-1e-5)) / 2e-5
    forms = [f(params, jax.random.PRNGKey(5), 4, 3)[0] for f in (gradient, gradient_plain)]
    apart = max(jax.tree.leaves(jax.tree.map(lambda a, b: float(jnp.abs(a - b).max()), *forms)))
    print("%s: the gradients of both forms differ by %.1e" % (o.model, apart))
    print("%s: densities differ by %.1e, the gradient by %.1e of %.3g" % (o.model, worst, abs(slope - other), other))
    sys.exit(not (apart < 1e-9 and worst < 1e-9 and abs(slope - other) < 1e-5 * max(1, abs(other))))


def main():
    import jax.flatten_util
    if o.check:
        check()
    B, K = o.batch, o.particles
    params = MODEL.init(jax.random.PRNGKey(1))
    flat, unravel = jax.flatten_util.ravel_pytree(params)
    state = (flat, jnp.zeros_like(flat), jnp.zeros_like(flat), jnp.zeros((), int))
    n = 100
    run = make_run(unravel, B, K, n)
    if o.train:
        for i in range(o.train // n):
            state = run(state, jax.random.PRNGKey(100 + i))
        bound = jax.jit(lambda p, key: gradient(p, key, 500, 100)[1])(unravel(state[0]), jax.random.PRNGKey(7))
        print("log p(x) by 100 particles, 500 data: %.3f" % float(bound))
        return
    run(state, jax.random.PRNGKey(0))[0].block_until_ready()
    best = float("inf")
    for i in range(o.repeats):
        begin = time.perf_counter()
        run(state, jax.random.PRNGKey(i))[0].block_until_ready()
        best = min(best, (time.perf_counter() - begin) / n)
    said = {"model": o.model, "form": o.form, "us_per_iteration": 1e6 * best, "threads": o.threads, "particles": K, "batch": B,
            "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "jax": jax.__version__}
    print(json.dumps(said) if o.json else "%s: %.3f ms per iteration" % (o.model, 1e3 * best))


main()
