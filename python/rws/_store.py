"""What the stores of runs hold."""

from __future__ import annotations

import os
from html import escape
from typing import TYPE_CHECKING, Any, Iterable, Optional, Sequence, Union

import numpy as np

from . import _rws

if TYPE_CHECKING:
    from ._figure import Figure

__all__ = ["Stored", "Stores", "runs"]

PathLike = Union[str, "os.PathLike[str]"]


class Stored:
    """What a store says of one run: `name`, `config`, `state`, `histories` ({metric: (iterations, seconds, values)}), `snapshots`."""

    name: str
    store: str
    state: str
    config: dict[str, str]
    iteration: int
    iterations: int
    seconds: float

    def __init__(self, inner: dict[str, Any]) -> None:
        self.histories = inner.pop("metrics")
        shots: dict[str, list[tuple[int, np.ndarray, list[Optional[str]]]]] = {}
        for name, iteration, values, labels in inner.pop("snapshots"):
            shots.setdefault(name, []).append((iteration, values, labels))
        self.snapshots = shots
        self.__dict__.update(inner)

    def last(self, metric: str) -> float:
        """The last value of a metric; NaN if it was not measured."""
        return float(self.histories[metric][2][-1]) if metric in self.histories else float("nan")

    def __repr__(self) -> str:
        return f"<rws.Stored {self.name}, {self.state}, iteration {self.iteration} of {self.iterations}>"


def html_table(rows: Sequence[Sequence[Any]]) -> str:
    """A table as HTML, whose first row has the headings."""
    cells = ["".join(f"<{tag}>{escape(str(c))}</{tag}>" for c in row) for row, tag in zip(rows, ["th"] + ["td"] * len(rows))]
    return "<table>" + "".join(f"<tr>{c}</tr>" for c in cells) + "</table>"


class Stores(list[Stored]):
    """Runs of a folder, with `to_pandas`, `plot`."""

    def __init__(self, items: Iterable[Stored], paths: list[str], where: list[str]) -> None:
        super().__init__(items)
        self._paths, self._where = paths, where

    def to_pandas(self) -> Any:
        """A frame with a row for each run: its configuration and the last value of every metric."""
        import pandas as pd
        return pd.DataFrame([{"run": r.name, **r.config, "state": r.state, "iteration": r.iteration,
                              **{m: r.last(m) for m in r.histories}} for r in self])

    def _repr_html_(self) -> str:
        metrics = sorted({m for r in self for m in r.histories})
        rows = [["run", "model", "method", "particles", "seed", "state", "iteration", *metrics]]
        for r in self:
            rows.append([r.name, *(r.config.get(k, "") for k in ("model", "method", "particles", "seed")), r.state,
                         f"{r.iteration} of {r.iterations}", *(f"{r.last(m):.4g}" if m in r.histories else "" for m in metrics)])
        return html_table(rows)

    def plot(self, *metrics: str, **options: Any) -> Figure:
        """A chart of metrics of these runs: medians over seeds, with a band between the quartiles."""
        from ._figure import chart
        return chart(self, *metrics, **options)


def runs(*paths: PathLike, where: Union[str, Sequence[str]] = ()) -> Stores:
    """The runs that folders hold, of one run, a sweep or many, or that `rws export` wrote to FILE.csv: `Stores`. where: conditions
    such as "method=ww,ws"."""
    conditions = [where] if isinstance(where, str) else list(where)
    folders = [os.fspath(p) for p in paths] or ["."]
    return Stores([Stored(r) for r in _rws.results(folders, conditions)], folders, conditions)
