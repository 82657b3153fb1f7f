"""Models: what a user writes in Python, and its declarations."""

from __future__ import annotations

import copy
import os
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Sequence, TypeVar, Union

import numpy as np

from . import _rws
from ._data import Arrays, Column, Declared, Described, orders, pack_all, pack_series
from ._helpers import unknown
from ._rws import Error

__all__ = ["Model", "Setting", "Setup", "Table", "Evaluation", "metric", "posterior_metric", "guide_metric", "snapshot"]

F = TypeVar("F", bound=Callable[..., Any])


class Setting:
    """A setting of a model with its limits: ``settings = {"depth": Setting(30, 1, 100, help="…")}``."""

    def __init__(self, value: Any, min: Optional[float] = None, max: Optional[float] = None, help: str = "") -> None:
        self.value, self.min, self.max, self.help = value, min, max, help


def _spec_of_setting(name: str, s: Any) -> tuple[str, str, float, float, str, bool]:
    if not isinstance(s, Setting):
        s = Setting(s)
    if isinstance(s.value, (bool, np.bool_)):
        return name, str(int(s.value)), 0.0, 1.0, s.help or "0 or 1", True
    if isinstance(s.value, (int, np.integer)):
        low, high = -2147483648 if s.min is None else s.min, 2147483647 if s.max is None else s.max
        return name, str(int(s.value)), float(low), float(high), s.help or "a whole number", True
    if isinstance(s.value, (float, np.floating)):
        low, high = -1e300 if s.min is None else s.min, 1e300 if s.max is None else s.max
        return name, repr(float(s.value)), float(low), float(high), s.help or "a number", False
    return name, str(s.value), 0.0, 0.0, s.help or "text", False


def _marks(kind: str, f: Any, name: Optional[str], help: Optional[str]) -> Any:
    if f is None:
        return lambda g: _marks(kind, g, name, help)
    f._rws_mark = (kind, name or f.__name__, help or (f.__doc__ or "").strip().split("\n")[0])
    return f


def metric(f: Optional[F] = None, *, name: Optional[str] = None, help: Optional[str] = None) -> Any:
    """Marks a method as a metric, one number of an evaluation: ``measure(self, e)`` with an `Evaluation`."""
    return _marks("measure", f, name, help)


def posterior_metric(f: Optional[F] = None, *, name: Optional[str] = None, help: Optional[str] = None) -> Any:
    """Marks a method as a number of a particle, ``f(self, particle)``, whose mean is taken by importance weights."""
    return _marks("posterior", f, name, help)


def guide_metric(f: Optional[F] = None, *, name: Optional[str] = None, help: Optional[str] = None) -> Any:
    """Marks a method as a number of a particle, ``f(self, particle)``, whose mean is taken with equal weights."""
    return _marks("guide", f, name, help)


def snapshot(f: Optional[F] = None, *, name: Optional[str] = None, help: Optional[str] = None) -> Any:
    """Marks a method that calls ``e.show(value, label)`` for each number of a list that no curve can show."""
    return _marks("snapshot", f, name, help)


if TYPE_CHECKING:
    _Declarations = _rws.Setup
else:
    _Declarations = object


