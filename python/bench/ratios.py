"""Prints all ratios of the package: time per iteration of the examples beside their twins in C, one thread, interleaved; the grammar
beside the same program in PyTorch, one path at a time, and beside Pyro's ReweightedWakeSleep; two threads that ask.

    python ratios.py [--build BUILD] [--rounds 30]

PyTorch and Pyro are measured where they are installed. To be run on a quiet machine; figures are medians over the rounds."""

import argparse
import os
import sys
import tempfile
import threading
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "..", "examples", "python"))

import numpy as np  # noqa: E402

import rws  # noqa: E402

import dp  # noqa: E402
import grammar  # noqa: E402
import hmm  # noqa: E402
import mixture  # noqa: E402
import sticks  # noqa: E402


def interleaved(name, python, c, rounds, n, twins=True):
    times = []
    for t in (python, c):
        for _ in range(n):
            t.step()
    for _ in range(rounds):
        row = []
        for t in (python, c):
            start = time.perf_counter()
            for _ in range(n):
                t.step()
            row.append((time.perf_counter() - start) / n)
        times.append(row)
    a = np.array(times)
    same = all((v == c.state_dict()[k]).all() for k, v in python.state_dict().items())
    p, q = np.median(a, axis=0)
    print(f"{name:10} Python {p * 1e3:8.3f} ms   C {q * 1e3:8.3f} ms   ratio {np.median(a[:, 0] / a[:, 1]):5.2f}   "
          f"{'same bits' if same else 'OTHER BITS' if twins else 'other data'}", flush=True)
    return p


def twins(build, rounds, folder):
    def plugin(name):
        return os.path.join(build, "examples", name + ".so")

    x = mixture.data(50000)
    # from an array: other data than the C model, which draws them afresh
    m = rws.Trainer(mixture.Mixture(), {"x": x}, order="in order", method="ww", seed=1)  # a shuffle costs 5 µs of its own
    c = rws.Trainer("gmm", method="ww", seed=1)
    interleaved("mixture", m, c, rounds, 200, False)
    interleaved("mixture*", rws.Trainer(mixture.FreshMixture(), method="ww", seed=1), rws.Trainer("gmm", method="ww", seed=1), rounds, 200)

    d = hmm.data(500)
    rows = np.zeros((500, 2 + hmm.LONGEST), np.float32)
    for row, n, y in zip(rows, d["n"], d["y"]):
        row[0], row[1], row[2:2 + len(y)] = n, len(y), y
    np.save(f"{folder}/hmm.npy", rows)
    interleaved("hmm", rws.Trainer(hmm.Hmm(), d, method="ww", seed=1),
                rws.Trainer(plugin("sequences"), method="ww", seed=1, set=dict(data=f"{folder}/hmm.npy")), rounds, 20)

    interleaved("dp", rws.Trainer(dp.Galaxies(), method="ww", seed=1), rws.Trainer(plugin("dp"), method="ww", seed=1), rounds, 5)

    x = sticks.data()
    np.save(f"{folder}/sticks.npy", x)
    interleaved("recursion", rws.Trainer(sticks.Sticks(), {"x": x}, method="ww", seed=1),
                rws.Trainer(plugin("sticks"), method="ww", seed=1, set=dict(data=f"{folder}/sticks.npy")), rounds, 20)

    train, test = grammar.sentences(300, 1), grammar.sentences(20, 2)
    for name, texts in (("a", train), ("b", test)):
        with open(f"{folder}/{name}.txt", "w") as out:
            out.writelines(" ".join(s) + "\n" for s in texts)
    field = "the sentence"
    return interleaved(
        "grammar", rws.Trainer(grammar.Grammar(), {field: grammar.data(train)}, {field: grammar.data(test)}, order="drawn", method="ww", seed=3),
        rws.Trainer("pcfg", method="ww", seed=3, set=dict(data=f"{folder}/a.txt", test_data=f"{folder}/b.txt")), rounds, 10)


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


