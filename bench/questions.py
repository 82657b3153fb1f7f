"""Throughput of questions: one by one against many at once, in Python and by the program, on one thread and on two.

    PYTHONPATH=build/python python3 bench/questions.py build/rws

Trains gmm for 1000 iterations and air for 20 (questions cost the same after more), asks 10,000 numbers with 100 particles and 1000
pictures with 10, and prints Markdown. "Loop" asks one by one: run.infer in Python, `rws infer --file` in the program. For an idle machine.
"""
import os
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np

import rws

warnings.simplefilter("ignore")
PROGRAM = sys.argv[1]


def seconds(f):
    began = time.monotonic()
    f()
    return time.monotonic() - began


def row(what, n, loop, one, two):
    print(f"| {what} | {n / loop:,.0f} | {n / one:,.0f} | {n / two:,.0f} | {loop / one:.1f} | {one / two:.2f} |", flush=True)


def infer(*options):
    subprocess.run([PROGRAM, "infer", *options], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


with tempfile.TemporaryDirectory() as f:
    subprocess.run([PROGRAM, "train", "gmm", "--iterations", "1000", "--out", f"{f}/gmm"], check=True, capture_output=True)
    subprocess.run([PROGRAM, "train", "air", "-k", "5", "--iterations", "20", "--out", f"{f}/air"], check=True, capture_output=True)
    x = np.random.default_rng(1).uniform(0, 190, 10000).astype(np.float32)
    np.savetxt(f"{f}/x.txt", x, fmt="%.6g")
    np.savetxt(f"{f}/x.csv", x, fmt="%.6g", header="x", comments="")
    print("| questions | loop, per second | many, 1 thread | many, 2 threads | many against loop | 2 threads against 1 |")
    print("|---|---|---|---|---|---|")
    run = rws.open(f"{f}/gmm")
    run.ask_many(x[:500], particles=100)
    row("gmm, 10,000 numbers, 100 particles, Python", 10000, seconds(lambda: [run.infer(x=float(v), particles=100, listed=False) for v in x]),
        seconds(lambda: run.ask_many(x, particles=100, threads=1, listed=False, progress=False)),
        seconds(lambda: run.ask_many(x, particles=100, threads=2, listed=False, progress=False)))
    row("the same with all choices", 10000, seconds(lambda: [run.infer(x=float(v), particles=100).marginals for v in x]),
        seconds(lambda: run.ask_many(x, particles=100, threads=1, progress=False)),
        seconds(lambda: run.ask_many(x, particles=100, threads=2, progress=False)))

    def table(threads):
        out = f"{f}/t{threads}{time.monotonic()}.csv"
        infer(f"{f}/gmm", "--data", f"{f}/x.csv", "--table", out, "-k", "100", "--threads", str(threads))
    row("the same, rws infer", 10000, seconds(lambda: infer(f"{f}/gmm", "--file", f"{f}/x.txt", "-k", "100", "--marginals", "--json")),
        seconds(lambda: table(1)), seconds(lambda: table(2)))
    run = rws.open(f"{f}/air")
    pictures = np.zeros((1000, 50, 50), np.uint8)
    for i, (a, b) in enumerate(np.random.default_rng(2).integers(0, 30, (1000, 2))):
        pictures[i, a:a + 14, b:b + 8] = 255
    many = {t: seconds(lambda: run.ask_many(pictures, particles=10, threads=t, listed=False, progress=False)) for t in (1, 2)}
    row("air, 1000 pictures, 10 particles, Python", 1000,
        10 * seconds(lambda: [run.infer(p, particles=10, listed=False) for p in pictures[:100]]), many[1], many[2])