class Setup(_Declarations):
    """The declarations of a model, in `Model.setup`: parameters, layers and fields."""

    def __init__(self, inner: _rws.Setup, random: _rws.Random, model: Model) -> None:
        self._inner, self._model = inner, model
        #: A stream of random numbers, for parameters that start from values of the model's own.
        self.random = random

    def __getitem__(self, name: str) -> Any:
        """The value of a setting, of the type of its default."""
        default = self._model.settings[name]
        default = default.value if isinstance(default, Setting) else default
        text = self.text(name)
        if isinstance(default, (bool, np.bool_)):
            return bool(int(float(text)))
        if isinstance(default, (int, np.integer)):
            return int(float(text))
        if isinstance(default, (float, np.floating)):
            return float(text)
        return text

    def field(self, name: str, dim: Optional[int] = None) -> None:
        """Declares a field of a datum, `dim` numbers; by default as many as the data have."""
        self._declare(name, dim, 0, False)

    def input(self, name: str, dim: Optional[int] = None) -> None:
        """Declares an input: numbers of a datum that both programs may read (`Path.observed`) and nobody observes, such as covariates.
        A model that reads one is conditional on it."""
        self._declare(name, dim, 0, False)
        self.is_input(name)

    def is_input(self, name: str) -> None:
        """Says that a field or a series, which setup declares in any way or the data have, is an input."""
        self._model._inputs.append(name)

    def label(self, name: str, dim: Optional[int] = None) -> None:
        """Declares numbers of a datum that programs do not see and metrics compare with."""
        self._declare(name, dim, 0, True)

    def series(self, name: str, dim: Optional[int] = None, most: Optional[int] = None) -> None:
        """Declares a series: up to `most` items of `dim` numbers; each datum has its own number of items. By default both are
        as the data have them; without arrays an item has one number. The data of a declared series are one also where all
        sequences happen to have the same length."""
        self._declare(name, dim, most, False)

    def label_series(self, name: str, dim: Optional[int] = None, most: Optional[int] = None) -> None:
        """Declares a series of labels, laid out as by `series`: up to `most` items of `dim` numbers, NaN where not known."""
        self._declare(name, dim, most, True)

    def table(self, setting: str = "data", *, test: Optional[str] = None, test_share: float = 0.0, test_last: bool = False,
              order: str = "shuffled", header: Optional[bool] = None, skip_missing: bool = False, tensor: Optional[str] = None,
              id: Optional[str] = None) -> Table:
        """Reads the file that a setting of the model names: CSV, NPY or safetensors. Its columns become fields: `Table`.

        test: a second setting, which names a file of test rows; without one, or if it is empty, a share of the rows is held out
            (test_share, a tenth by default; 1: all rows serve both purposes; test_last takes the last rows).
        order: of the training rows: "shuffled", "in order" or "drawn".
        header: whether the first line has the names of the columns; by default it has if none of its cells is a number.
        skip_missing: leaves out rows with an empty cell, NA, N/A, NaN, null or ?.
        tensor: the name of the tensor in a safetensors file. id: the column of ids; rows with the same id are one datum.
        """
        inner = self._inner._file(setting, test, float(test_share), bool(test_last), orders(order),
                                  0 if header is None else 1 if header else 2, bool(skip_missing), tensor, id)
        return Table(inner, self._model)

    def label_site(self, label: str, site: str) -> None:
        """Says that a label is the value of a latent site where it is known, and NaN where it is not."""
        self._model._label_sites.append((label, site))

    def _declare(self, name: str, dim: Optional[int], most: Optional[int], label: bool) -> None:
        m = self._model
        if m._arrays:
            m._arrays.named(name)
        column = m._arrays.columns.get(name) if m._arrays else None
        if column is not None:
            dim, most = column.shape(name, dim, most, label)
        elif m._arrays and (most is None or dim is None and not most):
            raise Error(f"The data have no {name!r}, which setup declares; they have {', '.join(map(repr, m._arrays.columns))}.")
        elif most is None:
            raise Error(f"How many items the series {name!r} has at most is not known: say most=….")
        elif dim is None and not most:
            raise Error(f"How many numbers the field {name!r} has is not known: give data with {name!r}, or say "
                        f"{'label' if label else 'field'}({name!r}, dim).")
        dim = 1 if dim is None else dim
        m._claim(name)
        if column is not None:
            m._pending.append(Declared(name, column, dim, most, label))
        else:
            self._inner._field(name, dim, most, label)
            m._record(name, dim, most, label)
            m._made.append(name)


def _declaration(name: str) -> Any:
    """A method of Setup that is the extension's."""
    inner = getattr(_rws.Setup, name)

    def declare(self: Setup, *args: Any, **keywords: Any) -> Any:
        return inner(self._inner, *args, **keywords)

    declare.__name__, declare.__qualname__, declare.__doc__ = name, f"Setup.{name}", inner.__doc__
    return declare


for _name in ("param", "linear", "mlp", "rnn", "gru", "lstm", "embedding", "bidirectional", "attention", "set_encoder", "layer_norm",
              "residual_mlp", "conv2d", "conv_transpose2d", "gradient", "sum", "relaxed", "text", "path", "unused"):
    setattr(Setup, _name, _declaration(_name))


