"""A model without a guide: each guest of a party moves x by about 1; how many came?

    python party.py [ITERATIONS]

The number of guests has no bound, and nobody sees it. The program itself runs in the guide's place, where a network that sees x
moves the odds of each choice. Its twin in C is examples/party.c.
"""

import sys

import numpy as np

import rws


class Party(rws.Model):
    """How many guests came?"""

    defaults = dict(particles=20, iterations=2000)

    def setup(self, s: rws.Setup) -> None:
        self.more = s.param("theta.more", 1)  # the log-odds that another guest comes

    def model(self, p: rws.Path) -> None:
        n = 0
        while p.flip("more", self.more):
            n += 1
        p.report("guests", n)
        p.normal("x", n, 0.4)


def data(n: int, seed: int = 0) -> np.ndarray:
    r = np.random.default_rng(seed)
    return (r.geometric(0.4, n) - 1 + r.normal(0, 0.4, n)).astype(np.float32)


if __name__ == "__main__":
    run = rws.train(Party(), data={"x": data(5000)}, method="ww", iterations=int((sys.argv + ["2000"])[1]))
    print(run.infer(x=2.7))
