"""Models: what a user writes in Python, and its declarations."""

import copy

import numpy as np

from . import _rws
from ._rws import Error

__all__ = ["Model", "Setting", "Setup", "Evaluation", "metric", "posterior_metric", "guide_metric", "snapshot"]


class Setting:
    """A setting of a model with its limits: ``settings = {"depth": Setting(30, 1, 100, help="…")}``."""

    def __init__(self, value, min=None, max=None, help=""):
        self.value, self.min, self.max, self.help = value, min, max, help


def _spec_of_setting(name, s):
    if not isinstance(s, Setting):
        s = Setting(s)
    if isinstance(s.value, bool):
        return name, str(int(s.value)), -1.0, 1.0, s.help or "0 or 1", True
    if isinstance(s.value, (int, np.integer)):
        low, high = -2147483648 if s.min is None else s.min, 2147483647 if s.max is None else s.max
        return name, str(int(s.value)), float(low), float(high), s.help or "a whole number", True
    if isinstance(s.value, (float, np.floating)):
        low, high = -1e300 if s.min is None else s.min, 1e300 if s.max is None else s.max
        return name, repr(float(s.value)), float(low), float(high), s.help or "a number", False
    return name, str(s.value), 0.0, 0.0, s.help or "text", False


def _marks(kind, f, name, help):
    if f is None:
        return lambda g: _marks(kind, g, name, help)
    f._rws_mark = (kind, name or f.__name__, help or (f.__doc__ or "").strip().split("\n")[0])
    return f


def metric(f=None, *, name=None, help=None):
    """Marks a method as a metric, one number of an evaluation: ``measure(self, e)`` with an `Evaluation`."""
    return _marks("measure", f, name, help)


def posterior_metric(f=None, *, name=None, help=None):
    """Marks a method as a number of a particle, ``f(self, particle)``, whose mean is taken by importance weights."""
    return _marks("posterior", f, name, help)


def guide_metric(f=None, *, name=None, help=None):
    """Marks a method as a number of a particle, ``f(self, particle)``, whose mean is taken with equal weights."""
    return _marks("guide", f, name, help)


def snapshot(f=None, *, name=None, help=None):
    """Marks a method that calls ``e.show(value, label)`` for each number of a list that no curve can show."""
    return _marks("snapshot", f, name, help)


class Setup:
    """The declarations of a model, in `Model.setup`: parameters, layers and fields."""

    def __init__(self, inner, random, model):
        self._inner, self._model = inner, model
        #: A stream of random numbers, for parameters that start from values of the model's own.
        self.random = random
        for name in ("param", "linear", "mlp", "rnn", "gru", "lstm", "embedding", "bidirectional", "attention",
                     "set_encoder", "layer_norm", "residual_mlp", "conv2d", "conv_transpose2d", "label_site", "gradient",
                     "relaxed", "text", "path"):
            setattr(self, name, getattr(inner, name))

    def __getitem__(self, name):
        """The value of a setting, of the type of its default."""
        default = self._model.settings[name]
        default = default.value if isinstance(default, Setting) else default
        text = self.text(name)
        if isinstance(default, bool):
            return bool(int(float(text)))
        if isinstance(default, int):
            return int(float(text))
        if isinstance(default, float):
            return float(text)
        return text

    def field(self, name, dim=None):
        """Declares a field of a datum, `dim` numbers; by default as many as the data have."""
        self._declare(name, dim, 0, False)

    def label(self, name, dim=None):
        """Declares numbers of a datum that programs do not see and metrics compare with."""
        self._declare(name, dim, 0, True)

    def series(self, name, dim=1, most=None):
        """Declares a series: up to `most` items of `dim` numbers, of which each datum has as many as it has."""
        self._declare(name, dim, most, False)

    def label_series(self, name, dim=1, most=None):
        """Declares a series of labels, laid out as by `series`: up to `most` items of `dim` numbers, NaN where not known."""
        self._declare(name, dim, most, True)

    def _declare(self, name, dim, most, label):
        m = self._model
        if name in m._sizes:
            raise Error(f"The field {name!r} is declared twice.")
        table = m._arrays.columns.get(name) if m._arrays else None
        if table is not None:
            if (most == 0) != (table.most == 0):
                raise Error(f"The data of {name!r} are " + ("a series" if table.most else "no series") +
                            (f": declare it with {'label_series' if label else 'series'}()." if table.most else
                             f"; declare it with {'label' if label else 'field'}()."))
            if dim is not None and dim != table.dim:
                raise Error(f"The field {name!r} has {dim} numbers in setup and {table.dim} in the data.")
            if table.most and most is not None and most < table.most:
                raise Error(f"The data of {name!r} have up to {table.most} items, more than {most}.")
            if m._arrays.described:
                if table.most:
                    m._series[name] = (table.dim, table.most)
                m._sizes[name] = 1 + table.dim * table.most if table.most else table.dim
                self._inner._field(name, table.dim, table.most, label)
            elif table.most:
                m._series[name] = (table.dim, table.most)
                m._sizes[name] = 1 + table.dim * table.most
                if label:
                    self._inner._field(name, table.dim, table.most, True)
                    m._label_series[name] = table.packed
                else:
                    self._inner._table_field(name, table.range, False, table.dim)
            else:
                m._sizes[name] = self._inner._table_field(name, table.range, label, 0)
        else:
            if dim is None:
                raise Error(f"How many numbers the field {name!r} has is not known: say field({name!r}, dim).")
            if most is None:
                raise Error(f"How many items the series {name!r} has at most is not known: say most=….")
            if most:
                m._series[name] = (dim, most)
            m._sizes[name] = 1 + most * dim if most else dim
            self._inner._field(name, dim, most, label)
        if label:
            m._labels.add(name)


