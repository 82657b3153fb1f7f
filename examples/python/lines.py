"""A line through points: what a network knows of intercept and slope once it has seen any number of rows (x, y).

A datum is a whole data set. Its points x are an input, which both programs read and nobody observes; its numbers y are observed.
The coefficients are shared by all rows of a datum: a global latent is a latent of a datum that has all rows. Training is on
simulated data sets, so that the guide learns to do regressions, and the answer to one is immediate (amortised inference).

    python examples/python/lines.py
"""

import numpy as np

import rws

NOISE, MOST = 0.5, 8


class Lines(rws.Model):
    """y = w[0] + w[1] x + noise, for data sets of up to 8 rows"""

    defaults = {"particles": 10, "batch": 100, "iterations": 3000, "lr": "3e-3,2000:3e-4", "n_test": 50}

    def setup(self, s):
        s.series("x", 1, MOST)
        s.is_input("x")
        s.series("y", 1, MOST)
        self.rows = s.set_encoder("phi.rows", [2, 32, 32], how="sum", hidden="elu")
        self.head = s.mlp("phi.head", [32, 32, 5], hidden="elu")

    def data(self, split, first, n, random):
        out = {"x": [], "y": []}
        for _ in range(n):
            x = random.normals(1 + random.below(MOST))
            w = random.normals(2)
            out["x"].append(x)
            out["y"].append(w[0] + w[1] * x + NOISE * random.normals(len(x)))
        return out

    def model(self, p):
        w = p.normal("w", np.zeros(2), 1)
        for x in p.items("x"):  # an input: the model may read it
            p.normal("y", w[0] + w[1] * x, NOISE)

    def guide(self, p):
        seen = self.head(self.rows([rws.concat([x, y]) for x, y in zip(p.items("x"), p.items("y"))]))
        a, b, c = rws.exp(seen[2]), seen[3], rws.exp(seen[4])
        p.multivariate_normal("w", seen[:2], rws.concat([a, b, c]))  # a Cholesky factor, row by row


def exact(x, y):
    """Mean and covariance of the coefficients given the rows, and log p(y | x)."""
    design = np.stack([np.ones(len(x)), x], axis=1)
    covariance = np.linalg.inv(np.eye(2) + design.T @ design / NOISE ** 2)
    of_y = NOISE ** 2 * np.eye(len(x)) + design @ design.T
    log_p = -0.5 * (y @ np.linalg.solve(of_y, y) + np.linalg.slogdet(2 * np.pi * of_y)[1])
    return covariance @ design.T @ y / NOISE ** 2, covariance, log_p


if __name__ == "__main__":
    run = rws.train(Lines(), method="vimco")
    x, y = np.array([-1.0, 0.5, 2.0]), np.array([0.2, 0.4, 1.5])
    answers = run.infer(x=x, y=y, particles=5000)
    mean, covariance, log_p = exact(x, y)
    print("coefficients", answers.mean("w"), "exactly", mean)
    print("log p(y | x)", answers.log_evidence, "exactly", log_p)
    print("new y at the same x:", [s.fields["y"].ravel() for s in run.sample(3, x=x)])
