"""What the peers share: options, random numbers, coefficients of particles, optimisers, processes, the clock.

Gradients are ascent directions of the batch mean, theta and phi live in one flat vector, and every process has one
thread. More threads are more processes that share the data of a batch: each writes its gradient to memory all can read,
and then adds up and steps its share of the parameters.
"""
import argparse
import ctypes
import json
import math
import mmap
import os
import resource
import time

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import torch

# Freed memory stays with the process: large temporaries are not mapped and cleared again by the kernel each time.
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
ctypes.CDLL(None).mallopt(M_MMAP_MAX, 0)
ctypes.CDLL(None).mallopt(M_TRIM_THRESHOLD, -1)

torch.set_num_threads(1)
torch.set_flush_denormal(True)


def options(doc, methods, batch, particles, iterations, prune=False):
    parser = argparse.ArgumentParser(description=doc.split("\n")[0])
    parser.add_argument("--method", choices=methods, default="ww")
    parser.add_argument("--particles", type=int, default=particles)
    parser.add_argument("--batch", type=int, default=batch)
    parser.add_argument("--iterations", type=int, default=iterations)
    parser.add_argument("--parts", type=int, default=20, help="parts of the run that are timed one by one")
    parser.add_argument("--repeats", type=int, default=3, help="runs from the same start, the fastest of which count")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="processes that share the data of a batch")
    parser.set_defaults(prune=False)
    if prune:
        parser.add_argument("--prune", action="store_true", help="leave particles with a coefficient below 1e-6 of their "
                            "datum's largest out of the gradients")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a line of text")
    parser.add_argument("--check", action="store_true", help="compare with a slow and plain implementation in double")
    return parser


# ---- random numbers and data


