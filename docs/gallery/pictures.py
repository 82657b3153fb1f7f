#!/usr/bin/env python3
"""The pictures of the gallery's pages: what a trained guide says about data, drawn from `rws infer` and `rws export`.

    build/rws reproduce gallery                                     trains the runs
    docs/gallery/pictures.py reproduction/gallery/runs docs/gallery [--rws build/rws] [MODEL...]

Needs numpy and matplotlib. A run that is not there is left out, with a sentence.
"""
import argparse
import csv
import glob
import io
import json
import os
import struct
import subprocess
import sys

import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

BLUE, RED, GREEN, ORANGE, PINK, SKY, GREY = "#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#777777"
plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 10,
                     "figure.dpi": 170, "legend.frameon": False, "axes.axisbelow": True, "font.family": "DejaVu Sans"})
options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
options.add_argument("runs")
options.add_argument("out")
options.add_argument("models", nargs="*")
options.add_argument("--rws", default="build/rws")


def infer(run, datum, particles=2000):
    """Particles of a datum (text, or the number of a test datum): weights, and choices as {site: [values by visit]}."""
    ask = ["--test", str(datum)] if isinstance(datum, int) else ["--", datum]
    out = subprocess.run([o.rws, "infer", "--choices", "--json", "--top", "0", "-k", str(particles), run] + ask,
                         capture_output=True, text=True)
    if out.returncode:
        sys.exit("pictures: rws infer failed: " + out.stderr)
    answers = []
    for p in json.loads(out.stdout.splitlines()[0])["particles_listed"]:
        sites = {}
        for c in p["choices"]:
            sites.setdefault(c["site"], []).append(c["value"])
        answers.append((p["weight"], sites))
    total = sum(w for w, _ in answers)
    return [(w / total, sites) for w, sites in answers]


