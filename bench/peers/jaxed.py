#!/usr/bin/env python3
"""Training of the mixture, the belief network and AIR in JAX on the CPU, in two forms.

plain: as one writes it first. A program for one particle is mapped over particles and data (vmap), the gradient of the
method's objective is taken by autodiff, and an iteration is one compiled function that Python calls.

tuned: as the best users would. A hundred iterations are one compiled loop, which also makes data and noise, by a hash of
counters; what depends on the datum only is computed once per datum; draws of the
mixture are counted per category, and its gradients and those of the belief network are written by hand.

Sizes, data, optimisers and learning rates are those of models/ and of the PyTorch peers. Rectangles are computed whole, so
that an iteration takes equally long early and late in a training, but for the caches.

    jaxed.py --model gmm --method ww --particles 20 --form tuned --json     microseconds per iteration
    jaxed.py --model gmm --check              both forms against each other in double precision, at the same draws
    jaxed.py --model gmm --train 2000         trains, and prints the last bound and, of the mixture, the exact evidence
"""
import argparse
import json
import os
import resource
import sys
import time

METHODS = {"gmm": ["ww", "ws", "vimco", "dww", "concrete", "rebar", "relax"], "sbn": ["ww", "vimco"], "air": ["ww", "vimco"]}

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--model", choices=list(METHODS), default="gmm")
parser.add_argument("--method", default="ww")
parser.add_argument("--form", choices=["plain", "tuned"], default="tuned")
parser.add_argument("--particles", type=int, default=20)
parser.add_argument("--batch", type=int, default=0, help="data per iteration (default: the model's)")
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--iterations", type=int, default=100, help="iterations of a part that is timed")
parser.add_argument("--repeats", type=int, default=5, help="parts, the fastest of which counts")
parser.add_argument("--after", type=int, default=0, help="iterations before the timed ones")
parser.add_argument("--json", action="store_true")
parser.add_argument("--check", action="store_true")
parser.add_argument("--train", type=int, default=0, metavar="N")
o = parser.parse_args()
if o.method not in METHODS[o.model]:
    parser.error("%s has no method %s; it has %s" % (o.model, o.method, ", ".join(METHODS[o.model])))

# XLA has as many threads as the process may use processors.
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:o.threads])
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=" + ("true" if o.threads > 1 else "false")
os.environ["JAX_PLATFORMS"] = "cpu"
if o.check:
    os.environ["JAX_ENABLE_X64"] = "1"
try:
    import jax
except ImportError:
    sys.exit("jaxed.py: this Python has no jax; pip install jax in a virtual environment brings it.")
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
from jax.nn import log_sigmoid, log_softmax, sigmoid, softmax, softplus
from jax.scipy.special import logsumexp

if o.form == "tuned":
    jax.config.update("jax_default_prng_impl", "unsafe_rbg")
stop = jax.lax.stop_gradient
LOG_2PI = np.log(2 * np.pi)


def random_bits(key, shape):
    """Random bits of 32 as a hash of a counter and the key, in one loop: XLA's own generators take ten times as long here."""
    a, b = jnp.ravel(jax.random.key_data(key))[:2].astype(jnp.uint32)
    x = jax.lax.iota(jnp.uint32, int(np.prod(shape))) * np.uint32(0x9e3779b9) + a
    for salt in (b, a ^ np.uint32(0x85ebca6b)):
        x = (x ^ x >> 16) * np.uint32(0x7feb352d)
        x = (x ^ x >> 15) * np.uint32(0x846ca68b)
        x = (x ^ x >> 16) + salt
    return (x ^ x >> 16).reshape(shape)


def uniform(key, shape, dtype=None, low=0.0):
    dtype = dtype or jnp.result_type(float)
    if o.form == "plain":
        return jax.random.uniform(key, shape, dtype, minval=low)
    one = jax.lax.bitcast_convert_type(random_bits(key, shape) >> 9 | np.uint32(0x3f800000), jnp.float32)
    return jnp.maximum(one.astype(dtype) - 1, low)


def normal(key, shape, dtype=None):
    dtype = dtype or jnp.result_type(float)
    if o.form == "plain":
        return jax.random.normal(key, shape, dtype)
    u = uniform(key, (2, *shape), dtype, 1e-7)
    return jnp.sqrt(-2 * jnp.log(u[0])) * jnp.cos(2 * np.pi * u[1])


def uniform_init(key, shape, n_in):
    return jax.random.uniform(key, shape, minval=-1, maxval=1) / np.sqrt(n_in)


def ends_of(q):
    """Running sums of the last axis but the last one, as a product: XLA's own cumsum is slow on processors."""
    return q @ jnp.asarray(np.triu(np.ones((q.shape[-1], q.shape[-1] - 1))), q.dtype)


def log_normal(z, mu, sd):
    return -0.5 * ((z - mu) / sd)**2 - jnp.log(sd) - 0.5 * LOG_2PI