class Table:
    """The columns of a file (`Setup.table`), which become fields of a datum. Columns are a list of names, numbers from 1 and ranges:
    "age", "age,weight", "2:5", "first:last"; by default all. Every method declares, so that it can be called in setup only."""

    def __init__(self, inner: _rws.Table, model: Model) -> None:
        self._inner, self._model = inner, model
        model._n_tables += 1

    @property
    def columns(self) -> list[Optional[str]]:
        """The names of the columns; None for a column without a name."""
        return self._inner.columns

    def rows(self, test: bool = False) -> int:
        """How many data there are, for training or for tests. With ids, all rows of an id are one datum."""
        return self._inner.rows(test)

    def _add(self, name: str, dim: int, most: int, label: bool) -> None:
        self._model._claim(name)
        self._model._record(name, dim, most, label)

    def field(self, name: str, columns: Optional[str] = None) -> int:
        """Declares a field that is made of columns, and returns how many numbers it has."""
        n = self._inner.field(name, columns)
        self._add(name, n, 0, False)
        return n

    def label(self, name: str, columns: Optional[str] = None) -> int:
        """Declares a label that is made of columns; an empty cell is NaN, not known. "#" is the number of the row."""
        n = self._inner.label(name, columns)
        self._add(name, n, 0, True)
        return n

    def series(self, name: str, columns: Optional[str] = None, most: int = 0) -> int:
        """Declares a series of the rows of an id: item t is made of the columns of row t. A datum, or a dream, has at most `most`
        items; 0: as many as the longest has. Returns the numbers of an item."""
        n = self._inner.series(name, columns, most)
        self._add(name, n, most or self._inner.longest, False)
        return n

    def row_series(self, name: str, columns: Optional[str] = None, dim: int = 1) -> int:
        """Declares a series within one row: the first of the columns is the number of items, the others are the items, of `dim` numbers
        each. Returns how many items there are at most."""
        n = self._inner.row_series(name, columns, dim)
        self._add(name, dim, n, False)
        return n

    def length(self, name: str) -> None:
        """Declares a field of one number: how many rows a datum has."""
        self._inner.length(name)
        self._add(name, 1, 0, False)