def parameters(run):
    """The parameters of a run's checkpoint, by name."""
    with open(os.path.join(run, "checkpoint.safetensors"), "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        head, data = json.loads(file.read(size)), file.read()
    return {name: np.frombuffer(data[slice(*about["data_offsets"])], np.float32).reshape(about["shape"]).astype(float)
            for name, about in head.items() if name != "__metadata__" and about["dtype"] == "F32"}


def grouped(particles, key):
    """Probabilities of what `key` says of the choices, the most probable first."""
    share = {}
    for w, sites in particles:
        share[key(sites)] = share.get(key(sites), 0) + w
    return sorted(share.items(), key=lambda item: -item[1])


def bars(axis, names, values, colour=BLUE, title=""):
    at = np.arange(len(names))[::-1]
    axis.barh(at, values, color=colour, height=0.6)
    axis.set_yticks(at, names)
    axis.set_xlim(0, max(values) * 1.25)
    for y, v in zip(at, values):
        axis.text(v + max(values) * 0.02, y, "%.2f" % v, va="center", color=GREY, fontsize=8)
    axis.set_title(title, loc="left")
    axis.tick_params(left=False)
    axis.xaxis.set_visible(False)
    axis.spines["bottom"].set_visible(False)


# ---- series

def source_numbers(name, table):
    """The numbers of a table in examples/NAME.c."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", name + ".c")
    text = open(path).read()
    begin = text.index("{", text.index(table + "["))
    return np.array([float(x) for x in text[begin + 1:text.index("}", begin)].split(",")])


def coal(run):
    counts, years = source_numbers("coal", "counts"), np.arange(1851, 1963)
    particles = infer(run, 0, 5000)
    rates, change, weights = [], np.zeros(112), []
    for w, c in particles:
        lengths = [int(n) + 1 for n in c["length"]]
        rates.append(np.repeat(c["rate"], lengths))
        weights.append(w)
        for end in np.cumsum(lengths)[:-1]:
            change[end] += w
    rates, weights = np.array(rates), np.array(weights)
    mean = weights @ rates
    low, high = [], []
    for year in range(112):
        order = np.argsort(rates[:, year])
        share = np.cumsum(weights[order])
        low.append(rates[order[np.searchsorted(share, 0.05)], year])
        high.append(rates[order[min(np.searchsorted(share, 0.95), len(order) - 1)], year])
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(7, 4), sharex=True, height_ratios=[3, 1])
    top.bar(years, counts, color="#D0D0D0", width=0.8, label="accidents in a year")
    top.fill_between(years, low, high, step="mid", color=BLUE, alpha=0.25, lw=0, label="rate, 90 % of the posterior")
    top.step(years, mean, where="mid", color=BLUE, lw=1.8, label="rate, posterior mean")
    top.set_ylabel("accidents")
    top.legend(loc="upper right")
    bottom.bar(years, change, color=RED, width=0.9)
    bottom.set_ylabel("P(change)")
    bottom.set_xlim(1850, 1963)
    return figure


def hmm(run):
    rng = np.random.default_rng(5)
    move = np.array([[0.85, 0.1, 0.05], [0.2, 0.7, 0.1], [0.1, 0.4, 0.5], [0.6, 0.3, 0.1]])
    says = np.array([[0.7, 0.2, 0.06, 0.02, 0.02], [0.05, 0.15, 0.6, 0.15, 0.05], [0.02, 0.03, 0.1, 0.25, 0.6]])
    z, x, at = [], [], 3
    for _ in range(60):
        at = rng.choice(3, p=move[at])
        z.append(at)
        x.append(rng.choice(5, p=says[at]))
    # The numbering of the learned states is arbitrary: takes the one that is nearest to the truth.
    learned = np.exp(parameters(run)["theta.says"].reshape(3, 5))
    learned /= learned.sum(1, keepdims=True)
    import itertools
    names = min(itertools.permutations(range(3)), key=lambda p: sum(((learned[s] - says[p[s]])**2).sum() for s in range(3)))
    posterior = np.zeros((3, 60))
    for w, c in infer(run, "59 [%s]" % " ".join(map(str, x)), 2000):
        for t, s in enumerate(c["z"]):
            posterior[names[int(s)], t] += w
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(7.5, 2.9), sharex=True, height_ratios=[1, 2.4], gridspec_kw={"hspace": 0.55})
    shades = [matplotlib.colormaps["cividis"](v / 4.0) for v in range(5)]
    for t, word in enumerate(x):
        top.bar(t, 1, width=1, color=shades[word], edgecolor="white", lw=0.5)
        top.text(t, 0.5, "abcde"[word], ha="center", va="center", fontsize=6.5, color="white" if word < 3 else "black")
    top.set_yticks([])
    top.set_title("the diary: one of five words a day", loc="left")
    top.spines[["left", "bottom"]].set_visible(False)
    top.tick_params(bottom=False)
    bottom.imshow(posterior, cmap="Blues", vmin=0, vmax=1.25, aspect="auto", interpolation="nearest")
    bottom.plot(np.arange(60), z, "-", color=RED, lw=1.1, marker="o", ms=2.6, label="true path")
    for s in (0.5, 1.5):
        bottom.axhline(s, color="white", lw=1.5)
    bottom.set_yticks(range(3), ["fair", "rain", "storm"])
    bottom.tick_params(left=False)
    bottom.set_xlim(-0.5, 59.5)
    bottom.set_xlabel("day")
    bottom.set_title("the weather: posterior probability (blue)", loc="left")
    bottom.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0)
    return figure


def slds(run):
    rng = np.random.default_rng(11)
    a, q, stay = [0.95, -0.8], np.exp([-1.2, 0.4]), 1 / (1 + np.exp(-1.7))
    laws, x, where, law, z = [], [], [], 0, 0.0
    for t in range(10):
        law = law if t and rng.random() < stay else (1 - law if t else 0)
        z = a[law] * z + q[law] * rng.normal()
        laws.append(law), where.append(z), x.append(z + 0.5 * rng.normal())
    wild = np.zeros(10)
    for w, c in infer(run, "[%s]" % " ".join("%.4f" % v for v in x)):
        wild += w * np.array(c["law"])
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(6, 3.6), sharex=True, height_ratios=[2, 1])
    for t in range(10):
        if laws[t]:
            top.axvspan(t - 0.5, t + 0.5, color=ORANGE, alpha=0.2, lw=0, label="wild, in truth" if 1 not in laws[:t] else None)
    top.plot(range(10), where, color=GREY, lw=1.5, label="position (hidden)")
    top.plot(range(10), x, "o", color=BLUE, ms=5, label="what is seen")
    top.set_ylabel("position")
    top.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    bottom.bar(range(10), wild, color=[ORANGE if law else "#D0D0D0" for law in laws], width=0.8)
    bottom.set_ylim(0, 1)
    bottom.set_ylabel("P(wild)")
    bottom.set_xticks(range(10))
    bottom.set_xlabel("time")
    return figure


def tracking(run):
    rng = np.random.default_rng(3)
    FRAMES, CELLS = 6, 10
    while True:  # a scene with some life in it
        where, paths, seen, born = [], {}, np.zeros((FRAMES, CELLS), int), 0
        for t in range(FRAMES):
            alive = []
            for name, cell in where:
                if rng.random() >= 0.15:
                    alive.append((name, min(max(cell + rng.integers(-1, 2), 0), CELLS - 1)))
            if rng.random() < 0.3:
                alive.append((born, rng.integers(CELLS)))
                born += 1
            where = alive
            seen[t] = rng.random(CELLS) < 0.03
            for name, cell in where:
                paths.setdefault(name, []).append((t, cell))
                if rng.random() < 0.85:
                    seen[t, cell] = 1
        if born == 3 and max(map(len, paths.values())) >= 4 and seen.sum() - sum(map(len, paths.values())) >= 0:
            break
    expected, count = np.zeros((FRAMES, CELLS)), {}
    for w, c in infer(run, "[%s]" % " ".join(map(str, seen.ravel())), 5000):
        births, deaths, steps, cells = (iter(c.get(k, [])) for k in ("birth", "death", "step", "cell"))
        where = []
        for t in range(FRAMES):
            where = [min(max(cell + int(next(steps)) - 1, 0), CELLS - 1) for cell in where if not next(deaths)]
            if next(births):
                where.append(int(next(cells)))
            for cell in where:
                expected[t, cell] += w
        n = sum(map(int, c["birth"]))
        count[n] = count.get(n, 0) + w
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(8, 2.7), width_ratios=[3, 3, 1.4])
    left.imshow(seen, cmap="Greys", vmin=0, vmax=1.6, aspect="auto")
    middle.imshow(expected, cmap="Blues", vmin=0, vmax=1.2, aspect="auto")
    for axis, title in ((left, "seen, and the true tracks"), (middle, "expected objects in a cell")):
        for name, path in paths.items():
            colour = [RED, GREEN, PINK][name % 3]
            axis.plot([c for _, c in path], [t for t, _ in path], "-o", color=colour, ms=4, lw=1.5, mfc="white")
        axis.set_title(title, loc="left")
        axis.set_xlabel("cell")
        axis.set_xticks(range(0, CELLS, 3))
        axis.set_xticks(np.arange(-0.5, CELLS), minor=True)
        axis.set_yticks(np.arange(-0.5, FRAMES), minor=True)
        axis.grid(which="minor", color="#DDDDDD", lw=0.6)
        axis.tick_params(which="minor", length=0)
    left.set_ylabel("frame")
    ns = range(min(count), max(count) + 1)
    right.bar(list(ns), [count.get(n, 0) for n in ns], color=[BLUE if n == born else "#B5CFE3" for n in ns])
    right.set_xticks(list(ns))
    right.set_title("objects (%d in truth)" % born, loc="left")
    return figure


def dp(run):
    all_x = (source_numbers("dp", "velocity") - 20000) / 1000
    x = all_x[[3, 11, 25, 33, 46, 58, 70, 79]]
    alpha, s0, s = np.exp(parameters(run)["theta.dp"].ravel())
    grid = np.linspace(-13, 16, 600)
    density, clusters = np.zeros(600), {}
    normal = lambda v, m, var: np.exp(-(v - m)**2 / var / 2) / np.sqrt(2 * np.pi * var)
    for w, c in infer(run, "[%s]" % " ".join("%.3f" % v for v in x)):
        z = np.array(c["z"], int)
        for k in range(z.max() + 2):
            n, total = (z == k).sum(), x[z == k].sum()
            precision = n + s**2 / s0**2
            share = (n if n else alpha) / (8 + alpha)
            density += w * share * normal(grid, total / precision, s**2 / precision + s**2)
        clusters[z.max() + 1] = clusters.get(z.max() + 1, 0) + w
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.5, 2.9), width_ratios=[3, 1.2])
    left.hist(all_x + 20, bins=np.arange(8, 36, 0.8), density=True, color="#D0D0D0", label="all 82 galaxies")
    left.plot(grid + 20, density, color=BLUE, lw=1.8, label="the next galaxy, given eight")
    left.plot(x + 20, np.full(8, -0.008), "|", color=RED, ms=11, mew=2, label="the eight")
    left.set_xlabel("velocity in 1000 km/s")
    left.set_ylabel("density")
    left.set_xlim(7, 36)
    left.legend(loc="upper right")
    ns = sorted(clusters)
    right.bar(ns, [clusters[n] for n in ns], color=BLUE)
    right.set_xticks(ns)
    right.set_xlabel("clusters of the eight")
    right.set_ylabel("posterior")
    return figure


# ---- grammars

def written(ways, leaves, unary, names, at=0, depth=2):
    """The text of a tree that is a list of ways in prefix order, and the place behind it."""
    way = int(ways[at])
    if way < leaves:
        return names[way], at + 1
    a, at = written(ways, leaves, unary, names, at + 1, depth)
    if way < leaves + unary:
        return names[way] % ("(" + a + ")" if " " in a and not a.startswith("(") else a), at
    b, at = written(ways, leaves, unary, names, at, depth)
    return names[way] % tuple(sorted((a, b), key=lambda text: (len(text), text))), at


def gp(run):
    passengers, N = source_numbers("gp", "passengers"), 48
    y = (np.log(passengers) - 5.5) / 0.45
    numbers = np.exp(parameters(run)["theta.numbers"].ravel())
    years = np.arange(60) / 4.0

    def kernel(ways, t, u, at=0):
        way = int(ways[at])
        if way >= 3:
            a, at = kernel(ways, t, u, at + 1)
            b, at = kernel(ways, t, u, at)
            return (a + b if way == 3 else a * b), at
        d, l = numbers[2 * way]**2, numbers[2 * way + 1]**2
        gap = t[:, None] - u
        shape = [np.exp(-gap**2 / 2 / l), np.exp(-2 * np.sin(np.pi * gap)**2 / l), t[:, None] * u / 36][way]
        return d * shape, at + 1
    particles = infer(run, 0, 3000)
    names = ["smooth", "yearly", "line", "(%s + %s)", "%s × %s"]
    share = grouped(particles, lambda c: tuple(c["way"]))
    mean, square, noise = np.zeros(60), np.zeros(60), numbers[6]**2 + 1e-3
    for ways, w in share[:60]:
        k = kernel(ways, years, years)[0]
        inverse = np.linalg.inv(k[:N, :N] + noise * np.eye(N))
        m, v = k[:, :N] @ inverse @ y, np.diag(k - k[:, :N] @ inverse @ k[:N]) + noise
        mean, square = mean + w * m, square + w * (v + m * m)
    total = sum(w for _, w in share[:60])
    mean, sd = mean / total, np.sqrt(np.maximum(square / total - (mean / total)**2, 0))
    back = lambda v: np.exp(5.5 + 0.45 * v)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3), width_ratios=[2, 1])
    left.fill_between(1949 + years, back(mean - 1.64 * sd), back(mean + 1.64 * sd), color=BLUE, alpha=0.25, lw=0, label="90 %")
    left.plot(1949 + years, back(mean), color=BLUE, lw=1.4, label="posterior mean, with three years ahead")
    left.plot(1949 + years[:N], passengers, "o", color="black", ms=2.6, label="passengers")
    left.axvline(1960.87, color=GREY, lw=0.8, ls=":")
    left.set_ylabel("thousands in a month")
    left.legend(loc="upper left")
    top = grouped(particles, lambda c: written(c["way"], 3, 0, names)[0])[:6]
    bars(right, [name[1:-1] if name.startswith("(") and name.count("(") == 1 and name.endswith(")") else name for name, _ in top],
         [w for _, w in top], title="posterior of kernels")
    figure.tight_layout()
    return figure


def expressions(run):
    rng = np.random.default_rng(2)
    x = np.linspace(-2, 2, 10)
    curves = [("x * sin x", lambda v: v * np.sin(v)), ("x * x + 1", lambda v: v * v + 1), ("sin (x + x)", lambda v: np.sin(2 * v))]
    names = ["x", "1", "2", "sin %s", "(%s + %s)", "%s * %s"]
    fine = np.linspace(-2, 2, 200)

    def value(ways, at=0):
        way = int(ways[at])
        if way < 3:
            return [fine, np.ones(200), np.full(200, 2.0)][way], at + 1
        a, at = value(ways, at + 1)
        if way == 3:
            return np.sin(a), at
        b, at = value(ways, at)
        return (a + b if way == 4 else a * b), at
    figure, axes = plt.subplots(2, 3, figsize=(9, 4), height_ratios=[1.7, 1])
    for i, (truth, f) in enumerate(curves):
        y = f(x) + 0.3 * rng.normal(size=10)
        particles = infer(run, " ".join("%.4f" % v for v in y), 5000)
        for ways, w in grouped(particles, lambda c: tuple(c["way"]))[:20]:
            axes[0, i].plot(fine, value(ways)[0], color=BLUE, alpha=min(1, 0.15 + w), lw=1.2)
        axes[0, i].plot(fine, f(fine), color=GREY, lw=1.2, ls="--")
        axes[0, i].plot(x, y, "o", color=RED, ms=4)
        axes[0, i].set_title("truth: " + truth, loc="left")
        top = grouped(particles, lambda c: written(c["way"], 3, 1, names)[0])[:4]
        bars(axes[1, i], [name for name, _ in top], [w for _, w in top])
    figure.tight_layout()
    return figure


def rules(run):
    features = [0xaaaa, 0xcccc, 0xf0f0, 0xff00]
    concept = features[0] & (~features[2] & 0xffff) | features[3] & features[0]  # a and (d or not c)
    wrong = [3, 12]
    labels = [(concept >> i & 1) ^ (i in wrong) for i in range(16)]
    names = ["a", "b", "c", "d", "not %s", "(%s and %s)", "(%s or %s)"]

    def members(ways, at=0):
        way = int(ways[at])
        if way < 4:
            return features[way], at + 1
        a, at = members(ways, at + 1)
        if way == 4:
            return ~a & 0xffff, at
        b, at = members(ways, at)
        return (a & b if way == 5 else a | b), at
    particles = infer(run, " ".join(map(str, labels)), 20000)
    inside = sum(w * np.array([members(c["way"])[0] >> i & 1 for i in range(16)]) for w, c in particles)
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.2, 3), width_ratios=[1, 1.3])
    grid = inside.reshape(4, 4)
    left.imshow(grid, cmap="Blues", vmin=0, vmax=1.25)
    for i in range(16):
        left.text(i % 4, i // 4, "+" if labels[i] else "−", ha="center", va="center", fontsize=15,
                  color=RED if i in wrong else "black", fontweight="bold")
    pairs = lambda p, q: ["%s%s %s%s" % ("" if i & 1 else "¬", p, "" if i & 2 else "¬", q) for i in range(4)]
    left.set_xticks(range(4), pairs("a", "b"), fontsize=7.5)
    left.set_yticks(range(4), pairs("c", "d"), fontsize=7.5)
    left.tick_params(length=0)
    left.spines[:].set_visible(False)
    left.set_title("labels (red: wrong), P(in the concept)", loc="left")
    best = {}
    for w, c in particles:
        m = members(c["way"])[0]
        text = written(c["way"], 4, 1, names)[0]
        share, short = best.get(m, (0, text))
        best[m] = (share + w, min(short, text, key=len))
    top = sorted(best.values(), reverse=True)[:6]
    strip = lambda t: t[1:-1] if t.startswith("(") and t.endswith(")") else t
    bars(right, [strip(t) for _, t in top], [w for w, _ in top], title="posterior of concepts, by their shortest rule")
    figure.tight_layout()
    return figure


def lda(run):
    out = subprocess.run([o.rws, "export", "--snapshots", run], capture_output=True, text=True)
    if out.returncode:
        sys.exit("pictures: rws export failed: " + out.stderr)
    rows = [r for r in csv.DictReader(io.StringIO(out.stdout)) if r["snapshot"] == "topics"
            and os.path.basename(os.path.normpath(run)).startswith(r["run"][:3])]
    last = max(int(r["iteration"]) for r in rows)
    topics = {}
    for r in rows:
        if int(r["iteration"]) == last:
            topic, word = r["label"].split(" ", 1)
            topics.setdefault(int(topic), []).append((word, float(r["value"])))
    figure, axes = plt.subplots(2, 5, figsize=(9.5, 4.4))
    colours = [BLUE, RED, GREEN, ORANGE, PINK, SKY, "#44546A", "#8C6D31", "#6A51A3", "#3C8D7A"]
    for (t, words), axis in zip(sorted(topics.items()), axes.ravel()):
        at = np.arange(len(words))[::-1]
        axis.barh(at, [v for _, v in words], color=colours[t % 10], alpha=0.3, height=0.86)
        for y, (word, _) in zip(at, words):
            axis.text(0.08, y, word, va="center", fontsize=8)
        axis.set_title("topic %d" % t, loc="left", color=colours[t % 10], fontweight="bold")
        axis.axis("off")
    figure.tight_layout()
    return figure


PICTURES = {f.__name__: f for f in (hmm, slds, coal, dp, expressions, rules, gp, tracking, lda)}
o = options.parse_args()
for name in o.models or PICTURES:
    found = sorted(glob.glob(os.path.join(o.runs, name + "-*")))
    if not found:
        print("pictures: there is no run of %s in %s." % (name, o.runs), file=sys.stderr)
        continue
    figure = PICTURES[name](found[0])
    figure.savefig(os.path.join(o.out, name + ".png"), bbox_inches="tight")
    plt.close(figure)
    print(name + ".png")