def coefficients(method, l):
    """Of log-weights [K, B]: bounds [B], and the coefficients of grad log p and of grad log q [K, B]."""
    K = l.shape[0]
    total = logsumexp(l, 0)
    w, L = jnp.exp(l - total), total - np.log(K)
    if method == "ww" or K == 1:
        return L, w, w
    top = l.max(0)
    e = jnp.exp(l - top)
    others = jnp.maximum(e.sum(0) - e, 1e-30)
    mean = (l.sum(0) - l) / (K - 1)
    baseline = jnp.logaddexp(jnp.log(others) + top, mean) - np.log(K)
    return L, w, L - baseline - w


# ---- optimisers: of (parameters, two moments), flat

def adam(rate):
    def step(p, m, v, g, t):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        return p - rate * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8), m, v
    return step, 0.0


def rmsprop(rate):
    """TensorFlow's: the mean square starts at 1, eps is inside the root, then momentum."""
    def step(p, s, momentum, g, t):
        s = 0.9 * s + 0.1 * g * g
        momentum = 0.9 * momentum + rate * g / jnp.sqrt(s + 1e-10)
        return p - momentum, s, momentum
    return step, 1.0


# ---- the Gaussian mixture

class Gmm:
    C, H, BATCH, DELTA, OPTIMISER = 20, 16, 100, 0.2, adam(1e-3)

    @classmethod
    def init(c, key):
        k = jax.random.split(key, 6)
        params = {"theta": jnp.arange(c.C - 1.0, -1, -1),
                  "phi": {"w1": uniform_init(k[0], (c.H,), 1), "b1": uniform_init(k[1], (c.H,), 1),
                          "w2": uniform_init(k[2], (c.H, c.C), c.H), "b2": uniform_init(k[3], (c.C,), c.H)}}
        if o.method == "rebar":
            params["rho"] = jnp.array([1.0, 0.0])
        if o.method == "relax":
            params["rho"] = {"a1": uniform_init(k[4], (1 + c.C, c.H), 1 + c.C), "b1": jnp.zeros(c.H),
                             "a2": uniform_init(k[5], (c.H, c.H), c.H), "b2": jnp.zeros(c.H),
                             "a3": jnp.full(c.H, 0.1), "b3": jnp.zeros(())}
        return params

    @classmethod
    def data(c, key, B):
        k = jax.random.split(key)
        ends = jnp.asarray(np.cumsum(np.arange(c.C) + 5.0) / 290)
        z = (uniform(k[0], (B, 1)) > ends[:-1]).sum(1)
        return 10.0 * z + 5 * normal(k[1], (B,))

    @staticmethod
    def hidden(phi, x):
        return jnp.tanh(x[..., None] * phi["w1"] + phi["b1"])

    @classmethod
    def logits(c, phi, x):
        return c.hidden(phi, x) @ phi["w2"] + phi["b2"]

    @classmethod
    def likelihood(c, x):
        """log N(x; 10 c, 25) [B, C]."""
        return log_normal(x[:, None], 10.0 * jnp.arange(c.C), 5.0)

    # plain: z and x of one particle

    @classmethod
    def log_p(c, theta, z, x):
        return log_softmax(theta)[z] + log_normal(x, 10.0 * z, 5.0)

    @classmethod
    def log_q(c, phi, z, x):
        return log_softmax(c.logits(phi, x))[z]

    @classmethod
    def over(c, f, parameters, z, x):
        """f of every particle: z [K, B], x [B] or [K, B]."""
        inner = jax.vmap(lambda z, x: f(parameters, z, x))
        return jax.vmap(inner, (0, 0 if x.ndim == 2 else None))(z, x)

    @classmethod
    def draw(c, key, logits, K):
        """Indices [K, B], in both forms by the same uniform numbers."""
        u = uniform(key, (K, logits.shape[0], 1), dtype=logits.dtype)
        return (u > ends_of(softmax(logits))).sum(2)

    @classmethod
    def wake_objective(c, theta, phi, x, z):
        log_p, log_q = c.over(c.log_p, theta, z, x), c.over(c.log_q, phi, z, x)
        L, cp, cq = coefficients("vimco" if o.method == "vimco" else "ww", stop(log_p - log_q))
        return -((stop(cp) * log_p).sum(0) + (stop(cq) * log_q).sum(0)).mean(), L.mean()

    @classmethod
    def gradient_plain(c, p, key, x, K, t):
        """Steps: functions of the parameters, each giving (a gradient of the same form, the bound)."""
        k = jax.random.split(key, 4)
        if o.method in ("ww", "vimco"):
            def both(p):
                z = c.draw(k[0], c.logits(p["phi"], x), K)
                g, L = jax.grad(lambda p: c.wake_objective(p["theta"], p["phi"], x, z), has_aux=True)(p)
                return g, L
            return [both]
        if o.method in ("ws", "dww"):
            def theta_step(p):
                z = c.draw(k[0], c.logits(p["phi"], x), K)
                g, L = jax.grad(lambda theta: c.wake_objective(theta, p["phi"], x, z), has_aux=True)(p["theta"])
                return {"theta": g}, L
            def sleep(p):
                z = c.draw(k[1], jnp.broadcast_to(p["theta"], (x.shape[0], c.C)), K)
                made = 10.0 * z + 5 * normal(k[2], z.shape)
                return {"phi": jax.grad(lambda phi: -c.over(c.log_q, phi, z, made).mean())(p["phi"])}, 0.0
            def defensive(p):
                q = (1 - c.DELTA) * softmax(c.logits(p["phi"], x)) + c.DELTA / c.C
                z = c.draw(k[1], jnp.log(q), K)
                l = c.over(c.log_p, p["theta"], z, x) - jnp.log(jnp.take_along_axis(q.T, z, 0))
                w = softmax(l, 0)
                return {"phi": jax.grad(lambda phi: -(w * c.over(c.log_q, phi, z, x)).sum(0).mean())(p["phi"])}, 0.0
            return [theta_step, sleep if o.method == "ws" else defensive]
        return [lambda p: c.relaxed(p, k, x, K, t)]

    # the relaxed methods have one form: their gradients by autodiff, iterations in one loop or in Python

    @classmethod
    def concrete(c, theta, phi, noise, x, tau):
        lq = log_softmax(c.logits(phi, x))
        y = (lq + noise) / tau
        log_s = y - logsumexp(y, -1, keepdims=True)
        s = jnp.exp(log_s)
        first = jnp.argmax(y, -1)
        log_q = (c.C - 1) * jnp.log(tau) + (lq - (tau + 1) * log_s).sum(-1) - c.C * logsumexp(lq - tau * log_s, -1)
        log_p = log_softmax(theta)[first] + log_normal(x, 10.0 * (s @ jnp.arange(float(c.C))), 5.0)
        l = log_p - log_q
        return -(logsumexp(l, 0) - np.log(l.shape[0])).mean()

    @classmethod
    def control(c, rho, y, x, theta, q):
        """The control variate [B] of relaxed samples y [K, B, C]; p and q are constants in it."""
        if o.method == "relax":
            with_x = jnp.concatenate([jnp.broadcast_to(x[:, None], y.shape[:2] + (1,)), y], -1)
            h = jnp.tanh(with_x @ rho["a1"] + rho["b1"])
            return (jnp.tanh(h @ rho["a2"] + rho["b2"]) @ rho["a3"] + rho["b3"]).mean(0)
        s = softmax(y / jnp.exp(rho[1]))
        mean = s @ (10.0 * jnp.arange(c.C))
        r = jnp.log(s @ softmax(theta)) + log_normal(x, mean, 5.0) - jnp.log((s * q).sum(-1))
        return rho[0] * (logsumexp(r, 0) - np.log(r.shape[0]))

    @classmethod
    def relaxed(c, p, k, x, K, t):
        u, v = uniform(k[0], (2, K, x.shape[0], c.C), low=1e-7)
        noise = -jnp.log(-jnp.log(u))
        if o.method == "concrete":
            tau = 3 - 2.5 * jnp.minimum(t / 100000.0, 1.0)
            L, g = jax.value_and_grad(lambda two: c.concrete(*two, noise, x, tau))((p["theta"], p["phi"]))
            return {"theta": g[0], "phi": g[1]}, -L
        z = jnp.argmax(log_softmax(c.logits(p["phi"], x)) + noise, -1)
        chosen = jax.nn.one_hot(z, c.C, dtype=noise.dtype)
        lik = jnp.take_along_axis(c.likelihood(x).T, z, 0)
        def log_w(theta, lq):
            return log_softmax(theta)[z] + lik - (lq * chosen).sum(-1)
        def phi_gradient(phi, rho):
            def surrogate(phi):
                lq = log_softmax(c.logits(phi, x))
                q = stop(jnp.exp(lq))
                g = lq + noise
                log_e = jnp.log(-jnp.log(v))  # conditional Gumbels: the chosen one is the largest
                top = -(log_e * chosen).sum(-1, keepdims=True)
                gt = jnp.where(chosen > 0, top, -jnp.logaddexp(log_e - lq, -top))
                l = stop(log_w(p["theta"], lq))
                picked = (lq * chosen).sum(-1)
                L = logsumexp(l, 0) - np.log(K)
                signal = L - c.control(rho, stop(gt), x, p["theta"], q)
                return ((signal * picked.sum(0) - (softmax(l, 0) * picked).sum(0)
                         + c.control(rho, g, x, p["theta"], q) - c.control(rho, gt, x, p["theta"], q)).mean(), L.mean())
            return jax.grad(surrogate, has_aux=True)(phi)
        def spread(rho):
            g, L = phi_gradient(p["phi"], rho)
            flat = jax.flatten_util.ravel_pytree(g)[0]
            return (flat * flat).mean(), (g, L)
        rho, (phi, L) = jax.grad(spread, has_aux=True)(p["rho"])
        l = log_w(p["theta"], log_softmax(c.logits(p["phi"], x)))
        theta = jax.grad(lambda theta: -(softmax(l, 0) * log_w(theta, 0.0 * l[..., None])).sum(0).mean())(p["theta"])
        return {"theta": theta, "phi": jax.tree.map(jnp.negative, phi), "rho": rho}, L

    # tuned: particles of a datum as counts [B, C] of each category

    @classmethod
    def counts(c, key, q, K):
        u = uniform(key, (K, q.shape[0], 1), dtype=q.dtype)
        below = (u > ends_of(q)).sum(0).astype(q.dtype)  # [B, C - 1]: draws beyond each end
        ends = jnp.concatenate([jnp.full((q.shape[0], 1), float(K), q.dtype), below, jnp.zeros((q.shape[0], 1), q.dtype)], 1)
        return ends[:, :-1] - ends[:, 1:]

    @classmethod
    def backward(c, phi, x, h, d):
        """The gradient of phi of d [B, C], that of the logits."""
        e = (d @ phi["w2"].T) * (1 - h * h)
        return {"w1": x @ e, "b1": e.sum(0), "w2": h.T @ d, "b2": d.sum(0)}

    @classmethod
    def gradient_tuned(c, p, key, x, K, t):
        k = jax.random.split(key, 4)
        B = x.shape[0]
        if o.method not in ("ww", "vimco", "ws", "dww"):
            return [lambda p: c.relaxed(p, k, x, K, t)]
        lik = c.likelihood(x)

        def wake(p):
            phi = p["phi"]
            h = c.hidden(phi, x)
            lq = log_softmax(h @ phi["w2"] + phi["b2"])
            q = jnp.exp(lq)
            n = c.counts(k[0], q, K)
            l = lik + log_softmax(p["theta"]) - lq
            top = jnp.where(n > 0, l, -jnp.inf).max(1, keepdims=True)
            e = jnp.where(n > 0, jnp.exp(l - top), 0)
            total = (n * e).sum(1, keepdims=True)
            w = n * e / total
            L = jnp.log(total[:, 0]) + top[:, 0] - np.log(K)
            theta = softmax(p["theta"]) - w.sum(0) / B
            if o.method != "vimco":
                return h, q, w, w - q, theta, L.mean()
            mean = ((n * l).sum(1, keepdims=True) - l) / (K - 1)
            baseline = jnp.logaddexp(jnp.log(jnp.maximum(total - e, 1e-30)) + top, mean) - np.log(K)
            a = jnp.where(n > 0, n * (L[:, None] - baseline), 0) - w
            return h, q, w, a - q * a.sum(1, keepdims=True), theta, L.mean()

        def both(p):
            h, _, _, d, theta, L = wake(p)
            return {"theta": theta, "phi": c.backward(p["phi"], x, h, -d / B)}, L

        def theta_step(p):
            *_, theta, L = wake(p)
            return {"theta": theta}, L

        def sleep(p):
            phi = p["phi"]
            ends = ends_of(softmax(p["theta"]))
            u = uniform(k[1], (K, B, 1), dtype=x.dtype)
            z = (u > ends).sum(2)
            made = (10.0 * z + 5 * normal(k[2], z.shape)).reshape(-1)
            h = c.hidden(phi, made)
            d = softmax(h @ phi["w2"] + phi["b2"]) - jax.nn.one_hot(z.reshape(-1), c.C, dtype=x.dtype)
            return {"phi": c.backward(phi, made, h, d / (K * B))}, 0.0

        def defensive(p):
            phi = p["phi"]
            h = c.hidden(phi, x)
            q = softmax(h @ phi["w2"] + phi["b2"])
            mixed = (1 - c.DELTA) * q + c.DELTA / c.C
            n = c.counts(k[1], mixed, K)
            l = jnp.where(n > 0, lik + log_softmax(p["theta"]) - jnp.log(mixed), -jnp.inf)
            e = n * jnp.exp(l - l.max(1, keepdims=True))
            return {"phi": c.backward(phi, x, h, (q - e / e.sum(1, keepdims=True)) / B)}, 0.0
        return {"ww": [both], "vimco": [both], "ws": [theta_step, sleep], "dww": [theta_step, defensive]}[o.method]

    @classmethod
    def evidence(c, p):
        x = c.data(jax.random.PRNGKey(77), 10000)
        return float(logsumexp(c.likelihood(x) + log_softmax(p["theta"]), 1).mean())