class _Column:
    def __init__(self, dim, most):
        self.dim, self.most, self.range = dim, most, None
        self.packed = [None, None]  # of a series: rows for training and for tests


def _is_ragged(x):
    return isinstance(x, (list, tuple)) and len(x) > 0 and not np.isscalar(x[0]) and \
        len({len(i) for i in x if hasattr(i, "__len__")}) > 1


def pack_series(items, dim, most):
    """A series as the library has it: the length, then the items, filled up with zeros."""
    x = np.asarray(items, np.float32).reshape(-1)
    if x.size % dim:
        raise Error(f"A series of items of {dim} numbers cannot have {x.size} numbers.")
    if x.size > most * dim:
        raise Error(f"A series has at most {most} items, not {x.size // dim}.")
    out = np.zeros(1 + most * dim, np.float32)
    out[0] = x.size // dim
    out[1:1 + x.size] = x
    return out


class Arrays:
    """Data at hand: an array, or several of them by name; lists of sequences of different length are series."""

    described = False

    def __init__(self, data, test=None, order="shuffled", test_share=0.0, test_last=False):
        orders = {"shuffled": 0, "in order": 1, "drawn": 2}
        if order not in orders:
            raise Error(f"The order of data is one of {', '.join(orders)}, not {order!r}.")
        self.order, self.share, self.last = orders[order], float(test_share), bool(test_last)
        self.parts = [self._read(data), self._read(test) if test is not None else {}]
        if test is not None and list(self.parts[0]) != list(self.parts[1]) and None not in self.parts[1]:
            raise Error("The test data have other fields than the training data.")
        self.columns = {}

    @staticmethod
    def _read(data):
        if hasattr(data, "to_dict") and hasattr(data, "columns"):  # a frame of pandas: one field for each column
            data = {str(c): data[c].to_numpy() for c in data.columns}
        if not isinstance(data, dict):
            data = {None: data}
        out, n = {}, None
        for name, x in data.items():
            if _is_ragged(x):
                x = [np.asarray(i, np.float32) for i in x]
            else:
                x = np.asarray(x.detach().cpu() if hasattr(x, "detach") else x, np.float32)
                if x.ndim == 0:
                    raise Error("Data are arrays with a row for each datum, not a single number.")
                x = x.reshape(len(x), -1)
            if len(x) == 0 or (n is not None and len(x) != n):
                raise Error("Every field has as many rows as there are data, at least one.")
            n = len(x)
            out[name] = x
        return out

    def prepare(self, inner, names):
        """Makes the library's table. A single array belongs to the only field that is declared."""
        for part in self.parts:
            if None in part:
                part[names[0] if names else "x"] = part.pop(None)
        first, blocks, at = self.parts[0], ([], []), 1
        for name, x in first.items():
            if isinstance(x, list):
                dims = {i.shape[1] if i.ndim > 1 else 1 for i in x}
                if len(dims) != 1:
                    raise Error(f"The items of the series {name!r} have different lengths.")
                every = x + list(self.parts[1].get(name, []))
                dim = dims.pop()
                c = _Column(dim, max(1, max(i.size // dim for i in every)))
                width = 1 + c.most * dim
                for k in range(2):
                    if name in self.parts[k]:
                        c.packed[k] = np.stack([pack_series(i, dim, c.most) for i in self.parts[k][name]])
                        blocks[k].append(c.packed[k])
            else:
                c = _Column(x.shape[1], 0)
                width = c.dim
                for k in range(2):
                    if name in self.parts[k]:
                        y = self.parts[k][name]
                        if isinstance(y, list) or y.shape[1] != c.dim:
                            raise Error(f"The test data of {name!r} have another shape than the training data.")
                        blocks[k].append(y)
            c.range = f"{at}:{at + width - 1}"
            at += width
            self.columns[name] = c
        train = np.ascontiguousarray(np.concatenate(blocks[0], axis=1), np.float32)
        test = np.ascontiguousarray(np.concatenate(blocks[1], axis=1), np.float32) if blocks[1] else train[:0]
        inner._table("the data", train, len(train), train.shape[1], test, len(test), self.order, self.share, self.last)


class Described:
    """Data that are not at hand, of which the folder of a run says what they were like."""

    described = True

    def __init__(self, columns):
        self.columns = {name: _Column(dim, most) for name, dim, most in columns}
        self.parts = []

    def prepare(self, inner, names):
        pass


class Evaluation:
    """One evaluation of a run, for metrics."""

    def __init__(self, inner, model):
        self._inner, self._model = inner, model

    @property
    def size(self):
        """How many test data there are."""
        return self._inner.size

    def field(self, name):
        """A field of all test data, an array of n x dim."""
        return self._inner.field(name)

    def compute(self, f, dim, **fields):
        """Runs ``f(p)`` for data that are given by field (by default the test data) and returns its values, n x dim."""
        if not fields:
            fields = {n: self.field(n) for n in self._model._sizes}
        arrays = [np.asarray(fields[n], np.float32) if n in fields else None for n in self._model._sizes]
        n = max(a.size // s for a, s in zip(arrays, self._model._sizes.values()) if a is not None)
        arrays = [np.zeros(n * s, np.float32) if a is None else a for a, s in zip(arrays, self._model._sizes.values())]
        return self._inner._compute(f, dim, n, arrays)

    def dream(self, program, n=1000):
        """The mean of log q over n samples of ``program(p)``, which takes the place of the model: the true one, where it is known."""
        return self._inner._dream(program, int(n))

    def guess(self, f, particles=1000, **fields):
        """Draws particles of the guide for one datum, given by field, and calls ``f(particle, count)`` for each set of equal ones."""
        self._inner._guess(f, int(particles), self._model._pack(fields, 1))

    def show(self, value, label=None):
        """Adds a number to the snapshot that is being measured."""
        self._inner.show(value, label)


class Model:
    """A generative program with its inference network. Subclasses define three methods:

    ``setup(self, s)`` declares parameters, layers and fields (`Setup`) and leaves them in attributes;
    ``guide(self, p)`` looks at the data and makes the choices (`Path`);
    ``model(self, p)`` makes the same choices, and then the data.

    Setup runs on a copy of the instance for every trainer and posterior, so that one instance can be trained many times.
    Without a subclass: ``Model(setup=…, guide=…, model=…)`` takes functions; what the function ``setup(s)`` returns is the
    second argument of ``guide(p, state)`` and ``model(p, state)``.

    Optional: ``data(self, split, first, n, random)``, which returns arrays by field; ``read(self, text)`` and ``see(self, picture)``,
    which make a datum of a question; ``posterior(self, **fields)``, the exact one, (log p(x), {report: {text: probability}});
    ``relaxed(self, p, log_s, temperature, how)``; ``em(self, n_fresh, random)``; methods marked by `metric` and its kin.
    """

    name = None
    settings = {}
    defaults = {}
    ask_setting = None

    def __init__(self, setup=None, guide=None, model=None, data=None, name=None):
        if setup is None and guide is None and model is None:
            return
        if setup is None or guide is None or model is None:
            raise Error("A model of functions needs all three: setup, guide and model.")
        self.name = name or getattr(model, "__module__", None) or "model"
        functions = (setup, guide, model)

        def run_setup(me, s):
            me.state = functions[0](s)
            me.guide = lambda p, state=me.state: functions[1](p, state)
            me.model = lambda p, state=me.state: functions[2](p, state)

        self._run_setup = run_setup
        self.guide = self.model = None
        if data is not None:
            self.data = data

    _arrays = None
    _run_setup = None

    def setup(self, s):
        raise NotImplementedError("A model has a method setup(self, s).")

    def guide(self, p):
        raise NotImplementedError("A model has a method guide(self, p).")

    def model(self, p):
        raise NotImplementedError("A model has a method model(self, p).")

    # ---- what the extension calls

    def _copy(self):
        c = copy.copy(self)
        c._sizes, c._labels, c._series, c._label_series = {}, set(), {}, {}
        c._arrays = copy.copy(self._arrays)
        if c._arrays and not c._arrays.described:
            c._arrays.parts = [dict(p) for p in c._arrays.parts]
            c._arrays.columns = {}
        return c

    def _setup(self, inner, random):
        if self._arrays:
            self._arrays.prepare(inner, list(getattr(self, "fields", ())))
            self._told.update((n, (c.dim, c.most)) for n, c in self._arrays.columns.items())
        s = Setup(inner, random, self)
        if self._run_setup:
            self._run_setup(self, s)
        else:
            self.setup(s)
        if self._arrays:  # fields that the data have and setup did not declare
            for name in self._arrays.columns:
                if name not in self._sizes:
                    s._declare(name, None, None if self._arrays.columns[name].most else 0, False)
        if self._label_series:  # rows of the table by number, by which series of labels are found
            if "datum" in self._sizes:
                raise Error("Data with a series of labels have no field \"datum\": the label of that name numbers the data.")
            self._sizes["datum"] = inner._table_field("datum", "#", True, 0)
            self._labels.add("datum")

    def _pack(self, given, n):
        """Arrays by field in the order of declaration."""
        if not isinstance(given, dict):
            given = {next(iter(self._sizes)): given}
        for name in given:
            if name not in self._sizes:
                raise Error(f"There is no field {name!r}; the fields are {', '.join(map(repr, self._sizes))}.")
        out = []
        for name, size in self._sizes.items():
            x = given.get(name)
            if x is None:
                if name not in self._labels:
                    raise Error(f"The field {name!r} is missing.")
                out.append(np.full(n * size, np.nan, np.float32))
            elif name in self._series:
                dim, most = self._series[name]
                rows = x if n > 1 or (len(x) == 1 and hasattr(x[0], "__len__") and dim == 1) else [x]
                out.append(np.concatenate([pack_series(i, dim, most) for i in rows]))
            else:
                out.append(np.ascontiguousarray(x, np.float32).reshape(-1))
        return out

    def _label_rows(self, split, rows):
        """The series of labels of rows by number; None for every other field."""
        i = rows.reshape(-1).astype(int)
        out = []
        for name in self._sizes:
            train, test = self._label_series.get(name, (None, None))
            part = test if split == "test" and test is not None else train
            out.append(None if part is None else part[i])
        return out

    def _data(self, split, first, n, random):
        data = getattr(self, "data", None)
        if data is None:
            raise Error("The model has no data: give train(data=…), or define data(self, split, first, n, random).")
        return self._pack(data(split, first, n, random), n)

    def _read(self, text):
        return self._pack(self.read(text), 1)

    def _see(self, name, wide, high, grey):
        return self._pack(self.see(np.frombuffer(grey, np.uint8).reshape(high, wide)), 1)

    def _posterior(self, arrays):
        given = {n: (a.reshape(-1) if a is not None else None) for n, a in zip(self._sizes, arrays)}
        answer = self.posterior(**given)
        if answer is None:
            return float("nan"), []
        log_evidence, told = answer
        return float(log_evidence), [(r, str(t), float(p)) for r, d in told.items() for t, p in d.items()]

    def _metric(self, i, o):
        kind, f = self._marked("measure", "posterior", "guide")[i]
        return float(f(self, Evaluation(o, self) if kind[0] == "measure" else o))

    def _snapshot(self, i, o):
        self._marked("snapshot")[i][1](self, Evaluation(o, self))

    @classmethod
    def _marked(cls, *kinds):
        found = {}
        for c in reversed(cls.__mro__):
            for f in vars(c).values():
                mark = getattr(f, "_rws_mark", None)
                if mark and mark[0] in kinds:
                    found[mark[1]] = (mark, f)
        return list(found.values())

    def _program(self):
        self._told = {}  # of the fields, shared with the copies that setup runs on
        kinds = {"measure": 0, "posterior": 1, "guide": 2}
        has = [m for m in ("relaxed", "em", "read", "posterior", "see") if hasattr(self, m)]
        defaults = {k: str(v) if k in ("lr", "optimiser") else int(v) for k, v in self.defaults.items()}
        return _rws.Program(
            self, self.name or type(self).__name__, (type(self).__doc__ or "").strip().split("\n")[0],
            [_spec_of_setting(n, s) for n, s in self.settings.items()],
            [(mark[1], mark[2], kinds[mark[0]]) for mark, _ in self._marked(*kinds)],
            [(mark[1], mark[2]) for mark, _ in self._marked("snapshot")],
            defaults, has, self.ask_setting)
