"""rws: learn generative programs that branch, loop and recurse on random choices, and their posterior.

    import numpy as np, rws

    class Mixture(rws.Model):
        def setup(self, s):
            self.prior = s.param("theta.prior", 3)                     # numbers to learn: the model's
            self.net = s.mlp("phi.net", [1, 16, 3])                    # a network: the guide's
        def guide(self, p):
            p.categorical("z", self.net(p.observed("x")))              # looks at the datum, proposes z
        def model(self, p):
            z = p.categorical("z", self.prior)
            p.normal("x", 4 * z, 1)                                    # "x" is a field of the data: observed

    run = rws.train(Mixture(), data={"x": x}, method="ww", particles=20, iterations=2000)
    print(run.infer(x=3.9).to_pandas())

A program is written for one particle, with Python's own ``if``, ``for`` and recursion; the engine executes it once for
all particles that made the same choices.
"""

from ._answer import Answer, Answers, AnswerTable, Calibration, Particle, Sample
from ._check import Finding, Findings, check
from ._figure import Figure, chart, grid, hinton, tree
from ._model import Evaluation, Model, Setting, Setup, Table, guide_metric, metric, posterior_metric, snapshot
from ._program import main, program
from ._run import Interrupted, Measures, Run, Trainer, methods, models, open, optimisers, resume, train
from ._rws import (Abandoned, Broken, Error, Family, Layer, Numbers, Param, Path, Random, Stopped, Value, abs, add_diagonal, argmax,
                   attend, cholesky, cholesky_solve, clip, concat, concrete_density, cos, cover, cumulative_sum, detach,
                   diagonal, digamma, dot, dot_attention, elu, exp, expm1, lgamma, log, log1mexp, log1p, log_determinant, log_sigmoid,
                   log_softmax, log_sum_exp, matmul, matvec, maximum, minimum, n_ranks, normal_density, onehot, pick, place,
                   pool2d, power, rank, relaxed_density, relu, row, sigmoid, sin, softplus, sqrt, square, sum, sum_many, tanh,
                   transpose, triangular_solve, where)
from ._rws import version as __version__
from ._store import Stored, Stores, runs

__all__ = [
    # programs
    "Model", "Setup", "Setting", "Table", "Path", "Value", "Param", "Layer", "Numbers", "Random", "Family", "Evaluation", "metric",
    "posterior_metric", "guide_metric", "snapshot",
    # functions on values
    "abs", "add_diagonal", "argmax", "attend", "cholesky", "cholesky_solve", "clip", "concat", "concrete_density", "cos", "cover",
    "cumulative_sum", "detach", "diagonal", "digamma", "dot", "dot_attention", "elu", "exp", "expm1", "lgamma", "log", "log1mexp", "log1p",
    "log_determinant", "log_sigmoid", "log_softmax", "log_sum_exp", "matmul", "matvec", "maximum", "minimum", "normal_density",
    "onehot", "pick", "place", "pool2d", "power", "relaxed_density", "relu", "row", "sigmoid", "sin", "softplus", "sqrt", "square",
    "sum", "sum_many", "tanh", "transpose", "triangular_solve", "where",
    # training and asking
    "train", "check", "Finding", "Findings", "resume", "Trainer", "Run", "Measures", "models", "methods", "optimisers", "rank", "n_ranks", "Answer", "Answers", "AnswerTable", "Calibration",
    "Particle", "Sample", "open", "runs", "Stored", "Stores",
    # figures and the program
    "Figure", "chart", "grid", "hinton", "tree", "main", "program",
    # exceptions
    "Error", "Broken", "Stopped", "Interrupted", "Abandoned", "__version__",
]