# ---- the sigmoid belief network

class Sbn:
    H, X, BATCH, OPTIMISER = 200, 784, 24, adam(3e-4)
    IMAGES = None

    @classmethod
    def init(c, key):
        sizes = {"W1": (c.H, c.X), "W2": (c.H, c.H), "W3": (c.H, c.H), "V1": (c.X, c.H), "V2": (c.H, c.H), "V3": (c.H, c.H)}
        out, keys = {"a": jnp.zeros(c.H)}, jax.random.split(key, 12)
        for i, (name, shape) in enumerate(sizes.items()):
            out[name] = uniform_init(keys[2 * i], shape, shape[0])
            out["bc"["WV".index(name[0])] + name[1]] = uniform_init(keys[2 * i + 1], shape[1:], shape[0])
        mean = c.images()[:2000].mean(0)
        out["b1"] = jnp.log(jnp.clip(mean, 1e-4, 1 - 1e-4) / jnp.clip(1 - mean, 1e-4, 1))
        return out

    @classmethod
    def images(c):
        """Grey images: handwritten digits if `rws data mnist` was run, else blobs about as dark."""
        if c.IMAGES is None:
            folder = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
            path = os.path.join(folder, "rws", "mnist", "train-images-idx3-ubyte")
            if os.path.exists(path):
                grey = np.memmap(path, np.uint8, "r", 16).reshape(-1, c.X)[:10000] / 255
            else:
                rng, side = np.random.default_rng(1), np.linspace(-1, 1, 28)
                centre, width = rng.normal(0, 0.35, (2000, 4, 2, 1)), rng.uniform(0.1, 0.25, (2000, 4, 2, 1))
                bump = np.exp(-0.5 * ((side - centre) / width)**2)
                grey = np.einsum("nby,nbx->nyx", bump[:, :, 0], bump[:, :, 1]).reshape(-1, c.X) * 1.2 - 0.2
            c.IMAGES = np.asarray(np.clip(grey, 0, 1), np.float32)
            c.MEAN = c.IMAGES[:2000].mean(0)
        return c.IMAGES

    @classmethod
    def data(c, key, B):
        k, all = jax.random.split(key), jnp.asarray(c.images())
        grey = all[jax.random.randint(k[0], (B,), 0, len(c.images()))]
        return (uniform(k[1], grey.shape) < grey).astype(jnp.result_type(float))

    @staticmethod
    def log_bernoulli(h, logits):
        return (h * logits - softplus(logits)).sum(-1)

    @classmethod
    def program(c, p, u, x):
        """log p and log q of one particle: u [3, H] are its uniform numbers."""
        sign = lambda h: 2 * h - 1
        log_q, below, hs = 0.0, x - c.MEAN, []
        for i, (V, b) in enumerate((("V1", "c1"), ("V2", "c2"), ("V3", "c3"))):
            logits = below @ p[V] + p[b]
            h = stop((u[i] < sigmoid(logits)).astype(x.dtype))
            log_q = log_q + c.log_bernoulli(h, logits)
            hs, below = hs + [h], sign(h)
        log_p = c.log_bernoulli(hs[2], p["a"]) + c.log_bernoulli(hs[1], sign(hs[2]) @ p["W3"] + p["b3"])
        log_p += c.log_bernoulli(hs[0], sign(hs[1]) @ p["W2"] + p["b2"])
        return log_p + c.log_bernoulli(x, sign(hs[0]) @ p["W1"] + p["b1"]), log_q

    @classmethod
    def gradient_plain(c, p, key, x, K, t):
        u = uniform(key, (K, x.shape[0], 3, c.H), dtype=x.dtype)
        def loss(p):
            one = jax.vmap(lambda u, x: c.program(p, u, x))
            log_p, log_q = jax.vmap(one, (0, None))(u, x)
            L, cp, cq = coefficients(o.method, stop(log_p - log_q))
            return -((stop(cp) * log_p).sum(0) + (stop(cq) * log_q).sum(0)).mean(), L.mean()
        return [lambda p: jax.grad(loss, has_aux=True)(p)]

    @classmethod
    def gradient_tuned(c, p, key, x, K, t):
        """Every gradient is an outer product of a residual and an input; log q(h1|x) is once per datum."""
        B = x.shape[0]
        u = jnp.moveaxis(uniform(key, (K, B, 3, c.H), dtype=x.dtype), 2, 0)
        def both(p):
            q1 = (x - c.MEAN) @ p["V1"] + p["c1"]
            h1 = (u[0] < sigmoid(q1)).astype(x.dtype)
            s1 = 2 * h1 - 1
            q2 = s1 @ p["V2"] + p["c2"]
            r2 = sigmoid(q2)
            h2 = (u[1] < r2).astype(x.dtype)
            s2 = 2 * h2 - 1
            q3 = s2 @ p["V3"] + p["c3"]
            r3 = sigmoid(q3)
            h3 = (u[2] < r3).astype(x.dtype)
            s3 = 2 * h3 - 1
            p3, p2, p1 = s3 @ p["W3"] + p["b3"], s2 @ p["W2"] + p["b2"], s1 @ p["W1"] + p["b1"]
            log_q = (h1 * q1 - softplus(q1)).sum(2) + (h2 * q2 - softplus(q2) + h3 * q3 - softplus(q3)).sum(2)
            log_p = c.log_bernoulli(h3, p["a"]) + (h2 * p3 - softplus(p3) + h1 * p2 - softplus(p2)).sum(2)
            log_p = log_p + jnp.einsum("kbx,bx->kb", p1, x) - softplus(p1).sum(2)
            L, cp, cq = coefficients(o.method, log_p - log_q)
            cp, cq = -cp[..., None] / B, -cq[..., None] / B
            flat = lambda a: a.reshape(K * B, -1)
            outer = lambda s, d: flat(s).T @ flat(d)
            d1, d2, d3 = cp * (x - sigmoid(p1)), cp * (h1 - sigmoid(p2)), cp * (h2 - sigmoid(p3))
            e1, e2, e3 = (cq * (h1 - sigmoid(q1))).sum(0), cq * (h2 - r2), cq * (h3 - r3)
            total = lambda d: d.sum((0, 1))
            return {"a": total(cp * (h3 - sigmoid(p["a"]))), "W1": outer(s1, d1), "b1": total(d1), "W2": outer(s2, d2),
                    "b2": total(d2), "W3": outer(s3, d3), "b3": total(d3), "V1": (x - c.MEAN).T @ e1, "c1": e1.sum(0),
                    "V2": outer(s1, e2), "c2": total(e2), "V3": outer(s2, e3), "c3": total(e3)}, L.mean()
        return [both]