def torch_guide(torch):
    """The guide's networks, and a derivation one path at a time, as a person would write it."""
    G = grammar
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.theta = nn.ParameterDict({a: nn.Parameter(torch.randn(len(G.RIGHT[a]))) for a in G.SYMBOLS})
            self.encoder = nn.GRUCell(len(G.WORDS), G.HIDDEN)
            self.core = nn.GRUCell(G.HIDDEN + G.MOST_RULES + len(G.SYMBOLS) * G.PLACES, G.HIDDEN)
            self.proposal = nn.ModuleDict({a: nn.Sequential(nn.Linear(G.HIDDEN, 50), nn.ReLU(), nn.Linear(50, 25), nn.ReLU(),
                                                            nn.Linear(25, len(G.RIGHT[a]))) for a in G.SYMBOLS})

        def encode(self, words):
            h = torch.zeros(1, G.HIDDEN)
            for w in words:
                one = torch.zeros(1, len(G.WORDS))
                one[0, G.TOKEN[w]] = 1
                h = self.encoder(one, h)
            return h

        def step(self, e, symbol, place, above, h):
            rule, where = torch.zeros(1, G.MOST_RULES), torch.zeros(1, len(G.SYMBOLS) * G.PLACES)
            if above is not None:
                rule[0, above] = 1
            where[0, G.ADDRESS[symbol, place]] = 1
            h = self.core(torch.cat([e, rule, where], dim=1), torch.zeros(1, G.HIDDEN) if h is None else h)
            return h, self.proposal[symbol](h)

    return Net()


def one_path_at_a_time(torch, seconds):
    """Wake-wake on batches of 2 sentences with 20 particles, each particle alone."""
    G = grammar
    torch.set_num_threads(1)
    net = torch_guide(torch)
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-3)
    texts = G.sentences(300, 1)
    r = np.random.default_rng(0)
    Categorical = torch.distributions.Categorical

    def particle(words, e):
        log_q = log_p = torch.zeros(())
        made = []
        n = 0

        def derive(symbol, place, above, h, depth):
            nonlocal log_q, log_p, n
            if depth > G.MAX_DEPTH or n >= 200:
                made.append("?")
                return
            n += 1
            rule = 0
            if symbol in G.DEEP:
                h, logits = net.step(e, symbol, place, above, h)
                if symbol in G.CHOICES:
                    q = Categorical(logits=logits[0])
                    z = q.sample()
                    log_q = log_q + q.log_prob(z)
                    log_p = log_p + Categorical(logits=net.theta[symbol]).log_prob(z)
                    rule = int(z)
            below = iter(G.BELOW[symbol][rule])
            for s in G.RIGHT[symbol][rule]:
                if s in G.RULES:
                    child, at = next(below)
                    derive(child, at, rule, h, depth + 1)
                else:
                    made.append(s)

        derive(G.START, 0, None, None, 0)
        return log_p - float(edit_distance(words, made)) ** 2, log_q

    def iteration():
        loss = 0
        for i in r.integers(len(texts), size=2):
            e = net.encode(texts[i])
            pairs = [particle(texts[i], e) for _ in range(20)]
            log_p, log_q = torch.stack([a for a, _ in pairs]), torch.stack([b for _, b in pairs])
            w = torch.softmax((log_p - log_q).detach(), 0)
            loss = loss - (w * (log_p + log_q)).sum() / 2
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    return timed(iteration, seconds)


