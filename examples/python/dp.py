"""A Dirichlet-process mixture: how many clusters do eight galaxies make?

    python dp.py [ITERATIONS]

Galaxies come one by one, like guests into a Chinese restaurant: a galaxy joins a cluster of n galaxies with a probability
proportional to n, or opens a new one with a probability proportional to alpha. The velocities of a cluster are normal around a
mean of its own, which is integrated out. A datum is 8 of 82 measured velocities, drawn at random. The number of clusters has no
bound but the number of galaxies, and particles with different clusters take different paths through this code.

The twin in C is examples/dp.c, with the same numbers to the last bit.
"""

import sys
from typing import Any

import numpy as np

import rws

N, HIDDEN = 8, 32

# Velocities in km/s of galaxies in the Corona Borealis region: K. Roeder, Density estimation with confidence sets exemplified by
# superclusters and voids in the galaxies, JASA 85 (1990), 617-624.
KM_PER_SECOND = np.array([
    9172, 9350, 9483, 9558, 9775, 10227, 10406, 16084, 16170, 18419, 18552, 18600, 18927, 19052, 19070, 19330, 19343, 19349,
    19440, 19473, 19529, 19541, 19547, 19663, 19846, 19856, 19863, 19914, 19918, 19973, 19989, 20166, 20175, 20179, 20196, 20215,
    20221, 20415, 20629, 20795, 20821, 20846, 20875, 20986, 21137, 21492, 21701, 21814, 21921, 21960, 22185, 22209, 22242, 22249,
    22314, 22374, 22495, 22746, 22747, 22888, 22914, 23206, 23241, 23263, 23484, 23538, 23542, 23666, 23706, 23711, 24129, 24285,
    24289, 24366, 24717, 24990, 25633, 26960, 26995, 32065, 32789, 34279], np.float32)
VELOCITY = (KM_PER_SECOND - np.float32(20000)) / np.float32(1000)


class Galaxies(rws.Model):
    """A Dirichlet-process mixture of galaxies."""

    defaults = dict(batch=20, particles=10, iterations=2000, n_test=50, lr="1e-2,1000:3e-3,1700:1e-3")

    def setup(self, s: rws.Setup) -> None:
        s.series("x", 1, N)
        # log alpha, log sd of the means of clusters, log sd within a cluster
        self.theta = s.param("theta.dp", 3, init=[0, 1, 0])
        # how well a galaxy fits a cluster, in view of all galaxies
        self.fits = s.mlp("phi.fits", [N + 4, HIDDEN, HIDDEN, 1])

    def data(self, split: str, first: int, n: int, random: rws.Random) -> dict[str, Any]:
        """Eight different galaxies for each datum."""
        return {"x": [self.drawn(random) for _ in range(n)]}

    def drawn(self, random: rws.Random) -> list[float]:
        left, x = list(VELOCITY), []
        for _ in range(N):
            k = random.below(len(left))
            x.append(left[k])
            left[k] = left[-1]
            left.pop()
        return x

    def model(self, p: rws.Path) -> None:
        # The next velocity of a cluster of n whose velocities add up to total is normal; v0 and v are the variances of means and
        # within a cluster:     mean = total / (n + v / v0), variance = v / (n + v / v0) + v.
        theta = rws.exp(self.theta)
        alpha, sd = theta[0], theta[2]
        root = sd / theta[1]
        ratio = root * root
        weight: list[Any] = []
        total: list[rws.Value] = []
        n: list[int] = []
        for _ in range(N):
            k = p.choose("z", rws.log(rws.concat(weight + [alpha])))
            if k == len(n):
                weight.append(alpha)
                total.append(p.constant(0))
                n.append(0)
            precision = ratio + n[k]  # in units of 1 / v
            x = p.normal("x", total[k] / precision, sd * rws.sqrt((precision + 1) / precision))  # observed
            n[k] += 1
            total[k] = total[k] + x
            weight[k] = n[k]
        p.report("clusters", len(n))

    def guide(self, p: rws.Path) -> None:
        galaxies = p.items("x")
        everything = rws.concat(galaxies)
        total: list[rws.Value] = []
        n: list[int] = []
        for i, x in enumerate(galaxies):
            fit = []
            for t, count in zip(total + [p.constant(0)], n + [0]):
                away = rws.square(x - t * (1 / max(1, count)))
                fit.append(self.fits([everything, x, rws.log1p(away), count, i]))
            k = p.choose("z", rws.concat(fit))
            if k == len(n):
                total.append(p.constant(0))
                n.append(0)
            total[k] = total[k] + x
            n[k] += 1

    @rws.metric
    def exact(self, e: rws.Evaluation) -> float:
        """log p(x) at theta, by the sum over all 4140 partitions of 8 galaxies."""
        x = e.field("x")[:, 1:].astype(float)  # the first number is the length
        alpha, sd0, sd = np.exp(self.theta.values[0].astype(float))

        def sum_over(i: int, total: list[Any], n: list[int]) -> Any:
            """The sum of p(z_i … z_7, x_i … x_7 | z_0 … z_{i-1}, x_0 … x_{i-1}) over all z, for all data."""
            if i == N:
                return 1.0
            p: Any = 0.0
            for k in range(len(n) + 1):
                t, m = (total + [0.0])[k], (n + [0])[k]
                precision = m + (sd / sd0) ** 2
                variance = sd ** 2 / precision + sd ** 2
                here = (m or alpha) / (i + alpha) * np.exp(-(x[:, i] - t / precision) ** 2 / variance / 2) / np.sqrt(2 * np.pi * variance)
                p = p + here * sum_over(i + 1, total[:k] + [t + x[:, i]] + total[k + 1:], n[:k] + [m + 1] + n[k + 1:])
            return p

        return float(np.log(sum_over(0, [], [])).mean())


if __name__ == "__main__":
    run = rws.train(Galaxies(), method="ww", iterations=int((sys.argv + ["2000"])[1]), seed=1)
    measured = run.evaluate()
    print(f"log p(x) exact {measured['exact']:.3f}, by 10 particles {measured['log_evidence']:.3f}")
    print("alpha, sd of means, sd within:", np.exp(run.state_dict()["theta.dp"]))
    print(run.infer(x=[-10.4, -9.8, -0.7, -0.1, 0.2, 2.2, 2.7, 12.8]))