# ---- Attend, Infer, Repeat

class Air:
    N, SIDE, GLIMPSE, WHAT, WHERE, HIDDEN, BATCH, OPTIMISER = 3, 50, 20, 50, 4, 256, 32, rmsprop(1e-5)
    MLPS = {"decoder": (50, 256, 256, 400), "encoder": (2500, 256, 256), "rnn_e": (256, 256), "rnn_z": (54, 256),
            "rnn_h": (256, 256), "presence": (256, 128, 64, 1), "where": (256, 256, 256, 8), "glimpse": (400, 256, 256),
            "what": (256, 100)}
    CANVASES = None

    @classmethod
    def canvases(c):
        if c.CANVASES is None:
            rng, side = np.random.default_rng(1), np.arange(c.SIDE)
            out = np.zeros((1000, c.SIDE, c.SIDE))
            for image in out:
                for _ in range(rng.integers(0, 3)):
                    centre, width = rng.uniform(10, 40, (2, 1)), rng.uniform(2, 5, (2, 1))
                    image += np.outer(*np.exp(-0.5 * ((side - centre) / width)**2))
            c.CANVASES = np.asarray(np.clip(out * 1.5 - 0.2, 0, 1).reshape(1000, -1), np.float32)
        return c.CANVASES

    @classmethod
    def init(c, key):
        p = {"steps": jnp.zeros(c.N + 1), "image": jnp.asarray(c.canvases().mean(0)), "canvas": jnp.full(c.SIDE**2, 88.0),
             "first": jnp.zeros(c.WHERE), "h0": jnp.zeros(c.HIDDEN), "prior0.b": jnp.zeros(10), "prior1.b": jnp.zeros(4),
             "prior2.b": jnp.zeros(8)}
        weights = {"prior0.W": (7, 10), "prior1.W": (10, 4), "prior2.W": (4, 8)}
        for name, sizes in c.MLPS.items():
            for i, (n_in, n_out) in enumerate(zip(sizes, sizes[1:])):
                weights["%s.%d.W" % (name, i)] = n_in, n_out
                p["%s.%d.b" % (name, i)] = jnp.zeros(n_out)
        for i, (name, shape) in enumerate(weights.items()):
            n_in = 311 if name in ("rnn_e.0.W", "rnn_z.0.W") else shape[0]
            p[name] = jax.random.truncated_normal(jax.random.fold_in(key, i), -2, 2, shape) / np.sqrt(n_in)
        return p

    @classmethod
    def data(c, key, B):
        k = jax.random.split(key)
        grey = jnp.asarray(c.canvases())[jax.random.randint(k[0], (B,), 0, 1000)]
        return (uniform(k[1], grey.shape) < grey).astype(jnp.result_type(float))

    @classmethod
    def mlp(c, p, name, h):
        n = len(c.MLPS[name]) - 1
        for i in range(n):
            h = h @ p["%s.%d.W" % (name, i)] + p["%s.%d.b" % (name, i)]
            if i < n - 1 or name in ("encoder", "glimpse"):
                h = jax.nn.elu(h)
        return h

    @staticmethod
    def tents(source, n):
        """Weights of bilinear interpolation at coordinates [..., i] of n pixels."""
        return jnp.maximum(0, 1 - jnp.abs(source[..., None] - jnp.arange(float(n))))

    @classmethod
    def place(c, where):
        return jnp.maximum(sigmoid(where[..., :2]), 1e-4), jnp.tanh(where[..., 2:])

    @classmethod
    def read(c, x, where):
        """Glimpses [..., 400] of images [..., 2500], by products with two thin matrices."""
        scale, shift = c.place(where)
        at = (scale[..., None] * jnp.linspace(-1, 1, c.GLIMPSE) + shift[..., None] + 1) * (c.SIDE - 1) / 2
        Rx, Ry = c.tents(at[..., 0, :], c.SIDE), c.tents(at[..., 1, :], c.SIDE)
        glimpse = Ry @ x.reshape(*x.shape[:-1], c.SIDE, c.SIDE) @ jnp.swapaxes(Rx, -1, -2)
        return glimpse.reshape(*glimpse.shape[:-2], -1)

    @classmethod
    def write(c, p, what, where):
        """An object on its canvas [..., 50, 50], and what it covers there."""
        scale, shift = c.place(where)
        at = ((jnp.linspace(-1, 1, c.SIDE) - shift[..., None]) / scale[..., None] + 1) * (c.GLIMPSE - 1) / 2
        Wx, Wy = c.tents(at[..., 0, :], c.GLIMPSE), c.tents(at[..., 1, :], c.GLIMPSE)
        glimpse = 0.25 * c.mlp(p, "decoder", what)
        image = Wy @ glimpse.reshape(*glimpse.shape[:-1], c.GLIMPSE, c.GLIMPSE) @ jnp.swapaxes(Wx, -1, -2)
        return image, Wy.sum(-1)[..., :, None] * Wx.sum(-1)[..., None, :]

    @classmethod
    def step(c, p, at, base, x, draw):
        """One object of particles [...]: their state, whether they go on, log q of the choice and of the object, and it."""
        h, zs, on = at
        u, noise = draw
        h = jnp.tanh(base + c.mlp(p, "rnn_z", zs) - p["rnn_z.0.b"] + c.mlp(p, "rnn_h", h))
        logit = c.mlp(p, "presence", h)[..., 0] + 1
        yes = stop(on * (u < sigmoid(logit)))
        log_q_n = on * jnp.where(yes > 0, log_sigmoid(logit), log_sigmoid(-logit))
        pathwise = o.method == "vimco"
        out = c.mlp(p, "where", h)
        mu, sd = out[..., :4], softplus(out[..., 4:] - 3) + 0.01
        where = mu + sd * noise[..., :4]
        where = where if pathwise else stop(where)
        log_q = log_normal(where, mu, sd).sum(-1)
        out = c.mlp(p, "what", c.mlp(p, "glimpse", c.read(x, where)))
        mu, sd = out[..., :c.WHAT], softplus(out[..., c.WHAT:]) + 0.01
        what = mu + sd * noise[..., 4:]
        what = what if pathwise else stop(what)
        log_q = (log_q + log_normal(what, mu, sd).sum(-1)) * yes
        return (h, jnp.concatenate([what, where], -1), yes), (yes, log_q_n, log_q, what, where)

    @classmethod
    def log_model(c, p, x, yes, what, where):
        """log p; the objects' axis is the first one."""
        n = yes.sum(0).astype(int)
        first = jnp.concatenate([jnp.broadcast_to(p["first"], (c.N + 1, c.WHERE)), jnp.tri(c.N + 1, c.N, -1)], 1)
        y = jnp.tanh(jax.nn.elu(first @ p["prior0.W"] + p["prior0.b"]) @ p["prior1.W"] + p["prior1.b"])
        out = (y @ p["prior2.W"] + p["prior2.b"])[n]
        prior = log_normal(where, out[..., :4], softplus(out[..., 4:]) + 0.01).sum(-1) + log_normal(what, 0.0, 1.0).sum(-1)
        images, covers = c.write(p, what, where)
        shown = yes[..., None, None]
        y, a = (images * shown).sum(0), (covers * shown).sum(0)
        y, mask = y.reshape(*y.shape[:-2], -1), sigmoid(20 * a.reshape(*a.shape[:-2], -1) - 10)
        m = jnp.clip(p["image"], 1e-4, 1 - 1e-4)
        logits = jnp.clip(y + mask * (jnp.log(m) - jnp.log1p(-m)) + (mask - 1) * p["canvas"], -88, 16)
        return log_softmax(p["steps"])[n] + (prior * yes).sum(0) + (x * logits - softplus(logits)).sum(-1)

    @classmethod
    def objective(c, log_p, log_q_n, log_q):
        L, cp, cq = coefficients(o.method, stop(log_p - log_q_n - log_q))
        cp, cq = stop(cp), stop(cq)
        if o.method == "ww":
            return -(cp * (log_p + log_q_n + log_q)).sum(0).mean(), L.mean()
        return -(cp * (log_p - log_q_n - log_q) + (cq + cp) * log_q_n).sum(0).mean(), L.mean()

    @classmethod
    def noise(c, key, B, K, dtype):
        k = jax.random.split(key)
        return (uniform(k[0], (c.N, K, B), dtype=dtype),
                normal(k[1], (c.N, K, B, 4 + c.WHAT), dtype=dtype))

    @classmethod
    def gradient_plain(c, p, key, x, K, t):
        u, noise = c.noise(key, x.shape[0], K, x.dtype)
        def program(p, u, noise, x):
            """One particle."""
            base = c.mlp(p, "rnn_e", c.mlp(p, "encoder", x))
            start = (p["h0"], jnp.zeros(c.WHAT + c.WHERE, x.dtype), jnp.ones((), x.dtype))
            _, (yes, log_q_n, log_q, what, where) = jax.lax.scan(lambda at, d: c.step(p, at, base, x, d), start, (u, noise))
            return c.log_model(p, x, yes, what, where), log_q_n.sum(), log_q.sum()
        def loss(p):
            one = jax.vmap(lambda u, noise, x: program(p, u, noise, x), (1, 1, 0))
            return c.objective(*jax.vmap(one, (1, 1, None))(u, noise, x))
        return [lambda p: jax.grad(loss, has_aux=True)(p)]

    @classmethod
    def gradient_tuned(c, p, key, x, K, t):
        """The encoder and the first recurrent step once per datum; steps unrolled; particles are rows of one product."""
        B = x.shape[0]
        u, noise = c.noise(key, B, K, x.dtype)
        def loss(p):
            base = c.mlp(p, "rnn_e", c.mlp(p, "encoder", x))
            zeros, ones = jnp.zeros((1, c.WHAT + c.WHERE), x.dtype), jnp.ones((K, B), x.dtype)
            wide = jnp.broadcast_to(x, (K, *x.shape))
            at, outs = (p["h0"][None], zeros, ones), []
            for i in range(c.N):
                at, out = c.step(p, at, base, wide if i else x, (u[i], noise[i]))
                outs.append(out)
            yes, log_q_n, log_q, what, where = (jnp.stack(a) for a in zip(*outs))
            return c.objective(c.log_model(p, x, yes, what, where), log_q_n.sum(0), log_q.sum(0))
        return [lambda p: jax.grad(loss, has_aux=True)(p)]