class Uniform:
    """Uniform numbers (2 i + 1) / 2^24: never 0 or 1, so no draw has a probability that rounds to 0."""

    def __init__(self, seed):
        self.rng = np.random.Generator(np.random.SFC64(seed))

    def __call__(self, *shape):
        n = math.prod(shape)
        bits = self.rng.integers(0, 2**64 - 1, (n + 1) // 2, dtype=np.uint64, endpoint=True).view(np.int32)[:n]
        u = torch.from_numpy(bits).bitwise_and_(0x7fffff).bitwise_or_(0x3f800000).view(torch.float32)
        return u.sub_(1 - 2**-24).view(shape)


def cached(name, offset):
    """The bytes after the offset of a file that `rws data` keeps, or None."""
    folder = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    path = os.path.join(folder, "rws", name)
    return np.memmap(path, np.uint8, "r", offset) if os.path.exists(path) else None


# ---- coefficients


def coefficients(method, l):
    """From log-weights [K, B]: bounds [B], and the coefficients of grad log p and grad log q [K, B], in double."""
    l = l.double()
    K = l.shape[0]
    L = torch.logsumexp(l, 0)
    w = (l - L).exp_()
    L -= math.log(K)
    if method == "ww":
        return L, w, w
    if method == "reinforce" or K == 1:
        return L, w, L - w
    # vimco: l_k replaced by the mean of the others. The sum of the others' weights is a difference, which is exact
    # enough while it is not tiny; else they are added up without k.
    top = l.amax(0)
    e = (l - top).exp_()
    others = e.sum(0) - e
    k, b = (others < 1e-3).nonzero(as_tuple=True)
    if len(k):
        e_k = e[:, b]
        e_k[k, torch.arange(len(k))] = 0
        others[k, b] = e_k.sum(0)
    mean = (l.sum(0) - l) / (K - 1)
    baseline = torch.logaddexp(others.log() + top, mean) - math.log(K)
    return L, w, L - baseline - w


def kept(a):
    """Indices (particle, datum) of the coefficients [K, B] that are not negligible."""
    a = a.abs()
    return (a > 1e-6 * a.amax(0)).nonzero(as_tuple=True)


def check_coefficients(method):
    """Against the definitions, with even and with very uneven weights."""
    for K, spread in ((2, 1.0), (7, 1.0), (7, 30.0), (7, 300.0), (200, 3.0)):
        l = torch.randn(K, 5, dtype=torch.float64) * spread - 500
        mean_log = lambda l: torch.logsumexp(l, 0) - math.log(len(l))
        L, w, got = coefficients(method, l)
        a = []
        for k in range(K):
            others = torch.cat([l[:k], l[k + 1:]])
            baseline = {"ww": L - 2 * w[k], "reinforce": 0 * L,
                        "vimco": mean_log(torch.cat([others, others.mean(0, keepdim=True)]))}[method]
            a.append(L - baseline - w[k])
        assert torch.allclose(L, mean_log(l), rtol=1e-13) and torch.allclose(w, torch.softmax(l, 0), atol=1e-13)
        assert torch.allclose(got, torch.stack(a), atol=1e-10), (method, K, spread)


def random_coefficients(method, l):
    """Instead of coefficients(), to check gradients at: real ones may be 1 for one particle. A third of these are 0."""
    random = torch.Generator().manual_seed(l.numel())
    draw = lambda: torch.rand(l.shape, generator=random, dtype=torch.float64)
    w = draw() * (draw() > 1 / 3)
    return torch.logsumexp(l.double(), 0) - math.log(len(l)), w, w if method == "ww" else draw() - 0.5


# ---- parameters and optimisers


def views(vector, shapes):
    """Tensors of the shapes (a dictionary), one after the other in the vector."""
    out, at = {}, 0
    for name, shape in shapes.items():
        n = math.prod(shape)
        out[name] = vector[at:at + n].view(shape)
        at += n
    return out


def size(shapes):
    return sum(math.prod(shape) for shape in shapes.values())


class Optimiser:
    """Steps the parameters [low, high) of a team: this process's share of them, in blocks that stay in the cache."""
    BLOCK = 65536

    def __init__(self, team, low, high, rate):
        self.team, self.rate, self.t, self.blocks = team, rate, 0, []
        edge = [low + (high - low) * i // team.size for i in range(team.size + 1)]
        low, high = edge[team.rank], edge[team.rank + 1]
        state = [torch.full((high - low,), first) for first in self.FIRST]
        scratch = torch.empty(self.BLOCK)
        for at in range(low, high, self.BLOCK):
            end = min(at + self.BLOCK, high)
            own = [s[at - low:end - low] for s in state]
            others = [g[at:end] for rank, g in enumerate(team.gradients) if rank != team.rank]
            self.blocks.append((team.P[at:end], team.G[at:end], others, *own, scratch[:end - at]))

    def step(self):
        self.t += 1
        self.team.wait()
        for p, g, others, *rest in self.blocks:
            for other in others:
                g += other
            self.update(p, g, *rest)
        self.team.wait()


class Adam(Optimiser):
    FIRST = 0.0, 0.0

    def update(self, p, g, m, v, scratch):
        c1, c2 = 1 - 0.9**self.t, math.sqrt(1 - 0.999**self.t)
        m.mul_(0.9).add_(g, alpha=0.1)
        v.mul_(0.999).addcmul_(g, g, value=0.001)
        p.addcdiv_(m, torch.sqrt(v, out=scratch).add_(1e-8 * c2), value=self.rate * c2 / c1)


class RMSProp(Optimiser):
    """TensorFlow's: the mean square starts at 1, eps is inside the root, then momentum."""
    FIRST = 1.0, 0.0

    def update(self, p, g, s, momentum, scratch):
        s.mul_(0.9).addcmul_(g, g, value=0.1)
        p.add_(momentum.mul_(0.9).addcdiv_(g, torch.add(s, 1e-10, out=scratch).sqrt_(), value=self.rate))


# ---- processes


class Team:
    """Processes of one thread each. P are the parameters, which all share; G is this process's gradient."""

    def __init__(self, size, n_parameters):
        self.rank, self.size, self.children = 0, size, []
        dtype = torch.get_default_dtype()
        n_bytes = n_parameters * torch.finfo(dtype).bits // 8
        memory = mmap.mmap(-1, 64 * size + n_bytes * (1 + size))
        self.arrivals = np.frombuffer(memory, np.int64, 8 * size)[::8]
        # a tensor each, since autograd counts the changes of a tensor and its views together
        self.P, *self.gradients = (torch.frombuffer(memory, dtype=dtype, count=n_parameters, offset=64 * size + i * n_bytes)
                                   for i in range(1 + size))
        for rank in range(1, size):
            child = os.fork()
            if child == 0:
                self.rank, self.children = rank, []
                break
            self.children.append(child)
        self.G = self.gradients[self.rank]

    def wait(self):
        """Until all are here."""
        if self.size == 1:
            return
        self.arrivals[self.rank] += 1
        while self.arrivals.min() < self.arrivals[self.rank]:
            os.sched_yield()

    def finish(self):
        """The others end here; the first returns the peak of memory of all, in MB."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if self.rank > 0:
            os._exit(0)
        for child in self.children:
            peak += os.wait4(child, 0)[2].ru_maxrss
        return peak / 1024


def check_team():
    """Two processes with a part of the gradient each step as one does with all of it."""
    n, first = Optimiser.BLOCK + 1001, torch.linspace(-1, 1, Optimiser.BLOCK + 1001)
    for kind in (Adam, RMSProp):
        results = []
        for size in (1, 2):
            team = Team(size, n)
            if team.rank == 0:
                team.P.copy_(first)
            team.wait()
            optimisers = kind(team, 0, 1001, 0.1), kind(team, 1001, n, 0.1)
            for t in range(3):
                share = (team.rank + 1) / 3 if size == 2 else 1.0
                team.G.copy_(share * torch.sin(first * (t + 1)))
                for optimiser in optimisers:
                    optimiser.step()
            team.finish()
            results.append(team.P.clone())
        assert torch.allclose(*results, rtol=1e-6, atol=1e-9) and not torch.allclose(results[0], first), kind


# ---- the clock


def sgemm_rate():
    """GFLOP/s of this machine now, one thread, matrices of 512 x 512."""
    a, best = torch.rand(512, 512, dtype=torch.float32), math.inf
    for _ in range(6):
        start = time.perf_counter()
        torch.mm(a, a)
        best = min(best, time.perf_counter() - start)
    return 2e-9 * 512**3 / best


def measure(args, n_parameters, make, even):
    """Runs the iterations of make(team) and prints what they took, args.repeats times from the same start.

    A run is timed in parts, of an iteration at least, the first of which warms up and does not count. Of each part the
    fastest repeat counts: repeats do the same work, and a busy machine only adds to it. us_per_iteration is that of the
    fastest part if the work of all iterations is even, else the mean; cpu_us_per_iteration is the same of the
    processor's time."""
    args.iterations = max(2, args.iterations)
    args.parts = max(1, min(args.parts, args.iterations - 1))
    team = Team(args.threads, n_parameters)
    sgemm = sgemm_rate()
    repeats = []
    for _ in range(args.repeats):
        trainer = make(team)
        team.wait()
        took, bounds = [], []
        for part in range(args.parts + 1):
            n = args.iterations * (part + 1) // (args.parts + 1) - args.iterations * part // (args.parts + 1)
            start = time.perf_counter(), time.process_time()
            bounds += [trainer.iterate() for _ in range(n)]
            took.append([(time.perf_counter() - start[0]) / n * 1e6, (time.process_time() - start[1]) / n * 1e6])
        repeats.append(took)
        team.wait()
    sgemm = max(sgemm, sgemm_rate())
    peak = team.finish()
    best, cpu = np.array(repeats).min(0)[1:].T
    out = {"method": args.method, "particles": args.particles, "batch": args.batch, "threads": args.threads,
           "pruned": args.prune, "iterations": args.iterations,
           "us_per_iteration": round(best.min() if even else best.mean(), 2),
           "cpu_us_per_iteration": round(cpu.min() if even else cpu.mean(), 2), "parts_us": best.round(2).tolist(),
           "first_bound": round(bounds[0], 4), "last_bound": round(bounds[-1], 4), "sgemm_gflops": round(sgemm, 1),
           "peak_rss_mb": round(peak, 1)}
    if args.json:
        print(json.dumps(out))
    else:
        print("%(method)s K=%(particles)d: %(us_per_iteration).1f us per iteration (processor %(cpu_us_per_iteration).1f); "
              "bound %(first_bound).3f, then %(last_bound).3f; %(peak_rss_mb).0f MB; sgemm %(sgemm_gflops).0f GFLOP/s" % out)
