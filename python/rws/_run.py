"""Training, runs and what can be asked of them."""

from __future__ import annotations

import builtins
import copy
import json
import os
import stat
import warnings
from html import escape
from typing import Any, Callable, Mapping, Optional, Sequence, Union

import numpy as np

from . import _code, _rws
from ._answer import Answers, AnswerTable, Asker, Calibration, Questions, Sample
from ._data import Arrays, Described
from ._figure import Figure, chart
from ._helpers import unknown
from ._life import join, live
from ._model import Model
from ._progress import CtrlC, bar, counter
from ._rws import Error
from ._store import PathLike, Stored, html_table, runs

__all__ = ["train", "open", "resume", "Trainer", "Run", "Measures", "Interrupted", "models", "methods", "optimisers"]

ModelLike = Union[Model, "type[Model]", PathLike]
Callback = Callable[["Trainer", "Measures"], Any]
Callbacks = Union[Callback, Sequence[Callback]]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during training, raised after the iteration and the checkpoint. `run` is the run as far as it got."""

    def __init__(self, text: str, run: Any = None) -> None:
        super().__init__(text)
        self.run = run


def models() -> dict[str, str]:
    """The models that are built in, by name, with a line of help each."""
    return _rws.tables()[0]


def methods() -> dict[str, str]:
    """The methods of training, by name."""
    return _rws.tables()[1]


def optimisers() -> dict[str, str]:
    """The optimisers, by name."""
    return _rws.tables()[2]


def _text_of(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return str(int(value))
    return str(value)


_OPTIONS = ("method", "particles", "batch", "iterations", "eval_every", "n_test", "eval_particles", "seed", "threads", "shards",
            "particle_shards", "scalar", "optimiser", "lr", "l2", "resample", "set", "max_operations", "max_paths", "max_nodes", "stack_bytes", "check")


def _config(given: Mapping[str, Any]) -> dict[str, Any]:
    for name in given:
        if name not in _OPTIONS and name not in ("model", "changed"):
            raise TypeError(unknown("option", name, _OPTIONS))
    c = {k: v for k, v in given.items() if v is not None}
    if not c.pop("check", True):
        c["no_check"] = 1
    for name in ("particles", "batch", "iterations", "eval_every", "n_test", "eval_particles", "shards", "particle_shards"):
        if isinstance(c.get(name), float) and c[name].is_integer():
            c[name] = int(c[name])  # 1e5
        if name in c and c[name] == 0:
            raise ValueError(f"{name} is at least 1; leave it out for the default.")
    if "lr" in c:
        c["lr"] = c["lr"] if isinstance(c["lr"], str) else \
            ",".join(f"{k}={v}" for k, v in c["lr"].items()) if isinstance(c["lr"], dict) else repr(float(c["lr"]))
    if "set" in c:
        c["set"] = [f"{k}={_text_of(v)}" for k, v in c["set"].items()]
    return c


def _files(data: Any, test: Any, config: dict[str, Any]) -> tuple[Any, Any]:
    """Data and test data that are paths become the settings "data" and "test_data" of the model, beside those of `config`."""
    for name, path in (("data", data), ("test_data", test)):
        if isinstance(path, (str, os.PathLike)):
            if name in (config.get("set") or {}):
                raise Error(f"The setting {name!r} is given twice.")
            config["set"] = {**(config.get("set") or {}), name: os.fspath(path)}
    return tuple(None if isinstance(d, (str, os.PathLike)) else d for d in (data, test))  # type: ignore[return-value]


def _prepared(model: Any, data: Any = None, test: Any = None,
              **options: Any) -> tuple[Optional[Model], Optional[_rws.Program], Optional[str]]:
    """(the instance or None, the program or None, the model's name or None) of what a user calls a model."""
    if isinstance(model, type) and issubclass(model, Model):
        model = model()
    if isinstance(model, (str, os.PathLike)):
        if data is not None or test is not None:
            raise Error("Arrays are for models in Python; a model in C reads files: data=\"PATH\".")
        return None, None, os.fspath(model)
    if not isinstance(model, Model):
        raise TypeError(f"A model is an instance of rws.Model, a name or the path of a shared object, not {type(model).__name__}.")
    if data is not None or test is not None:
        if data is None:
            raise Error("Test data need training data beside them.")
        model = copy.copy(model)
        model._arrays = Arrays(data, test, **options)
    return model, model._program(), None


class Measures(dict[str, float]):
    """The metrics of one evaluation, by name, with `iteration`, `seconds`, `log_evidence_error`, and `impossible`: the share of the
    test data that no particle explains, which log_evidence, kl and ess leave out."""

    def __init__(self, inner: tuple[int, float, dict[str, float], float, float]) -> None:
        self.iteration, self.seconds, values, self.log_evidence_error, self.impossible = inner
        super().__init__(values)


def _fixed(name: str) -> str:
    """Why an option cannot be set as an attribute."""
    if name == "lr":
        return ("The learning rate of a run is given to train or Trainer (lr=…), also as a schedule: lr=\"1e-3,5000:/3\". "
                "rws.resume(folder, lr=…) continues with another.")
    return f"{name} is given to train or Trainer ({name}=…); it cannot be set afterwards."


class Trainer(Questions):
    """A model in training. Most people call `train`; a trainer is for loops of one's own."""

    _inner: _rws.Trainer

    def __init__(self, model: ModelLike, data: Any = None, test: Any = None, *, out: Optional[PathLike] = None,
                 order: str = "shuffled", test_share: float = 0.0, test_last: bool = False, **config: Any) -> None:
        join()
        data, test = _files(data, test, config)
        self.model, program, name = _prepared(model, data, test, order=order, test_share=test_share, test_last=test_last)
        c = _config(dict(config, model=name))
        c.setdefault("seed", 1)  # as on the command line
        self.folder: Optional[str] = None if out is None else os.path.abspath(os.fspath(out))
        self._inner = _rws.Trainer(program, c, self.folder, False)
        if self.folder and self.model is not None and _rws.rank() == 0:
            _write_json(os.path.join(self.folder, _CODE), _code.fingerprint(self.model))
            if self.model._arrays:
                fields = [[name, dim, most] for name, (dim, most) in self.model._told.items()]
                _write_json(os.path.join(self.folder, _FIELDS), fields)
        self._remember(1)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _OPTIONS:
            raise AttributeError(_fixed(name))
        if type(self) is Trainer and not name.startswith("_") and name not in ("model", "folder", "evaluations"):
            raise AttributeError(f"A trainer has no attribute {name!r}; to set it would have no effect.")
        object.__setattr__(self, name, value)

    def _remember(self, depth: int) -> None:
        """`depth`: calls between this function and the user's line, which a warning names."""
        self.evaluations: list[Measures] = []
        self._n_loaded = 0  # how often load_state_dict was called
        self._warned = False  # of test data that no particle explains
        self._told: builtins.set[str] = builtins.set()  # of programs and training data
        live.add(self)
        if self._inner.warnings:
            warnings.warn(self._inner.warnings, stacklevel=depth + 2)

    @classmethod
    def _resumed(cls, folder: PathLike, model: Optional[ModelLike], data: Any, test: Any, config: dict[str, Any],
                 **options: Any) -> Trainer:
        join()
        if isinstance(data, (str, os.PathLike)) or isinstance(test, (str, os.PathLike)):
            raise Error("The folder of a run says where its files are: leave data and test out.")
        t = cls.__new__(cls)
        t.model, program, name = _prepared(model, data, test, **options) if model is not None else (None, None, None)
        t.folder = os.path.abspath(os.fspath(folder))
        _take_over(t.folder)
        t._inner = _rws.Trainer(program, _config(dict(config, model=name)), t.folder, True)
        if t.model is not None and _rws.rank() == 0:
            _compare_code(t.folder, t.model, bool(config.get("changed")), 4)
            if config.get("changed"):
                _write_json(os.path.join(t.folder, _CODE), _code.fingerprint(t.model))
        t._remember(2)
        return t

    @property
    def iteration(self) -> int:
        """How many iterations are done."""
        return self._inner.iteration

    @property
    def seconds(self) -> float:
        """Seconds of training so far."""
        return self._inner.seconds

    @property
    def config(self) -> dict[str, Any]:
        """The configuration, with all defaults filled in."""
        return self._inner.config

    def step(self) -> None:
        """One iteration."""
        self._inner.step()

    def evaluate(self) -> Measures:
        """Measures all metrics on the test data at the present parameters."""
        m = Measures(self._inner.evaluate())
        self._warn_impossible(m, 3)
        return m

    def _warn_impossible(self, m: Measures, depth: int) -> None:
        if m.impossible > 0 and not self._warned:
            self._warned = True
            warnings.warn(f"No particle explains {100 * m.impossible:.3g} % of the test data after iteration {m.iteration}: log_evidence, "
                          "kl and ess leave them out, and look better than they are.", stacklevel=depth)

    def _warn_more(self, depth: int) -> None:
        """Of programs that look wrong, and of training data that no particle explains, once each."""
        for what, text in (("doubt", self._inner.doubt), ("impossible", self._inner.impossible)):
            if text and what not in self._told:
                self._told.add(what)
                warnings.warn(text, stacklevel=depth)

    def check(self) -> Any:
        """Reviews the programs at the present parameters: `rws.check`."""
        from ._check import review
        return review(self)

    def save(self) -> None:
        """Writes the checkpoint."""
        self._inner.save()

    def gradient(self, draw: int = 0, test: bool = False) -> np.ndarray:
        """The gradient, uphill, that an iteration would step by, as one vector."""
        return self._inner.gradient(draw, test).reshape(-1)

    def state_dict(self, torch: bool = False) -> dict[str, Any]:
        """The parameters by name: arrays, or tensors with torch=True."""
        return _state_dict(self._inner.params(), torch)

    def load_state_dict(self, values: Mapping[str, Any]) -> None:
        """Writes parameters; names that are missing stay as they are. Nothing is written if a name or a shape is wrong."""
        has = {name: a.shape for name, _, a in self._inner.params()}
        arrays = {}
        for name, x in values.items():
            if name not in has:
                raise KeyError(unknown("parameter", name, has))
            a = arrays[name] = np.asarray(x.detach().cpu() if hasattr(x, "detach") else x, np.float32)
            if a.shape != has[name]:
                raise ValueError(f"The parameter {name!r} has the shape {has[name]}, not {a.shape}.")
            if not np.isfinite(a).all():
                raise ValueError(f"The numbers for {name!r} are not all finite.")
        self._n_loaded += 1
        for name, a in arrays.items():
            self._inner.set_param(name, np.ascontiguousarray(a))

    def _posterior(self) -> Asker:
        return Asker(_rws.Posterior(self._inner), self.model)

    def give(self, f: Optional[Callable[[int, int, dict[str, np.ndarray]], Optional[Mapping[Any, Any]]]]) -> None:
        """Gives choices to training, for memories of traces: ``f(iteration, datum, fields)`` is called for each datum of every batch
        and returns the choices that the guide takes instead of drawing them, {"z": 1, ("z", 2): 0}, or None. They take the place of
        labels. give(None) ends it. An exception of f is raised at once: the iteration does not count, and
        parameters and checkpoint stay as they were before it."""
        declared = self._inner.fields

        def giver(iteration: int, datum: int, arrays: list[np.ndarray]) -> list[tuple[str, int, np.ndarray]]:
            fields = {}
            for (name, _, _, item, most, _), x in zip(declared, arrays):
                x = x.reshape(-1)
                n = int(np.nan_to_num(x[0])) if most else 0
                fields[name] = x[1:1 + n * item].reshape(n, item) if most else x
            return self.listed(f(iteration, datum, fields) if f else None)

        self._inner.give(None if f is None else giver)

    def stop(self) -> None:
        """Ends `train` after the present iteration; for callbacks and other threads."""
        self._inner.stop()

    def train(self, *, progress: Optional[bool] = None, callbacks: Callbacks = (), save_every: float = 5.0) -> bool:
        """Steps until all iterations are done, with evaluations and checkpoints. Returns whether they are; False: stopped."""
        shown = bar(progress, self)
        callbacks = [callbacks] if callable(callbacks) else list(callbacks)

        def evaluated(measures: Any, final: bool) -> None:
            m = Measures(measures)
            if final and self.evaluations and self.evaluations[-1].iteration == m.iteration:
                return  # the last evaluation, which was told already
            self.evaluations.append(m)
            self._warn_impossible(m, 4)
            self._warn_more(4)
            if shown:
                shown.evaluated(m)
            for f in callbacks:
                if f(self, m) is False:
                    self.stop()

        with CtrlC(self) as control:
            try:
                done = self._inner.train(None, shown.progress if shown else None, evaluated, save_every)
            finally:
                if shown:
                    shown.close(self.iteration)
        if control.caught:
            where = f"; the checkpoint is in {self.folder}" if self.folder else ""
            raise Interrupted(f"Stopped after iteration {self.iteration}{where}.", Run(self))
        self._warn_more(4)
        site = self._inner.unvisited
        if site and _rws.rank() == 0:
            warnings.warn(f"No particle has visited site {site!r}, which is given choices or a gradient; is its name right?",
                          stacklevel=3)
        site = self._inner.unguided if done else None
        if site:
            warnings.warn(f"The automatic guide has no network of its own for site {site!r}: no draw from the prior came to it before "
                          "training. All such sites share one.", stacklevel=3)
        name = self._inner.unlearned if done else None
        if name:
            warnings.warn(f"The parameter {name!r} has had no gradient and has not learned: does a program use it? Parameters of the "
                          "guide belong to the group phi, and have names like 'phi.net'.", stacklevel=3)
        return done

    def close(self) -> None:
        """Gives back memory and threads; a run's folder is free for others."""
        self._inner.close()

    def __enter__(self) -> Trainer:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()


def train(model: ModelLike, data: Any = None, test: Any = None, *, method: Optional[str] = None, particles: Optional[int] = None,
          batch: Optional[int] = None, iterations: Optional[int] = None, eval_every: Optional[int] = None,
          n_test: Optional[int] = None, eval_particles: Optional[int] = None, seed: Optional[int] = None,
          threads: Optional[int] = None, shards: Optional[int] = None, particle_shards: Optional[int] = None,
          scalar: Optional[bool] = None, optimiser: Optional[str] = None,
          lr: Union[float, str, Mapping[str, float], None] = None, l2: Optional[float] = None,
          resample: Optional[float] = None, set: Optional[Mapping[str, Any]] = None, out: Optional[PathLike] = None, order: str = "shuffled",
          test_share: float = 0.0, test_last: bool = False, progress: Optional[bool] = None, callbacks: Callbacks = (),
          save_every: float = 5.0, max_operations: Optional[int] = None, max_paths: Optional[int] = None,
          max_nodes: Optional[int] = None, stack_bytes: Optional[int] = None, check: Optional[bool] = None) -> Run:
    """Trains a model and returns the `Run`.

    model: an instance of `Model` (or the class), the name of a model that is built in, or the path of a shared object.
    data, test: arrays with a row for each datum, by field. Sequences of different length are a series; where all happen to have the
        same length, s.series(name) in setup makes them one. A path is the setting "data", or "test_data", of a model that reads
        files. Without test data a share of the rows is held out (test_share, a tenth by default; test_last: the last rows).
    order: of the training data: "shuffled", "in order" or "drawn".
    method: "ww", "ws", "wws", "dww", "vimco", "reinforce", …; `methods()` lists them.
    particles, batch, iterations, seed, threads, lr, …: as `rws train --help` says; by default the model's or the library's.
        The seed is 1, as on the command line, unless it is given.
        lr may be a number, a schedule as text, or a number for each group: {"theta": 1e-3, "phi": 1e-4}.
    resample: resample particles at the steps of a loop that guide and model share, where their effective number is at most this share.
    set: settings of the model and the method, by name.
    out: the folder of the run, with checkpoints and metrics. Without it the run is kept in memory only.
    check: whether the programs of a model that is not built in are looked at before the first iteration, for at most 0.2 seconds: the
        cheapest part of `rws.check`. What it finds is an error.
    progress: a bar, on a terminal and in a notebook by default.
    callbacks: functions f(trainer, measures), called after each evaluation; one that returns False stops training.

    Ctrl-C ends training after the present iteration with a checkpoint, and raises `Interrupted`, whose `run` can be used.
    """
    given = dict(method=method, particles=particles, batch=batch, iterations=iterations, eval_every=eval_every, n_test=n_test,
                 eval_particles=eval_particles, seed=seed, threads=threads, shards=shards, scalar=scalar, optimiser=optimiser,
                 lr=lr, l2=l2, resample=resample, set=set, max_operations=max_operations, max_paths=max_paths, max_nodes=max_nodes,
                 stack_bytes=stack_bytes, particle_shards=particle_shards, check=check)
    t = Trainer(model, data, test, out=out, order=order, test_share=test_share, test_last=test_last, **given)
    t.train(progress=progress, callbacks=callbacks, save_every=save_every)
    return Run(t)


def resume(folder: PathLike, model: Optional[ModelLike] = None, data: Any = None, test: Any = None, *,
           iterations: Optional[int] = None, lr: Union[float, str, Mapping[str, float], None] = None,
           threads: Optional[int] = None, progress: Optional[bool] = None, callbacks: Callbacks = (), save_every: float = 5.0,
           order: str = "shuffled", test_share: float = 0.0, test_last: bool = False, changed: bool = False) -> Run:
    """Resumes the run in a folder, from its checkpoint. A model in Python must be given again, with its data, and so must the
    path of a shared object. changed=True accepts a shared object, or the code of a model in Python, that has changed since the run
    began; without it a changed object is an error, and changed code a warning that names the functions.

    A run of this process that still has the folder, such as one that Ctrl-C has interrupted, is closed first."""
    t = Trainer._resumed(folder, model, data, test, dict(iterations=iterations, lr=lr, threads=threads, changed=changed), order=order,
                         test_share=test_share, test_last=test_last)
    t.train(progress=progress, callbacks=callbacks, save_every=save_every)
    return Run(t)


def _take_over(folder: str) -> None:
    """Closes what this process has trained in the folder, unless it is being trained at the moment."""
    for other in list(live):
        if isinstance(other, Trainer) and other.folder is not None and os.path.realpath(other.folder) == os.path.realpath(folder):
            try:
                other.close()
            except RuntimeError:
                pass  # it is in use: the folder is locked, which the library says


_FIELDS = "fields.json"  # in a run's folder: the shape of arrays that a model in Python was trained on
_MAX_FIELDS = 1 << 20  # bytes of it


def _write_json(path: str, what: Any) -> None:
    """Writes a small file of a run's folder as a new one: a link or pipe that is there is not followed, but replaced."""
    try:
        if os.path.lexists(path):
            os.unlink(path)
        with builtins.open(path, "x") as f:
            json.dump(what, f, indent=1)
    except IsADirectoryError:
        raise Error(f"{path} is a folder, but a run keeps a file there: remove it.") from None


_CODE = "code.json"  # in a run's folder: the fingerprint of the code of a model in Python


def _read_json(path: str) -> Any:
    """What a small file of a run's folder holds, or None. The folder may come from elsewhere: nothing is waited for, and little is read."""
    with builtins.open(path, "rb", opener=lambda p, flags: os.open(p, flags | os.O_NONBLOCK)) as f:
        regular = stat.S_ISREG(os.fstat(f.fileno()).st_mode)
        text = f.read(_MAX_FIELDS) if regular else b""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _compare_code(folder: str, model: Model, accepted: bool, depth: int) -> None:
    """Warns if the code of the model is not the one that the run began with. Code of another version of Python is not compared."""
    path = os.path.join(folder, _CODE)
    what = [] if accepted or not os.path.exists(path) else _code.differences(_read_json(path), _code.fingerprint(model))
    if what:
        warnings.warn(f"The code of the model has changed since the run in {folder} began: {'; '.join(what)}. The parameters were learned "
                      "with the other code, so that answers may be wrong; changed=True accepts it.", stacklevel=depth)


def _is_field(name: Any, dim: Any, most: Any) -> bool:
    return type(name) is str and type(dim) is int and type(most) is int and 0 < dim < 1 << 31 and 0 <= most < 1 << 31


def _read_fields(path: str) -> list[tuple[str, int, int]]:
    """The shape of arrays, as it was written."""
    try:
        fields = [(name, dim, most) for name, dim, most in _read_json(path)]
    except (ValueError, TypeError):
        fields = []
    if not fields or not all(_is_field(*f) for f in fields):
        raise Error(f"{path!r} does not have the fields of a run: remove it, and open the run with its data.")
    return fields


def _described(folder: PathLike, model: Any) -> Any:
    """The model, with the fields that the folder describes if the data are not given."""
    path = os.path.join(os.fspath(folder), _FIELDS)
    if isinstance(model, type) and issubclass(model, Model):
        model = model()
    if not isinstance(model, Model) or model._arrays or not os.path.exists(path):
        return model
    model = copy.copy(model)
    model._arrays = Described(_read_fields(path))
    return model


def open(folder: PathLike, model: Optional[ModelLike] = None, data: Any = None, test: Any = None, *,
         set: Optional[Mapping[str, Any]] = None, changed: bool = False, **options: Any) -> Run:
    """Opens the run in a folder for asking. A model in Python must be given again, its data only for questions about test data; so
    must the path of a shared object. changed=True accepts an object, or the code of a model in Python, that has changed since the run
    began; without it a changed object is an error, and changed code a warning that names the functions.

    The folder is only read, and may belong to a run that is still training."""
    config: dict[str, Any] = {"set": set, "changed": changed}
    data, test = _files(data, test, config)
    if data is None:
        model = _described(folder, model)
    instance, program, name = _prepared(model, data, test, **options) if model is not None else (None, None, None)
    folder = os.path.abspath(os.fspath(folder))
    if instance is not None:
        _compare_code(folder, instance, changed, 3)
    return Run(folder=folder, asker=Asker(_rws.Posterior(folder, _config(dict(config, model=name)), program), instance))


def _state_dict(params: Sequence[tuple[str, str, np.ndarray]], torch: bool) -> dict[str, Any]:
    if torch:
        import torch as t
        return {n: t.from_numpy(a.copy()) for n, _, a in params}
    return {n: a for n, _, a in params}


class Run:
    """A trained model: what `train` and `open` return."""

    def __init__(self, trainer: Optional[Trainer] = None, folder: Optional[str] = None, asker: Optional[Asker] = None) -> None:
        self.trainer, self._asker = trainer, asker
        self.folder = folder or (trainer.folder if trainer else None)
        self._asked_at: Optional[tuple[int, int]] = None  # which parameters the posterior has

    def _posterior(self) -> Asker:
        if self.trainer is not None:
            now = self.trainer.iteration, self.trainer._n_loaded
            if self._asked_at != now:
                self._asker, self._asked_at = self.trainer._posterior(), now
        assert self._asker is not None  # a run has a trainer or what it was opened as
        return self._asker

    @property
    def config(self) -> dict[str, Any]:
        """The configuration, with all defaults."""
        return self.trainer.config if self.trainer else self._posterior()._inner.config

    @property
    def iteration(self) -> int:
        """How many iterations are done."""
        return self.trainer.iteration if self.trainer else self._posterior()._inner.iteration

    def infer(self, *question: Any, test: Optional[int] = None, particles: int = 1000, seed: int = 1, listed: bool = True,
              given: Optional[Mapping[Any, Any]] = None, **fields: Any) -> Answers:
        """What is behind a datum: `Answers`. The datum is a text, a picture, fields by name, or number `test` of the test data.

        listed=False leaves out the particles with their choices, which saves time where there are many. given={"z": 1,
        ("z", 2): 0} has choices that are known, at visit 0 and visit 2 of a site; a list has the first visits. Answers are then
        of the posterior given the datum and these choices, and log_evidence is log p(x, given)."""
        return self._posterior().infer(*question, test=test, particles=particles, seed=seed, listed=listed, given=given,
                                       **fields)

    def ask_many(self, data: Any = None, *, test: Optional[Sequence[int]] = None, particles: int = 1000, seed: int = 1, threads: int = 0,
                 listed: bool = True, given: Optional[Mapping[Any, Any]] = None, most_dim: int = 16,
                 progress: Optional[bool] = None) -> AnswerTable:
        """Answers to many data at once: an `AnswerTable`, which is a dict of columns. Small models are asked many times as fast as by
        `infer` in a loop.

        data: arrays by field with a row for each datum (a dict, a frame of pandas, or one array for the first field), a list of texts,
        or pictures as an array of uint8, n x high x wide; or test=range(100) for test data. threads=0 takes all processors and changes
        no number. listed=False leaves out the columns of choices, most_dim the choices of more numbers. A datum that cannot be
        answered has its message in the column "error"."""
        shown = counter(progress, "ask_many")
        table = self._posterior().ask_many(data, test, particles, seed, listed, given, threads, most_dim, shown)
        if shown is not None:
            shown.close()
        return table

    def calibrate(self, simulations: int = 1000, *, particles: int = 1000, seed: int = 1, threads: int = 0,
                  progress: Optional[bool] = None) -> Calibration:
        """Tests by simulation whether the guide gives the posterior of its model: the model makes choices and a datum, and each choice
        has a rank among the particles for this datum, uniform if these come from the posterior (Talts et al., 2018)."""
        shown = counter(progress, "calibrate")
        result = self._posterior().calibrate(simulations, particles, seed, threads, shown)
        if shown is not None:
            shown.close()
        return result

    def score(self, choices: Mapping[Any, Any], *question: Any, test: Optional[int] = None, **fields: Any) -> tuple[float, float]:
        """(log p(z, x), log q(z | x)) of given choices by site. A list has the values of several visits; the numbers of one visit to
        a site of several are a tuple or an array."""
        return self._posterior().score(choices, *question, test=test, **fields)

    def sample(self, n: int = 1, seed: int = 1, test: Optional[int] = None, **inputs: Any) -> list[Sample]:
        """Samples of the model, a list of `Sample`. A model with inputs (`Setup.input`) is sampled at those that are given by name, or
        at those of test datum number `test`; by default each sample has the inputs of a test datum that is drawn at random."""
        return self._posterior().sample(n, seed, test, **inputs)

    def evaluate(self) -> Measures:
        """The metrics at the present parameters, for a run that was just trained; else the last that were measured."""
        if self.trainer:
            return self.trainer.evaluate()
        last = Measures((self.iteration, float("nan"), {}, float("nan"), float("nan")))
        for name, (_, seconds, values) in self._stored().histories.items():
            last[name], last.seconds = values[-1], seconds[-1]
        return last

    def state_dict(self, torch: bool = False) -> dict[str, Any]:
        """The parameters by name, as PyTorch names them: arrays, or tensors with torch=True."""
        if self.trainer:
            return self.trainer.state_dict(torch)
        return _state_dict(self._posterior()._inner.params, torch)

    def _stored(self) -> Stored:
        return runs(self._in_folder())[0]

    def _in_folder(self) -> str:
        if self.folder is None:
            raise Error("The run has no folder: train with out=….")
        return self.folder

    @property
    def history(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Each metric over the iterations: {metric: (iterations, values)}, arrays."""
        if self.folder:
            return {k: (i, v) for k, (i, _, v) in self._stored().histories.items()}
        e = self.trainer.evaluations if self.trainer else []
        names = sorted(e[0]) if e else []
        return {n: (np.array([m.iteration for m in e], float), np.array([m[n] for m in e])) for n in names}

    @property
    def metrics(self) -> Any:
        """The metrics as a frame of pandas, a row for each evaluation."""
        import pandas as pd
        return pd.DataFrame({k: pd.Series(v, index=np.asarray(i, int)) for k, (i, v) in self.history.items()}
                            ).rename_axis("iteration")

    def plot(self, *metrics: str, **options: Any) -> Figure:
        """A chart of metrics over the iterations, which shows itself in a notebook: `chart`."""
        return chart(self, *metrics, **options)

    def snapshots(self) -> dict[str, list[tuple[int, np.ndarray, list[Optional[str]]]]]:
        """The snapshots of a run that has a folder: {name: [(iteration, values, labels), …]}."""
        return self._stored().snapshots if self.folder else {}

    def close(self) -> None:
        """Gives back memory and threads; the folder is free for others."""
        if self._asker is not None:
            self._asker.close()
        if self.trainer is not None:
            self.trainer.close()

    def __reduce__(self) -> Any:
        raise TypeError("A run cannot be pickled; train with out=…, and open the folder again: rws.open(folder, model).")

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        try:
            c, last = self.config, {m: v[-1] for m, (_, v) in self.history.items() if len(v)}
        except Error:  # closed
            return f"<p>{escape(repr(self))}</p>"
        about = {k: c[k] for k in ("model", "method", "particles", "seed")}
        where = {"folder": self.folder} if self.folder else {}
        return html_table([[*about, "iteration", *last, *where],
                           [*about.values(), f"{self.iteration} of {c['iterations']}", *(f"{v:.4g}" for v in last.values()),
                            *where.values()]])

    def __repr__(self) -> str:
        try:
            c = self.config
        except Error:
            return "<rws.Run, closed" + (f", in {self.folder}" if self.folder else "") + ">"
        return (f"<rws.Run of {c['model']}, method {c['method']}, {c['particles']} particles, iteration {self.iteration} of "
                f"{c['iterations']}" + (f", in {self.folder}" if self.folder else "") + ">")