# ---- training

MODEL = {"gmm": Gmm, "sbn": Sbn, "air": Air}[o.model]


def make(form, B, K):
    """A state, and an iteration: (state, key) -> (state, bound)."""
    params = MODEL.init(jax.random.PRNGKey(1))
    flat, unravel = jax.flatten_util.ravel_pytree(params)
    step, first = MODEL.OPTIMISER
    state = flat, jnp.full_like(flat, first), jnp.zeros_like(flat), jnp.zeros((), int)
    gradient = MODEL.gradient_plain if form == "plain" else MODEL.gradient_tuned

    def iteration(state, key):
        p, m, v, t = state
        k = jax.random.split(key)
        x, bound = MODEL.data(k[0], B), 0.0
        for phase in gradient(None, k[1], x, K, t):
            at = unravel(p)
            g, L = phase(at)
            moves = jax.tree.map(jnp.zeros_like, at) | g
            new = step(p, m, v, jax.flatten_util.ravel_pytree(moves)[0], t + 1)
            # a group that a phase does not have stays as it is
            here = jax.flatten_util.ravel_pytree({name: jax.tree.map(lambda a: jnp.full(a.shape, name in g), part)
                                                  for name, part in at.items()})[0]
            p, m, v = new if len(g) == len(at) else (jnp.where(here, a, b) for a, b in zip(new, (p, m, v)))
            bound += L
        return (p, m, v, t + 1), bound
    return state, iteration, unravel


