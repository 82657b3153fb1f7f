"""Figures, drawn by the program's own module for figures: they show themselves in a notebook, and save to a file."""

from __future__ import annotations

import csv
import json
import os
import tempfile
from typing import Any, Callable, Mapping, Optional, Sequence

import numpy as np

from ._program import call

__all__ = ["chart", "tree", "hinton", "grid", "Figure"]


class Figure:
    """A figure: shows itself in a notebook; `save` writes .svg, .png or .pdf."""

    def __init__(self, draw: Callable[[str], Any]) -> None:
        self._draw = draw
        self._made: dict[str, bytes] = {}

    def _bytes(self, ending: str) -> bytes:
        if ending not in self._made:
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "figure" + ending)
                self._draw(path)
                with open(path, "rb") as f:
                    self._made[ending] = f.read()
        return self._made[ending]

    def save(self, path: Any) -> None:
        """Writes the figure; the ending of the path says how: .svg, .png or .pdf."""
        self._draw(os.fspath(path))

    def _repr_svg_(self) -> str:
        return self._bytes(".svg").decode()

    def _repr_png_(self) -> bytes:
        return self._bytes(".png")


def chart(runs: Any, *metrics: str, x: Optional[str] = None, title: Optional[str] = None, panels: str = "none",
          log: Optional[bool] = None) -> Figure:
    """Metrics of runs over the iterations. runs: a `Run`, the `Stores` of `rws.runs`, or paths."""
    where: Sequence[str] = []
    if hasattr(runs, "_paths"):
        paths, where = runs._paths, runs._where
    elif hasattr(runs, "folder"):
        paths = [runs.folder] if runs.folder else []
    else:
        paths = [os.fspath(runs)] if isinstance(runs, (str, os.PathLike)) else [os.fspath(p) for p in runs]
    if not metrics:
        metrics = ("log_evidence",)
    given = [f"--panels={panels}"]
    given += [f"--x={x}"] if x else []
    given += [f"--title={title}"] if title else []
    given += [] if log is None else ["--log" if log else "--linear"]
    given += [f"--where={w}" for w in where]

    def draw(path: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            call("plot", ",".join(metrics), *(paths or [_exported(runs, os.path.join(folder, "run.csv"))]), *given, "--out", path)

    return Figure(draw)


def _exported(run: Any, path: str) -> str:
    """Writes the evaluations of a run that has no folder as `rws export` would. Returns the path."""
    config = {k: v for k, v in run.config.items() if isinstance(v, (str, int, float))}
    names = sorted({m for e in run.trainer.evaluations for m in e})
    with open(path, "w", newline="") as f:
        out = csv.writer(f)
        out.writerow(["run", *config, "iteration", "seconds", *names])
        for e in run.trainer.evaluations:
            out.writerow(["run", *config.values(), e.iteration, repr(e.seconds), *(repr(e[m]) if m in e else "" for m in names)])
    return path


def _drawn(kind: str, o: dict[str, Any], title: Optional[str]) -> Figure:
    if title:
        o["title"] = title
    return Figure(lambda path: call("draw", kind, "--out", path, input=json.dumps(o).encode()))


def tree(trees: str | Sequence[str], captions: Optional[Sequence[Optional[str]]] = None, title: Optional[str] = None) -> Figure:
    """Parse trees, texts in brackets, side by side."""
    trees = [trees] if isinstance(trees, str) else list(trees)
    captions = captions or [None] * len(trees)
    return _drawn("trees", {"trees": [{"text": t, **({"caption": c} if c else {})} for t, c in zip(trees, captions)]}, title)


def _plain(a: Any) -> list[Optional[float]]:
    return [None if v != v else float(v) for v in np.asarray(a, float).reshape(-1)]


def grid(images: Any, columns: int = 10, title: Optional[str] = None) -> Figure:
    """Grey images, an array of n x high x wide with numbers from 0 (black) to 1."""
    a = np.asarray(images, float)
    a = a[None] if a.ndim == 2 else a
    n, high, wide = a.shape
    if n == 0:
        raise ValueError("There are no images to draw.")
    columns = min(columns, n)
    rows = -(-n // columns)
    full = np.full((rows * columns, high, wide), np.nan)
    full[:n] = a
    return _drawn("images", {"rows": rows, "columns": columns, "high": high, "wide": wide, "values": _plain(full)}, title)


def hinton(rows: Mapping[str, Any], columns: Optional[Sequence[Any]] = None, title: Optional[str] = None) -> Figure:
    """A Hinton diagram: squares whose area is the probability. rows: {name: probabilities}, one strip each; with `columns`,
    each entry has a list of probabilities for each column."""
    n = len(columns) if columns else 1
    values = np.stack([np.asarray(v, float).reshape(n, -1) for v in rows.values()], axis=1)  # [columns][strips][values]
    return _drawn("hinton", {"strips": [str(k) for k in rows], "columns": [str(c) for c in columns or []],
                             "values": _plain(values)}, title)
