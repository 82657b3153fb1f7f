"""noise.py OUT.csv [SEEDS] [DRAWS] - the noise of the gradients at two states that all methods and numbers of particles share.

For each seed, the mixture (near start, settings of the code) is measured where it starts, and at the parameters of WW with K = 20
after 2000 iterations. Each measurement takes the standard deviation and the signal-to-noise ratio of the gradients of theta and phi
from DRAWS draws (default 300). Writes a file as `rws export` does, so that `rws reproduce gmm-snr --report` reads it: of each run,
the row with iteration 1 is the start and that with iteration 2000 the trained state. Needs the Python package.
"""
import csv
import pathlib
import sys

import rws

METHODS = {"relax": {"relax_control": "net"}, "reinforce": {}, "vimco": {"vimco_no_logK": 0}, "ws": {}, "ww": {}}
TRAINED = 2000
PARTICLES = [2, 5, 10, 20, 50, 100]
METRICS = ["ess", "grad_std", "log_evidence", "p_error", "q_error", "snr_phi", "snr_theta"]
CODE = {"start": "near", "gmm_hidden": 2, "theta_mult": 0.5}


def trainer(method, K, seed, iterations, **settings):
    return rws.Trainer("gmm", method=method, particles=K, seed=seed, iterations=iterations, threads=1, set={**CODE, **settings})


def rows_of(method, K, seed, draws, trained):
    own = METHODS[method]
    with trainer(method, K, seed, TRAINED, grad_snr=draws, **own) as t:
        names = set(t.state_dict())
        for iteration in 1, TRAINED:
            if iteration == TRAINED:
                t.load_state_dict({name: x for name, x in trained.items() if name in names})
            measures = t.evaluate()
            yield {"run": f"gmm-{method}-k{K}-s{seed}", "version": rws.__version__, "model": "gmm", "method": method, "particles": K,
                   "iterations": TRAINED, "seed": seed, **CODE, **own, "grad_snr": draws, "iteration": iteration, "seconds": 0,
                   **{name: f"{measures[name]:.6g}" for name in METRICS}}


def main():
    seeds, draws = (int(x) for x in (sys.argv[2:] + ["5", "300"][len(sys.argv) - 2:]))
    out = pathlib.Path(sys.argv[1])
    columns = ["run", "version", "failure", "model", "method", "particles", "iterations", "seed", *CODE, "grad_snr", "relax_control",
               "vimco_no_logK", "iteration", "seconds", *METRICS]
    with out.open("w", newline="") as file:
        table = csv.DictWriter(file, columns, lineterminator="\n")
        table.writeheader()
        for seed in range(1, seeds + 1):
            with trainer("ww", 20, seed, TRAINED) as t:
                t.train(progress=False)
                trained = t.state_dict()
            for method in METHODS:
                for K in PARTICLES:
                    table.writerows(rows_of(method, K, seed, draws, trained))
                    file.flush()


main()