def runner(form, B, K, n):
    """A state, and a function that executes n iterations."""
    state, iteration, unravel = make(form, B, K)
    if form == "tuned":
        @jax.jit
        def run(state, key):
            def body(i, at):
                return iteration(at[0], jax.random.fold_in(key, i))
            return jax.lax.fori_loop(0, n, body, (state, jnp.zeros((), state[0].dtype)))
        return state, run, unravel
    one = jax.jit(iteration)

    def run(state, key):
        for i in range(n):
            state, bound = one(state, jax.random.fold_in(key, i))
        return state, bound
    return state, run, unravel


def check():
    """The gradients of both forms at the same draws; and, of the plain form of wake-wake, against a difference."""
    for o.method in METHODS[o.model]:
        params = MODEL.init(jax.random.PRNGKey(1))
        params = jax.tree.map(lambda p: p + 0.05 * jax.random.normal(jax.random.PRNGKey(2), p.shape), params)
        x = MODEL.data(jax.random.PRNGKey(3), 4)
        phases = [f(None, jax.random.PRNGKey(4), x, 5, jnp.asarray(10)) for f in (MODEL.gradient_plain, MODEL.gradient_tuned)]
        for i, (plain, tuned) in enumerate(zip(*phases)):
            (a, La), (b, Lb) = plain(params), tuned(params)
            a, b = (jax.flatten_util.ravel_pytree(g)[0] for g in (a, b))
            error = float(jnp.abs(a - b).max() / jnp.abs(a).max())
            print("%s %s, step %d: bounds differ by %.1e, gradients by %.1e" % (o.model, o.method, i, abs(La - Lb), error))
            assert error < 1e-9 and abs(La - Lb) < 1e-9 and float(jnp.abs(a).max()) > 0


