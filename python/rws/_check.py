"""A review of a model: what a careful reader would try."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

from . import _code
from ._run import ModelLike, Trainer

__all__ = ["check", "Finding", "Findings"]


class Finding(NamedTuple):
    """One finding: `kind`; `severity` ("mistake", "warning" or "note"); `about`, the site or parameter, or None; and `text`, what it is
    and what to do."""

    kind: str
    severity: str
    about: Optional[str]
    text: str


class Findings(list[Finding]):
    """What `check` has found, the most severe first. `seconds`, `rows`, `paths` and `calls` are those of an iteration."""

    def __init__(self, found: Any, seconds: float, rows: int, paths: int, calls: int) -> None:
        super().__init__(found)
        self.seconds, self.rows, self.paths, self.calls = seconds, rows, paths, calls

    @property
    def ok(self) -> bool:
        """Whether there is neither a mistake nor a warning."""
        return all(f.severity == "note" for f in self)

    def __repr__(self) -> str:
        lines = [f"{f.severity} ({f.kind}): {f.text}" for f in self] or ["Nothing was found."]
        if self.seconds == self.seconds:
            lines.append(f"An iteration takes {1e3 * self.seconds:.3g} ms: {self.rows} rows, {self.paths} paths, "
                         f"{self.calls} calls of kernels.")
        return "\n".join(lines)


def _over_sets(trainer: Trainer) -> list[Finding]:
    if trainer.model is None:
        return []
    return [Finding("random", "warning", None,
                    f"{name} loops over a set in line {line}. The order of a set of texts differs between processes, and so does "
                    "what the program does: loop over sorted(…), a list or a tuple.")
            for name, line in _code.loops_over_sets(trainer.model)]


def check(model: ModelLike, data: Any = None, test: Any = None, **options: Any) -> Findings:
    """Reviews a model and its guide on a few data, at the parameters that training starts from, and returns `Findings`.

    The same draws are made for all particles at once, in another order, and for each particle alone, and must have the same scores;
    gradients are compared with differences; parameters must be used by the program that they belong to; the guide must reach what
    the model draws; data must be possible. model, data, test and options are those of `train`."""
    with Trainer(model, data, test, **options) as trainer:
        return review(trainer)


def review(trainer: Trainer) -> Findings:
    """The same for a trainer, at its present parameters."""
    found, *cost = trainer._inner.check()
    rank = {"mistake": 0, "warning": 1, "note": 2}
    return Findings(sorted([Finding(*f) for f in found] + _over_sets(trainer), key=lambda f: rank[f.severity]), *cost)