class Evaluation:
    """One evaluation of a run, for metrics."""

    def __init__(self, inner: Any, model: Model) -> None:
        self._inner, self._model = inner, model

    @property
    def size(self) -> int:
        """How many test data there are."""
        return int(self._inner.size)

    def field(self, name: str) -> np.ndarray:
        """A field of all test data, an array of n x dim."""
        a: np.ndarray = self._inner.field(name)
        return a

    def compute(self, f: Callable[[_rws.Path], Any], dim: int, **fields: Any) -> np.ndarray:
        """Runs ``f(p)`` for data that are given by field (by default the test data) and returns its values, n x dim. Only labels may
        be missing."""
        if not fields:
            fields = {n: self.field(n) for n in self._model._sizes}
        sizes = self._model._sizes
        self._model._check_names(fields)
        given = {name: np.asarray(x, np.float32) for name, x in fields.items() if x is not None}
        n = max(a.size // sizes[name] for name, a in given.items())
        arrays = [given[name] if name in given else np.full(n * size, np.nan, np.float32) for name, size in sizes.items()]
        out: np.ndarray = self._inner._compute(f, dim, n, arrays)
        return out

    def dream(self, program: Callable[[_rws.Path], Any], n: int = 1000) -> float:
        """The mean of log q over n samples of ``program(p)``, which takes the place of the model: the true one, where it is known."""
        return float(self._inner._dream(program, int(n)))

    def guess(self, f: Callable[[_rws.Particle, int], Any], particles: int = 1000, **fields: Any) -> None:
        """Draws particles of the guide for one datum, given by field, and calls ``f(particle, count)`` for each set of equal ones."""
        self._inner._guess(f, int(particles), self._model._pack(fields, 1, one=True))

    def show(self, value: float, label: Optional[str] = None) -> None:
        """Adds a number to the snapshot that is being measured."""
        self._inner.show(value, label)


class Model:
    """A generative program with its inference network. Subclasses define three methods:

    ``setup(self, s)`` declares parameters, layers and fields (`Setup`) and leaves them in attributes;
    ``model(self, p)`` makes the choices, and then the data (`Path`);
    ``guide(self, p)`` looks at the data and makes the same choices. Without it the model gets an automatic guide: its own
    program, in which a network that sees the data moves the parameters that every choice is drawn with.

    Setup runs on a copy of the instance for every trainer and posterior, so that one instance can be trained many times.
    Without a subclass: ``Model(setup=…, model=…, guide=…)`` takes functions, the last of which may be left out; what the function ``setup(s)`` returns is the
    second argument of ``guide(p, state)`` and ``model(p, state)``.

    Optional: ``data(self, split, first, n, random)``, which returns arrays by field; ``read(self, text)`` and ``see(self, picture)``,
    which make a datum of a question; ``posterior(self, **fields)``, the exact one, (log p(x), {report: {text: probability}});
    ``relaxed(self, p, log_s, temperature, how)``; ``em(self, n_fresh, random)``; methods marked by `metric` and its kin.
    """

    #: How the model is called in runs; by default by the name of its class.
    name: Optional[str] = None
    #: Settings by name: a default, or a `Setting` with limits. They are given by train(set={…}) and read by s["name"].
    settings: Mapping[str, Any] = {}
    #: Defaults of options of train.
    defaults: Mapping[str, Any] = {}
    #: "name=value": a setting that holds whenever a trained run is asked, whatever it was trained with.
    ask_setting: Optional[str] = None

    def __init__(self, setup: Optional[Callable[..., Any]] = None, guide: Optional[Callable[..., Any]] = None,
                 model: Optional[Callable[..., Any]] = None, data: Optional[Callable[..., Any]] = None,
                 name: Optional[str] = None) -> None:
        if setup is None and guide is None and model is None:
            return
        if setup is None or model is None:
            raise Error("A model of functions needs setup and model; without a guide it gets an automatic one.")
        self.name = name or "model"
        functions = self._functions = (setup, guide, model)

        def run_setup(me: Any, s: Setup) -> None:
            me.state = functions[0](s)
            if guide is not None:
                me.guide = lambda p, state=me.state: guide(p, state)
            me.model = lambda p, state=me.state: model(p, state)

        self._run_setup = run_setup
        self.model = None  # type: ignore[assignment]
        if guide is not None:
            self.guide = None  # type: ignore[assignment]
        if data is not None:
            self.data = data

    _arrays: Union[Arrays, Described, None] = None
    _run_setup: Optional[Callable[[Any, Setup], None]] = None
    _names: set[str]
    _sizes: dict[str, int]
    _labels: set[str]
    _series: dict[str, tuple[int, int]]
    _pending: list[Declared]
    _made: list[str]
    _label_sites: list[tuple[str, str]]
    _inputs: list[str]
    _label_series: dict[str, tuple[np.ndarray, np.ndarray]]
    _n_tables: int
    _told: dict[str, tuple[int, int]]

    def setup(self, s: Setup) -> None:
        raise NotImplementedError("A model has a method setup(self, s).")

    def guide(self, p: _rws.Path) -> None:
        raise NotImplementedError("This model has no guide of its own.")

    def model(self, p: _rws.Path) -> None:
        raise NotImplementedError("A model has a method model(self, p).")

    # ---- what the extension calls

    def _copy(self) -> Model:
        """The instance that setup runs on. Its attributes say what setup has declared so far."""
        c = copy.copy(self)
        c._names = set()  # all fields that are declared
        c._sizes = {}  # numbers of each field that the library knows, in its order
        c._labels, c._series = set(), {}
        c._pending = []  # columns of arrays, which the library gets when setup is over
        c._made = []  # fields that the method data makes
        c._label_sites, c._inputs, c._label_series, c._n_tables = [], [], {}, 0
        c._arrays = copy.copy(self._arrays)
        return c

    def _claim(self, name: str) -> None:
        if name in self._names:
            raise Error(f"The field {name!r} is declared twice.")
        self._names.add(name)

    def _record(self, name: str, dim: int, most: int, label: bool) -> None:
        """Remembers a field that the library knows."""
        self._sizes[name] = 1 + most * dim if most else dim
        if most:
            self._series[name] = (dim, most)
        if label:
            self._labels.add(name)

    def _setup(self, inner: _rws.Setup, random: _rws.Random) -> None:
        s = Setup(inner, random, self)
        if self._run_setup:
            self._run_setup(self, s)
        else:
            self.setup(s)
        if self._arrays:
            self._setup_arrays(s, self._arrays)
        if self._made and (self._n_tables or self._arrays):
            raise Error(f"The field {self._made[0]!r} is declared, but is not among the data.")
        for label, site in self._label_sites:
            inner.label_site(label, site)
        for name in self._inputs:
            inner._is_input(name)

    def _setup_arrays(self, s: Setup, arrays: Union[Arrays, Described]) -> None:
        arrays.named("x")
        for name, column in arrays.columns.items():  # fields that the data have and setup did not declare
            if name not in self._names:
                s._declare(name, None, None if column.ragged else 0, False)
        for d in self._pending:
            self._record(d.name, d.dim, d.most, d.label)
            if d.most and d.label and isinstance(d.column, Column):
                rows = [pack_all(part, d.dim, d.most) for part in d.column.parts]
                self._label_series[d.name] = rows[0], rows[-1]
        if self._label_series:
            if "datum" in self._names:
                raise Error("Data with a series of labels have no field \"datum\": the label of that name numbers the data.")
            self._record("datum", 1, 0, True)
        arrays.make(s._inner, self._pending)
        self._told.update((d.name, (d.dim, d.most)) for d in self._pending)

    def _check_names(self, given: Mapping[str, Any]) -> None:
        """Refuses fields that do not exist, and fields that are missing; labels may be."""
        for name in given:
            if name not in self._sizes:
                raise Error(unknown("field", name, self._sizes))
        for name in self._sizes:
            if given.get(name) is None and name not in self._labels:
                raise Error(f"The field {name!r} is missing.")

    def _pack(self, given: Any, n: int, one: bool = False) -> list[np.ndarray]:
        """Arrays by field in the order of declaration. one: a single datum is given, not a list of one."""
        if not isinstance(given, dict):
            given = {next(iter(self._sizes)): given}
        self._check_names(given)
        out = []
        for name, size in self._sizes.items():
            x = given.get(name)
            if x is None:
                out.append(np.full(n * size, np.nan, np.float32))
            elif name in self._series:
                dim, most = self._series[name]
                if not one and len(x) != n:
                    raise Error(f"The series {name!r} has {n} sequences, one for each datum, not {len(x)}.")
                out.append(pack_series(x, dim, most) if one else pack_all(x, dim, most).reshape(-1))
            else:
                out.append(np.ascontiguousarray(x, np.float32).reshape(-1))
        return out

    def _label_rows(self, split: str, rows: np.ndarray) -> list[Optional[np.ndarray]]:
        """The series of labels of rows by number; None for every other field."""
        i = rows.reshape(-1).astype(int)
        out: list[Optional[np.ndarray]] = []
        for name in self._sizes:
            parts = self._label_series.get(name)
            out.append(None if parts is None else parts[split == "test"][i])
        return out

    def _data(self, split: str, first: int, n: int, random: _rws.Random) -> list[np.ndarray]:
        data = getattr(self, "data", None)
        if data is None:
            raise Error("The model has no data: give train(data=…), or define data(self, split, first, n, random).")
        return self._pack(data(split, first, n, random), n)

    def _read(self, text: str) -> list[np.ndarray]:
        return self._pack(self.read(text), 1, one=True)  # type: ignore[attr-defined]

    def _see(self, name: str, wide: int, high: int, grey: bytes) -> list[np.ndarray]:
        picture = np.frombuffer(grey, np.uint8).reshape(high, wide)
        return self._pack(self.see(picture), 1, one=True)  # type: ignore[attr-defined]

    def _posterior(self, arrays: Sequence[Optional[np.ndarray]]) -> tuple[float, list[tuple[str, str, float]]]:
        given = {n: (a.reshape(-1) if a is not None else None) for n, a in zip(self._sizes, arrays)}
        answer = self.posterior(**given)  # type: ignore[attr-defined]
        if answer is None:
            return float("nan"), []
        log_evidence, told = answer
        return float(log_evidence), [(r, str(t), float(p)) for r, d in told.items() for t, p in d.items()]

    def _metric(self, i: int, o: Any) -> float:
        kind, f = self._marked("measure", "posterior", "guide")[i]
        return float(f(self, Evaluation(o, self) if kind[0] == "measure" else o))

    def _snapshot(self, i: int, o: Any) -> None:
        self._marked("snapshot")[i][1](self, Evaluation(o, self))

    @classmethod
    def _marked(cls, *kinds: str) -> list[tuple[Any, Any]]:
        found: dict[str, tuple[Any, Any]] = {}
        for c in reversed(cls.__mro__):
            for f in vars(c).values():
                mark = getattr(f, "_rws_mark", None)
                if mark and mark[0] in kinds:
                    found[mark[1]] = (mark, f)
        return list(found.values())

    def _program(self) -> _rws.Program:
        self._told = {}  # of the fields, shared with the copies that setup runs on
        kinds = {"measure": 0, "posterior": 1, "guide": 2}
        has = [m for m in ("relaxed", "em", "read", "posterior", "see") if hasattr(self, m)]
        if "guide" in vars(self) or type(self).guide is not Model.guide:
            has.append("guide")
        defaults = {k: str(v) if k in ("lr", "optimiser") else int(v) for k, v in self.defaults.items()}
        return _rws.Program(
            self, self.name or type(self).__name__, (type(self).__doc__ or "").strip().split("\n")[0],
            [_spec_of_setting(n, s) for n, s in self.settings.items()],
            [(mark[1], mark[2], kinds[mark[0]]) for mark, _ in self._marked(*kinds)],
            [(mark[1], mark[2]) for mark, _ in self._marked("snapshot")],
            defaults, has, self.ask_setting)
