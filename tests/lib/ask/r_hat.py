"""Writes the table of r_hat.h: the R-hat that ArviZ (rhat, rank) gives for chains made by formulas.

    python3 r_hat.py | clang-format-14 >r_hat.h        with arviz 0.23 and numpy; the tests need neither

Draw t of chain c has u = frac((c * n + t + 1) * 0.6180339887498949), rounded down to whole 4096ths so that ties are exact; the formulas are those of draw() in test_refine.c.
"""
import warnings

warnings.filterwarnings("ignore")
import arviz
import numpy as np

FORMULAS = {  # name: draw of u, c and t / n
    "EVEN": lambda u, c, s: u,
    "SHIFTED": lambda u, c, s: u + 0.125 * c,
    "SCALED": lambda u, c, s: (u - 0.5) * (1 + 0.5 * c),
    "DRIFT": lambda u, c, s: u + np.floor(8 * s) / 8,
    "WHOLE": lambda u, c, s: np.floor(3 * u + 0.25 * c),
}

print("/* r_hat.h - R-hat of chains that are made by formulas, as ArviZ", arviz.__version__, "gives it (rank).")
print(" * Written by r_hat.py. */")
print("static const struct {\n    shape  shape;\n    int    chains, n;\n    double r_hat;\n} arviz_r_hat[] = {")
for name, f in FORMULAS.items():
    for chains, n in ((2, 4), (4, 25), (16, 50), (3, 1000)):
        c, t = np.indices((chains, n))
        u = np.floor(4096 * ((c * n + t + 1) * 0.6180339887498949 % 1)) / 4096
        print(f"    {{{name}, {chains}, {n}, {float(arviz.rhat(f(u, c, t / n).astype(float), method='rank'))!r}}},")
print("};")