def main():
    if o.check:
        return check()
    B, K = o.batch or MODEL.BATCH, o.particles
    n = min(o.iterations, o.train) if o.train else o.iterations
    state, run, unravel = runner(o.form, B, K, n)
    key = lambda i: jax.random.PRNGKey(100 + i)
    if o.train:
        bounds = []
        for i in range(o.train // n):
            state, bound = run(state, key(i))
            bounds.append(float(bound))
        said = {"bound": sum(bounds[-5:]) / len(bounds[-5:])}
        if o.model == "gmm":
            said["log_evidence"] = MODEL.evidence(unravel(state[0]))
        return print(json.dumps(said))
    for i in range(max(1, o.after // n)):
        state, bound = run(state, key(i))
    jax.block_until_ready(state)
    best = cpu = float("inf")
    for i in range(o.repeats):
        begin = time.perf_counter(), time.process_time()
        last, bound = run(state, key(1000 + i))
        jax.block_until_ready(last)
        best = min(best, (time.perf_counter() - begin[0]) / n)
        cpu = min(cpu, (time.process_time() - begin[1]) / n)
    said = {"model": o.model, "method": o.method, "form": o.form, "us_per_iteration": round(1e6 * best, 2),
            "cpu_us_per_iteration": round(1e6 * cpu, 2), "particles": K,
            "batch": B, "threads": o.threads, "iterations": n, "after": o.after, "bound": float(bound),
            "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "jax": jax.__version__}
    print(json.dumps(said) if o.json else "%(model)s %(method)s %(form)s K=%(particles)d: %(us_per_iteration).1f us (processor %(cpu_us_per_iteration).1f)" % said)


main()
