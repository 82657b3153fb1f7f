"""Verdicts beside exact errors: trains models briefly, asks about test data, and writes a table as Markdown.

    PYTHONPATH=build/python python3 bench/trust.py build/rws build/examples >docs/trust-table.md

A datum's error is the largest error of the probability of a value of a choice, or of a tree. Exact probabilities: gmm by all 20
clusters, the grammar by its parser, hmm by forward and backward sums, dp by all partitions that 200,000 particles find. AIR has no
exact posterior: its reference is an answer with 20 times the particles.
"""
import os
import subprocess
import sys
import tempfile
import warnings

import numpy as np

import rws

PARTICLES, DATA = 1000, 20
PROGRAM, EXAMPLES = sys.argv[1:3]
BLOCKS = ["--set", "images=blocks", "--set", "canvas=20", "--set", "glimpse=8", "--set", "what=5", "--set", "hidden=32", "--set", "max_steps=2"]
RUNS = [  # title, model, options of training
    ("gmm, 50 iterations", "gmm", ["-k", "10", "--iterations", "50"]),
    ("gmm, 20,000", "gmm", ["-k", "10", "--iterations", "20000"]),
    ("gmm, 20,000, far start (misses modes)", "gmm", ["--method", "vimco", "-k", "2", "--iterations", "20000", "--set", "start=far"]),
    ("pcfg, 30", "pcfg", ["-k", "10", "--iterations", "30", "--set", "rules=grammar"]),
    ("pcfg, 500", "pcfg", ["-k", "10", "--iterations", "500", "--set", "rules=grammar"]),
    ("hmm, 30", "hmm.so", ["-k", "10", "--iterations", "30"]),
    ("hmm, 1000", "hmm.so", ["-k", "10", "--iterations", "1000"]),
    ("dp of 8 points, 20", "dp.so", ["-k", "10", "--iterations", "20"]),
    ("dp of 8 points, 1000", "dp.so", ["-k", "10", "--iterations", "1000"]),
    ("air, blocks of 20 x 20, 1000", "air", ["-k", "10", "--iterations", "1000", *BLOCKS]),
]


def probabilities(answers):
    return {(m.get("site", m.get("report")), m["visit"], v["value"]): v["posterior"] or 0.0
            for m in answers.marginals if "site" in m for v in m.get("values", [])}


def trees(answers):
    return {a.reports["tree"]: (0.0 if np.isnan(a.posterior) else a.posterior) for a in answers}


def by_traces(run, i):
    """All traces that many particles find, by their exact p(z, x)."""
    found = {repr(sorted(p.choices.items())): p for p in run.infer(test=i, particles=200000, seed=9).particles}.values()
    log_p = np.array([p.log_p for p in found])
    weights = np.exp(log_p - log_p.max())
    out = {}
    for p, w in zip(found, weights / weights.sum()):
        for site, values in p.choices.items():
            for visit, v in enumerate(values if isinstance(values, list) else [values]):
                out[site, visit, v] = out.get((site, visit, v), 0.0) + w
    return out


def by_parser(run, i):
    return {a.reports["tree"]: a.exact for a in run.infer(test=i, particles=PARTICLES) if a.exact > 0}


def by_forward_backward(run, i):
    soft = lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True)
    theta = run.state_dict()
    go, say = soft(theta["theta.next"].astype(float)), soft(theta["theta.says"].astype(float))
    x = run.series(i)
    a = [go[3] * say[:, x[0]]]
    for t in x[1:]:
        a.append(a[-1] @ go[:3] * say[:, t])
        a[-1] /= a[-1].sum()
    b = [np.ones(3)]
    for t in x[:0:-1]:
        b.insert(0, go[:3] @ (say[:, t] * b[0]))
        b[0] /= b[0].sum()
    p = [u * v / (u @ v) for u, v in zip(a, b)]
    return {("z", t, float(k)): p[t][k] for t in range(len(x)) for k in range(3)}


def by_many(run, i):
    return probabilities(run.infer(test=i, particles=20 * PARTICLES, seed=9))


EXACT = {"gmm": by_traces, "pcfg": by_parser, "hmm.so": by_forward_backward, "dp.so": by_traces, "air": by_many}


def measure(title, model, options):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(EXAMPLES, model) if model.endswith(".so") else model
        method = [] if "--method" in options else ["--method", "ww"]
        subprocess.run([PROGRAM, "train", path, *method, *options, "--out", f"{folder}/run"], check=True, capture_output=True)
        run = rws.open(f"{folder}/run", path if model.endswith(".so") else None)
        if model == "hmm.so":  # the diary of a test datum: the program knows the numbers that evaluations see
            asked = run.infer
            diaries = {}
            run.series = lambda i: diaries[i]
            rng = np.random.default_rng(1)
            made = [s.fields for s in run.sample(DATA, seed=5)]
            data = [{k: v for k, v in f.items()} for f in made]
            diaries = {i: d["x"].reshape(-1).astype(int) for i, d in enumerate(data)}
            run.infer = lambda test, **how: asked(data[test], **how)
        look = trees if model == "pcfg" else probabilities
        verdicts, errors, stated = [], {0: [], 10: [], 100: []}, []
        refined = {10: [], 100: []}
        few = 6 if model == "air" else DATA
        for i in range(few):
            exact = EXACT[model](run, i)
            for n in errors:
                a = run.infer(test=i, particles=PARTICLES if model != "air" else 300, refine=n)
                got = look(a)
                errors[n].append(max(abs(got.get(k, 0.0) - exact.get(k, 0.0)) for k in {*got, *exact}))
                if n:
                    refined[n].append(a.verdict)
                else:
                    verdicts.append(a.verdict)
        c = run.calibrate(200, particles=200 if model != "air" else 50, progress=False)
        tested = sum(q["p"] == q["p"] and not q["guide"] for q in c)
    count = lambda v: " / ".join(str(v.count(k)) for k in ("reliable", "doubtful", "unreliable"))
    worst = lambda kind: max([e for e, v in zip(errors[0], verdicts) if v == kind], default=None)
    cell = lambda x: "–" if x is None else f"{x:.3f}"
    print(f"| {title} | {count(verdicts)} | {cell(worst('reliable'))} | {cell(worst('doubtful'))} | {cell(worst('unreliable'))} | "
          f"{np.mean(errors[0]):.3f} | {np.mean(errors[10]):.3f} | {np.mean(errors[100]):.3f} | {count(refined[100])} | "
          f"{len(c.rejected())} of {tested}, {len(c.rejected(guide=True))} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print("| model, iterations of training | verdicts: reliable / doubtful / unreliable | largest error, reliable | doubtful | unreliable "
          "| mean error by weights | refined, N = 10 | N = 100 | verdicts, N = 100 | calibration rejects: weights, guide |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for run in RUNS:
        if len(sys.argv) < 4 or sys.argv[3] in run[0]:
            measure(*run)
