"""Writes the table of pareto_k.h: the Pareto k that ArviZ (psislw) gives for log-weights made by formulas.

    python3 pareto_k.py >pareto_k.h        with arviz 0.23 and numpy; the tests need neither

Weight i of n has u = frac((i + 1) * 0.6180339887498949), e = -log(1 - u) and count 1 + i % most; the formulas are those of
make() in test_signs.c.
"""
import warnings

warnings.filterwarnings("ignore")
import arviz
import numpy as np

FORMULAS = {  # name: log-weight of u, e and a
    "PARETO": lambda u, e, a: a * e,
    "GAUSSIAN": lambda u, e, a: -a * (6 * u - 3) ** 2,
    "HEAVIER": lambda u, e, a: a * e * e,
    "LEVELS": lambda u, e, a: a * np.floor(12 * u * u) / 12,
    "HOLES": lambda u, e, a: np.where(np.floor(1000 * u) % 3 == 0, -np.inf, a * e),
}

print("/* pareto_k.h - Pareto k of weights that are made by formulas, as ArviZ", arviz.__version__, "gives them (psislw).")
print(" * Written by pareto_k.py. */")
print("static const struct {\n    formula formula;\n    int     n, most;\n    double  a, k;\n} arviz_k[] = {")
for name, f in FORMULAS.items():
    for n, most, a in ((30, 1, 0.3), (100, 1, 0.5), (100, 3, 0.9), (1000, 1, 0.7), (1000, 5, 1.3), (20000, 1, 0.2), (20000, 7, 0.6)):
        i = np.arange(n)
        u = (i + 1) * 0.6180339887498949 % 1
        log_weights = np.repeat(f(u, -np.log(1 - u), a), 1 + i % most)
        k = float(arviz.psislw(log_weights)[1])
        print(f"    {{{name}, {n}, {most}, {a}, {repr(k) if np.isfinite(k) else 'INFINITY'}}},")
print("};")