def pyro_grammar(torch, seconds):
    import pyro
    import pyro.distributions as dist
    from pyro.infer import SVI, ReweightedWakeSleep
    G = grammar
    torch.set_num_threads(1)
    net = torch_guide(torch)
    texts = G.sentences(300, 1)
    r = np.random.default_rng(0)

    def derive(choose):
        made, n = [], 0

        def down(symbol, place, above, state, depth):
            nonlocal n
            if depth > G.MAX_DEPTH or n >= 200:
                made.append("?")
                return
            n += 1
            rule = 0
            if symbol in G.DEEP:
                rule, state = choose(symbol, place, above, state, n)
            below = iter(G.BELOW[symbol][rule])
            for s in G.RIGHT[symbol][rule]:
                if s in G.RULES:
                    child, at = next(below)
                    down(child, at, rule, state, depth + 1)
                else:
                    made.append(s)

        down(G.START, 0, None, None, 0)
        return made

    def model(words):
        pyro.module("net", net)

        def choose(symbol, place, above, state, n):
            if symbol not in G.CHOICES:
                return 0, state
            return int(pyro.sample(f"z{n}", dist.Categorical(logits=net.theta[symbol]))), state

        made = derive(choose)
        pyro.factor("sentence", torch.tensor(-float(edit_distance(words, made)) ** 2))

    def guide(words):
        pyro.module("net", net)
        e = net.encode(words)

        def choose(symbol, place, above, h, n):
            h, logits = net.step(e, symbol, place, above, h)
            if symbol not in G.CHOICES:
                return 0, h
            return int(pyro.sample(f"z{n}", dist.Categorical(logits=logits[0]))), h

        derive(choose)

    svi = SVI(model, guide, pyro.optim.Adam({"lr": 1e-3}), ReweightedWakeSleep(num_particles=20, insomnia=1.0, vectorize_particles=False))  # paths differ

    def iteration():
        for i in r.integers(len(texts), size=2):
            svi.step(texts[i])

    return timed(iteration, seconds)


def timed(f, seconds):
    f()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        f()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def asking(name, run, question, n=24, rounds=4):
    def ask(k, step):
        for i in range(k, n, step):
            run.infer(*question[0], seed=i, particles=4000, listed=False, **question[1])

    def by(n_threads):
        threads = [threading.Thread(target=ask, args=(k, n_threads)) for k in range(n_threads)]
        start = time.perf_counter()
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return time.perf_counter() - start

    times = [(by(1), by(2)) for _ in range(rounds)]  # the first round also makes the engine of the second thread
    alone, both = (min(t) for t in zip(*times))
    print(f"{name:10} {n} questions by one thread {alone:.2f} s, by two {both:.2f} s: {alone / both:.2f} times as fast", flush=True)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--build", default=os.path.join(here, "..", "..", "build"))
    a.add_argument("--rounds", type=int, default=30)
    a.add_argument("--seconds", type=float, default=20)
    given = a.parse_args()
    print(f"Python {sys.version.split()[0]}, programs are {'replayed' if rws._rws.replays else 'swapped'}")
    print("wanted: mixture <= 1.15, grammar <= 2.5. mixture*: data by a Python function")
    with tempfile.TemporaryDirectory() as folder:
        ours = twins(given.build, given.rounds, folder)
    try:
        import torch
    except ImportError:
        print("PyTorch is not installed: no comparison with one path at a time")
    else:
        t = one_path_at_a_time(torch, given.seconds)
        print(f"PyTorch, one path at a time: {t * 1e3:.0f} ms an iteration, {t / ours:.0f} times ours", flush=True)
        try:
            import pyro  # noqa: F401
        except ImportError:
            print("Pyro is not installed: no comparison with its ReweightedWakeSleep")
        else:
            t = pyro_grammar(torch, given.seconds)
            print(f"Pyro, ReweightedWakeSleep: {t * 1e3:.0f} ms for the same sentences and particles, {t / ours:.0f} times ours", flush=True)
    sentence = "astronomers saw stars with ears"
    asking("pcfg (C)", rws.train("pcfg", iterations=50, progress=False), ((sentence,), {}))
    data = {"the sentence": grammar.data(grammar.sentences(100))}
    asking("grammar", rws.train(grammar.Grammar(), data, iterations=50, progress=False), ((sentence,), {}))


if __name__ == "__main__":
    main()
