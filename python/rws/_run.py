"""Training, runs and what can be asked of them."""

import atexit
import copy
import json
import os
import signal
import sys
import threading
import time
import warnings
import weakref

import numpy as np

from . import _rws
from ._model import Arrays, Described, Model, pack_series
from ._rws import Error

__all__ = ["train", "open", "resume", "runs", "Trainer", "Run", "Answers", "Answer", "Sample", "Measures", "Interrupted",
           "Stored", "Stores", "models", "methods", "optimisers"]

_live = weakref.WeakSet()


@atexit.register
def _close_all():
    """Threads of the library end before the interpreter does."""
    for o in list(_live):
        try:
            o.close()
        except Exception:
            pass
    if _rws.n_ranks() > 1:
        _leave()


def _leave():
    """Ends the ranks in order. A rank that ends by an exception must not wait for the others, which may be in the middle of an
    iteration: it leaves at once, and they are told that it is gone."""
    if _rws._rank_lost() < 0 and getattr(sys, "last_value", None) is None:
        _rws._ranks_close()
        return
    sys.stdout.flush()
    sys.stderr.flush()
    time.sleep(0.5)  # launchers drop what was printed when they see ranks end
    os._exit(1)


def _join():
    """Joins the processes that mpirun or srun has started, so that they train one run together."""
    if os.environ.get("RWS_PYTHON_ALONE", "0") in ("", "0"):
        _rws._ranks_open()


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during training, raised after the iteration and the checkpoint. `run` is the run as far as it got."""

    def __init__(self, text, run=None):
        super().__init__(text)
        self.run = run


def models():
    """The models that are built in, by name, with a line of help each."""
    return _rws.tables()[0]


def methods():
    """The methods of training, by name."""
    return _rws.tables()[1]


def optimisers():
    """The optimisers, by name."""
    return _rws.tables()[2]


def _text_of(value):
    if isinstance(value, bool):
        return str(int(value))
    return str(value)


def _config(given):
    c = {k: v for k, v in given.items() if v is not None}
    if "lr" in c:
        c["lr"] = c["lr"] if isinstance(c["lr"], str) else \
            ",".join(f"{k}={v}" for k, v in c["lr"].items()) if isinstance(c["lr"], dict) else repr(float(c["lr"]))
    if "set" in c:
        c["set"] = [f"{k}={_text_of(v)}" for k, v in c["set"].items()]
    return c


def _prepared(model, data=None, test=None, **options):
    """(the instance or None, the program or None, the model's name or None) of what a user calls a model."""
    if isinstance(model, type) and issubclass(model, Model):
        model = model()
    if isinstance(model, (str, os.PathLike)):
        if data is not None or test is not None:
            raise Error("Arrays are for models in Python; a model in C has a setting \"data\".")
        return None, None, os.fspath(model)
    if not isinstance(model, Model):
        raise TypeError(f"A model is an instance of rws.Model, a name or the path of a shared object, not {type(model).__name__}.")
    if data is not None or test is not None:
        if data is None:
            raise Error("Test data need training data beside them.")
        model = copy.copy(model)
        model._arrays = Arrays(data, test, **options)
    return model, model._program(), None


class Measures(dict):
    """The metrics of one evaluation, by name, with `iteration`, `seconds` and `log_evidence_error`."""

    def __init__(self, inner):
        self.iteration, self.seconds, values, self.log_evidence_error = inner
        super().__init__(values)


class Trainer:
    """A model in training. Most people call `train`; a trainer is for loops of one's own."""

    def __init__(self, model, data=None, test=None, *, out=None, order="shuffled", test_share=0.0, test_last=False, **config):
        _join()
        self.model, program, name = _prepared(model, data, test, order=order, test_share=test_share, test_last=test_last)
        c = _config(dict(config, model=name))
        self.folder = None if out is None else os.path.abspath(os.fspath(out))
        self._inner = _rws.Trainer(program, c, self.folder, False)
        if self.folder and self.model is not None and self.model._arrays and _rws.rank() == 0:
            _describe(self.folder, self.model._told)
        self._remember()

    def _remember(self):
        self.evaluations = []
        _live.add(self)

    @classmethod
    def _resumed(cls, folder, model, data, test, config, **options):
        _join()
        t = cls.__new__(cls)
        t.model, program, name = _prepared(model, data, test, **options) if model is not None else (None, None, None)
        t.folder = os.path.abspath(os.fspath(folder))
        t._inner = _rws.Trainer(program, _config(dict(config, model=name)), t.folder, True)
        t._remember()
        return t

    @property
    def iteration(self):
        """How many iterations are done."""
        return self._inner.iteration

    @property
    def seconds(self):
        """Seconds of training so far."""
        return self._inner.seconds

    @property
    def config(self):
        """The configuration, with all defaults filled in."""
        return self._inner.config

    def step(self):
        """One iteration."""
        self._inner.step()

    def evaluate(self):
        """Measures all metrics on the test data at the present parameters."""
        return Measures(self._inner.evaluate())

    def save(self):
        """Writes the checkpoint."""
        self._inner.save()

    def gradient(self, draw=0, test=False):
        """The gradient, uphill, that an iteration would step by, as one vector."""
        return self._inner.gradient(draw, test).reshape(-1)

    def state_dict(self, torch=None):
        """The parameters by name: arrays, or tensors with torch=True."""
        return _state_dict(self._inner.params(), torch)

    def load_state_dict(self, values):
        """Writes parameters; names that are missing stay as they are."""
        for name, x in values.items():
            self._inner.set_param(name, x)

    def infer(self, *question, **fields):
        """As `Run.infer`, at the present parameters."""
        return self._posterior().infer(*question, **fields)

    def _posterior(self):
        return _Asker(_rws.Posterior(self._inner), self.model)

    def give(self, f):
        """Gives choices to training, for memories of traces: ``f(iteration, datum, fields)`` is called for each datum of every batch
        and returns the choices that the guide takes instead of drawing them, {"z": 1, ("z", 2): 0}, or None. They take the place of
        labels. give(None) ends it. An exception of f is raised after the iteration, which counts."""
        asker = self._posterior()
        declared = asker._inner.fields
        asker.close()

        def giver(iteration, datum, arrays):
            fields = {}
            for (name, _, _, item, most), x in zip(declared, arrays):
                x = x.reshape(-1)
                n = int(np.nan_to_num(x[0])) if most else 0
                fields[name] = x[1:1 + n * item].reshape(n, item) if most else x
            return _Asker._listed(f(iteration, datum, fields))

        self._inner.give(None if f is None else giver, [dim for _, dim, _, _, _ in declared])

    def stop(self):
        """Ends `train` after the present iteration; for callbacks and other threads."""
        self._inner.stop()

    def train(self, *, progress=None, callbacks=(), save_every=5.0):
        """Steps until all iterations are done, with evaluations and checkpoints. Returns whether they are; False: stopped."""
        bar = _bar(progress, self)
        callbacks = [callbacks] if callable(callbacks) else list(callbacks)

        def evaluated(measures, final):
            m = Measures(measures)
            if not self.evaluations or self.evaluations[-1].iteration != m.iteration:
                self.evaluations.append(m)
            if bar:
                bar.evaluated(m)
            for f in callbacks:
                if f(self, m) is False:
                    self.stop()

        with _CtrlC(self) as control:
            try:
                done = self._inner.train(None, bar.progress if bar else None, evaluated, save_every)
            finally:
                if bar:
                    bar.close()
        if control.caught:
            where = f"; the checkpoint is in {self.folder}" if self.folder else ""
            raise Interrupted(f"Stopped after iteration {self.iteration}{where}.", Run(self))
        site = self._inner.unvisited
        if site and _rws.rank() == 0:
            warnings.warn(f"No particle has come by site {site!r}, which is given choices or a gradient; is its name right?",
                          stacklevel=3)
        return done

    def close(self):
        """Gives back memory and threads; a run's folder is free for others."""
        self._inner.close()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()


class _CtrlC:
    """Ctrl-C asks for an end after the iteration; a second one raises KeyboardInterrupt in the program."""

    def __init__(self, trainer):
        self.trainer, self.caught, self.before = trainer, False, None

    def __enter__(self):
        if threading.current_thread() is threading.main_thread() and \
                signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self.before = signal.signal(signal.SIGINT, self._on)
        return self

    def _on(self, number, frame):
        if self.caught:
            signal.default_int_handler(number, frame)
        self.caught = True
        self.trainer.stop()

    def __exit__(self, *unused):
        if self.before is not None:
            signal.signal(signal.SIGINT, self.before)


# ---- progress


def _in_notebook():
    try:
        return get_ipython().__class__.__name__ == "ZMQInteractiveShell"  # noqa: F821
    except NameError:
        return False


def _bar(wanted, trainer):
    if wanted is False or _rws.rank() > 0:
        return None
    if _in_notebook():
        return _NotebookBar(trainer)
    if wanted or sys.stderr.isatty():
        return _TerminalBar(trainer)
    return None


class _Bar:
    def __init__(self, trainer):
        self.n, self.first = trainer.config["iterations"], trainer.iteration
        self.start, self.text, self.shown = time.monotonic(), "", 0.0

    def line(self, iteration):
        spent = time.monotonic() - self.start
        speed = (iteration - self.first) / spent if spent > 0 else 0
        left = (self.n - iteration) / speed if speed > 0 else 0
        return f"{iteration}/{self.n}  {speed:.0f} it/s  {_duration(left)} left  {self.text}"

    def evaluated(self, m):
        self.text = "  ".join(f"{k} {v:.4g}" for k, v in m.items() if v == v)
        self.progress(m.iteration, m.seconds, True)


def _duration(s):
    s = int(s)
    return f"{s // 3600}:{s // 60 % 60:02d}:{s % 60:02d}" if s >= 3600 else f"{s // 60}:{s % 60:02d}"


class _TerminalBar(_Bar):
    def progress(self, iteration, seconds, now=False):
        t = time.monotonic()
        if not now and t - self.shown < 0.2:
            return
        self.shown = t
        try:
            width = os.get_terminal_size(sys.stderr.fileno()).columns
        except OSError:
            width = 100
        full = int(20 * iteration / max(1, self.n))
        text = f"[{'#' * full}{'.' * (20 - full)}] {self.line(iteration)}"
        sys.stderr.write("\r" + text[:width - 1].ljust(width - 1))
        sys.stderr.flush()

    def close(self):
        sys.stderr.write("\n")
        sys.stderr.flush()


class _NotebookBar(_Bar):
    def __init__(self, trainer):
        super().__init__(trainer)
        from IPython.display import display
        self.handle = display(self._html(trainer.iteration), display_id=True)

    def _html(self, iteration):
        from html import escape

        from IPython.display import HTML
        return HTML(f'<progress value="{iteration}" max="{max(1, self.n)}" style="width:20em"></progress> '
                    f"<code>{escape(self.line(iteration))}</code>")

    def progress(self, iteration, seconds, now=False):
        t = time.monotonic()
        if not now and t - self.shown < 0.5:
            return
        self.shown = t
        self.handle.update(self._html(iteration))

    def close(self):
        pass


def train(model, data=None, test=None, *, method=None, particles=None, batch=None, iterations=None, eval_every=None,
          n_test=None, eval_particles=None, seed=None, threads=None, shards=None, particle_shards=None, scalar=None,
          optimiser=None, lr=None, l2=None, set=None, out=None, order="shuffled", test_share=0.0, test_last=False,
          progress=None, callbacks=(), save_every=5.0, max_operations=None, max_paths=None, max_nodes=None, stack_bytes=None):
    """Trains a model and returns the `Run`.

    model: an instance of `Model` (or the class), the name of a model that is built in, or the path of a shared object.
    data, test: arrays with a row for each datum, by field; a list of sequences of different length is a series. Without
        test data a share of the rows is held out (test_share, a tenth by default; test_last takes the last rows).
    order: of the training data: "shuffled", "in order" or "drawn".
    method: "ww", "ws", "wws", "dww", "vimco", "reinforce", …; `methods()` lists them.
    particles, batch, iterations, seed, threads, lr, …: as `rws train --help` says; by default the model's or the library's.
        lr may be a number, a schedule as text, or a number for each group: {"theta": 1e-3, "phi": 1e-4}.
    set: settings of the model and the method, by name.
    out: the folder of the run, with checkpoints and metrics. Without it the run is kept in memory only.
    progress: a bar, on a terminal and in a notebook by default.
    callbacks: functions f(trainer, measures), called after each evaluation; one that returns False stops training.

    Ctrl-C ends training after the present iteration with a checkpoint, and raises `Interrupted`, whose `run` can be used.
    """
    given = dict(method=method, particles=particles, batch=batch, iterations=iterations, eval_every=eval_every, n_test=n_test,
                 eval_particles=eval_particles, seed=seed, threads=threads, shards=shards, scalar=scalar, optimiser=optimiser,
                 lr=lr, l2=l2, set=set, max_operations=max_operations, max_paths=max_paths, max_nodes=max_nodes,
                 stack_bytes=stack_bytes, particle_shards=particle_shards)
    t = Trainer(model, data, test, out=out, order=order, test_share=test_share, test_last=test_last, **given)
    t.train(progress=progress, callbacks=callbacks, save_every=save_every)
    return Run(t)


def resume(folder, model=None, data=None, test=None, *, iterations=None, lr=None, threads=None, progress=None, callbacks=(),
           save_every=5.0, order="shuffled", test_share=0.0, test_last=False):
    """Goes on with the run in a folder, from its checkpoint. A model in Python must be given again, with its data."""
    t = Trainer._resumed(folder, model, data, test, dict(iterations=iterations, lr=lr, threads=threads), order=order,
                         test_share=test_share, test_last=test_last)
    t.train(progress=progress, callbacks=callbacks, save_every=save_every)
    return Run(t)


_FIELDS = "fields.json"  # in a run's folder: the shape of arrays that a model in Python was trained on


def _describe(folder, told):
    import builtins
    with builtins.open(os.path.join(folder, _FIELDS), "w") as f:
        json.dump([[name, dim, most] for name, (dim, most) in told.items()], f)


def _described(folder, model):
    """The model, with the fields that the folder describes if the data are not given."""
    path = os.path.join(os.fspath(folder), _FIELDS)
    if isinstance(model, type) and issubclass(model, Model):
        model = model()
    if not isinstance(model, Model) or model._arrays or not os.path.exists(path):
        return model
    import builtins
    with builtins.open(path) as f:
        model = copy.copy(model)
        model._arrays = Described(json.load(f))
    return model


def open(folder, model=None, data=None, test=None, *, set=None, **options):
    """Opens the run in a folder for asking. A model in Python must be given again, its data only for questions about test data.

    The folder is only read, and may belong to a run that is still training."""
    if data is None:
        model = _described(folder, model)
    instance, program, name = _prepared(model, data, test, **options) if model is not None else (None, None, None)
    folder = os.path.abspath(os.fspath(folder))
    return Run(folder=folder, asker=_Asker(_rws.Posterior(folder, _config(dict(model=name, set=set)), program), instance))


def _state_dict(params, torch):
    if torch:
        import torch as t
        return {n: t.from_numpy(a.copy()) for n, _, a in params}
    return {n: a for n, _, a in params}


# ---- asking


class _Asker:
    def __init__(self, inner, model):
        self._inner, self.model = inner, model
        _live.add(self)

    def close(self):
        self._inner.close()

    def _fields(self, given):
        fields = self._inner.fields
        known = {f[0] for f in fields}
        for name in given:
            if name not in known:
                raise Error(f"There is no field {name!r}; the fields are {', '.join(repr(f[0]) for f in fields)}.")
        out = []
        for name, dim, label, item, most in fields:
            x = given.get(name)
            if x is None:
                if not label:
                    raise Error(f"The field {name!r} is missing.")
                out.append(None)
            elif most:
                out.append(pack_series(x, item, most))
            else:
                a = np.asarray(x, np.float32).reshape(-1)
                if a.size != dim:
                    raise Error(f"The field {name!r} has {dim} numbers, not {a.size}.")
                out.append(a)
        return out

    @staticmethod
    def _listed(choices):
        """(site, visit, numbers) of choices by site or by (site, visit); a list has the values of several visits."""
        out = []
        for key, value in (choices or {}).items():
            site, first = key if isinstance(key, tuple) else (key, 0)
            for visit, v in enumerate(value if isinstance(value, list) else [value], int(first)):
                out.append((site, visit, np.asarray(v, np.float32).reshape(-1)))
        return out

    def _question(self, question, fields, test, particles, seed, listed, given=None):
        text = picture = arrays = None
        if len(question) > 1:
            raise TypeError("A question is one text, one picture, or fields by name.")
        if fields:
            arrays = self._fields(fields)
        elif question and isinstance(question[0], str):
            text = question[0]
        elif question and isinstance(question[0], dict):
            arrays = self._fields(question[0])
        elif question:
            p = np.asarray(question[0])
            if p.dtype == np.uint8 and p.ndim == 2:
                p = np.ascontiguousarray(p)
                picture = ("the picture", p.shape[1], p.shape[0], p)
            else:
                arrays = self._fields({self._inner.fields[0][0]: p})
        elif test is None:
            raise TypeError("Ask about something: a text, a picture, fields by name, or test=NUMBER.")
        return arrays, text, picture, int(test or 0), int(particles), int(seed), bool(listed), self._listed(given)

    def infer(self, *question, test=None, particles=1000, seed=1, listed=True, given=None, **fields):
        return Answers(self._inner.ask(*self._question(question, fields, test, particles, seed, listed, given)))

    def score(self, choices, *question, test=None, **fields):
        return self._inner.score(self._question(question, fields, test, 1, 1, False), self._listed(choices))

    def sample(self, n=1, seed=1):
        return [Sample(s, self._inner.fields) for s in self._inner.sample(int(n), int(seed))]


def _merged(pairs):
    """Reports by name; those of one name become a list."""
    out, counts = {}, {}
    for name, x in pairs:
        x = x.reshape(-1) if isinstance(x, np.ndarray) else x
        x = x[0].item() if isinstance(x, np.ndarray) and x.size == 1 else x
        counts[name] = counts.get(name, 0) + 1
        if counts[name] == 1:
            out[name] = x
        elif counts[name] == 2:
            out[name] = [out[name], x]
        else:
            out[name].append(x)
    return out


def _choices(listed):
    """Choices by site; a site that was visited several times has a list."""
    return _merged([(site, v) for site, _, v in listed])


class Answer:
    """Equal reports of particles: `reports`, and their probability by `guide`, `posterior` (importance weights), `exact`."""

    def __init__(self, inner):
        reports, self.guide, self.posterior, self.exact = inner
        self.reports = _merged(reports)

    def __repr__(self):
        exact = "" if self.exact != self.exact else f", exact={self.exact:.4g}"
        return f"Answer({self.reports}, posterior={self.posterior:.4g}, guide={self.guide:.4g}{exact})"


class Particle:
    """Particles that made the same choices: `choices` by site, log_p, log_q, weight, count; log_given is log q of choices
    that were given, which is no part of log_q."""

    def __init__(self, inner, answers):
        self.log_p, self.log_q, self.weight, self.count, self.answer, listed, self.log_given = inner
        self.choices = _choices(listed)
        self.reports = answers[self.answer].reports if answers else {}

    def __repr__(self):
        return f"Particle({self.choices}, weight={self.weight:.4g}, count={self.count})"


class Answers(list):
    """Answers about one datum, the most probable first; and the weighted particles that they come from."""

    def __init__(self, inner):
        super().__init__(Answer(a) for a in inner["answers"])
        self.particles = [Particle(p, self) for p in inner["particles"]]
        self.n_particles, self.ess = inner["n_particles"], inner["ess"]
        self.log_evidence, self.exact_log_evidence = inner["log_evidence"], inner["exact_log_evidence"]

    def marginal(self, site):
        """The posterior of a choice by its value: {value: probability}, the most probable first."""
        out = {}
        for p in self.particles:
            v = p.choices.get(site)
            v = tuple(v) if isinstance(v, (list, np.ndarray)) else v
            out[v] = out.get(v, 0.0) + p.weight
        return dict(sorted(out.items(), key=lambda kv: -kv[1]))

    def mean(self, site):
        """The posterior mean of a value."""
        return sum(p.weight * np.asarray(p.choices[site], float) for p in self.particles)

    def to_pandas(self):
        """A frame with a row for each set of equal particles: its choices by site, weight, count, log_p, log_q."""
        import pandas as pd
        return pd.DataFrame([{**p.choices, "weight": p.weight, "count": p.count, "log_p": p.log_p, "log_q": p.log_q}
                             for p in self.particles])

    def table(self):
        """The answers as a frame of pandas: reports, posterior, guide, exact."""
        import pandas as pd
        return pd.DataFrame([{**a.reports, "posterior": a.posterior, "guide": a.guide, "exact": a.exact} for a in self])

    def to_arviz(self, draws=None, seed=0):
        """An InferenceData of ArviZ: particles drawn again by their weights, one chain. Only sites that every particle
        visits equally often, since ArviZ has arrays of one shape."""
        import arviz
        n = draws or self.n_particles
        weights = np.array([p.weight for p in self.particles])
        if not np.isfinite(weights).all():
            raise Error("All particles are impossible: there is no posterior to draw from.")
        picked = np.random.default_rng(seed).choice(len(weights), size=n, p=weights / weights.sum())
        shapes = {}
        for p in self.particles:
            for site, v in p.choices.items():
                shapes.setdefault(site, set()).add(np.shape(v))
        sites = [s for s, k in shapes.items() if len(k) == 1 and all(s in p.choices for p in self.particles)]
        return arviz.from_dict(posterior={s: np.stack([np.asarray(self.particles[i].choices[s]) for i in picked])[None]
                                          for s in sites})

    def _trees(self):
        return [(a.reports["tree"], f"{a.posterior:.3f}") for a in self if isinstance(a.reports.get("tree"), str)][:4]

    def _repr_svg_(self):
        trees = self._trees()
        if not trees:
            return None
        from ._figure import tree
        return tree([t for t, _ in trees], captions=[c for _, c in trees])._repr_svg_()

    def _repr_html_(self):
        from html import escape
        if self._trees():
            return None
        rows = "".join(f"<tr><td>{escape(', '.join(f'{k}: {v}' for k, v in a.reports.items()))}</td><td>{a.posterior:.4g}</td>"
                       f"<td>{a.guide:.4g}</td></tr>" for a in self[:10])
        return ("<table><tr><th>answer</th><th>posterior</th><th>guide</th></tr>" + rows + "</table>"
                f"<p>log p(x) ≈ {self.log_evidence:.4g}, ess {self.ess:.3g}, {self.n_particles} particles</p>")

    def __repr__(self):
        lines = [repr(a) for a in self[:10]] + (["…"] if len(self) > 10 else [])
        return "\n".join([f"{len(self)} answers, log_evidence={self.log_evidence:.4g}, ess={self.ess:.3g}"] + lines)


class Sample:
    """A sample of the model: the `fields` of the datum that it made, its `reports` and its `choices`."""

    def __init__(self, inner, declared):
        fields, reports, choices = inner
        self.fields = {}
        for (name, x), (_, _, _, item, most) in zip(fields, declared):
            if x is None:
                continue
            x = x.reshape(-1)
            if most:
                n = int(x[0])
                x = x[1:1 + n * item].reshape(n, item)
            self.fields[name] = x
        self.reports, self.choices = _merged(reports), _choices(choices)

    def __repr__(self):
        return f"Sample(fields={self.fields}, reports={self.reports}, choices={self.choices})"


class Run:
    """A trained model: what `train` and `open` return."""

    def __init__(self, trainer=None, folder=None, asker=None):
        self.trainer, self._asker = trainer, asker
        self.folder = folder or (trainer.folder if trainer else None)
        self._asked_at = None

    def _posterior(self):
        if self.trainer is not None and self._asked_at != self.trainer.iteration:
            self._asker, self._asked_at = self.trainer._posterior(), self.trainer.iteration
        return self._asker

    @property
    def config(self):
        """The configuration, with all defaults."""
        return self.trainer.config if self.trainer else self._asker._inner.config

    @property
    def iteration(self):
        """How many iterations are done."""
        return self.trainer.iteration if self.trainer else self._asker._inner.iteration

    def infer(self, *question, test=None, particles=1000, seed=1, listed=True, given=None, **fields):
        """What is behind a datum: `Answers`. The datum is a text, a picture, fields by name, or number `test` of the test data.

        listed=False leaves out the particles with their choices, which saves time where there are many. given={"z": 1,
        ("z", 2): 0} has choices that are known, at visit 0 and visit 2 of a site; a list has the first visits. Answers are then
        of the posterior given the datum and these choices, and log_evidence is log p(x, given)."""
        return self._posterior().infer(*question, test=test, particles=particles, seed=seed, listed=listed, given=given,
                                       **fields)

    def score(self, choices, *question, test=None, **fields):
        """(log p(z, x), log q(z | x)) of given choices by site; a list for a site that is visited several times."""
        return self._posterior().score(choices, *question, test=test, **fields)

    def sample(self, n=1, seed=1):
        """Samples of the model, a list of `Sample`."""
        return self._posterior().sample(n, seed)

    def evaluate(self):
        """The metrics at the present parameters, for a run that was just trained; else the last that were measured."""
        if self.trainer:
            return self.trainer.evaluate()
        last = Measures((self.iteration, float("nan"), {}, float("nan")))
        for name, (_, seconds, values) in self._stored().histories.items():
            last[name], last.seconds = values[-1], seconds[-1]
        return last

    def state_dict(self, torch=None):
        """The parameters by name, as PyTorch names them: arrays, or tensors with torch=True."""
        if self.trainer:
            return self.trainer.state_dict(torch)
        values = {n: a for n, a in _safetensors(os.path.join(self.folder, "checkpoint.safetensors")).items()
                  if n.split(".")[0] not in ("optimiser", "method") and n not in ("iteration", "seconds")}
        if torch:
            import torch as t
            return {n: t.from_numpy(a.copy()) for n, a in values.items()}
        return values

    def _stored(self):
        return runs(self.folder)[0]

    @property
    def history(self):
        """Each metric over the iterations: {metric: (iterations, values)}, arrays."""
        if self.folder:
            return {k: (i, v) for k, (i, _, v) in self._stored().histories.items()}
        e = self.trainer.evaluations
        names = list(e[0]) if e else []
        return {n: (np.array([m.iteration for m in e], float), np.array([m[n] for m in e])) for n in names}

    @property
    def metrics(self):
        """The metrics as a frame of pandas, a row for each evaluation."""
        import pandas as pd
        return pd.DataFrame({k: pd.Series(v, index=np.asarray(i, int)) for k, (i, v) in self.history.items()}
                            ).rename_axis("iteration")

    def plot(self, *metrics, **options):
        """A chart of metrics over the iterations, which shows itself in a notebook: `chart`."""
        from ._figure import chart
        return chart(self, *metrics, **options)

    def snapshots(self):
        """The snapshots of a run that has a folder: {name: [(iteration, values, labels), …]}."""
        return self._stored().snapshots if self.folder else {}

    def close(self):
        """Gives back memory and threads; the folder is free for others."""
        if self._asker is not None:
            self._asker.close()
        if self.trainer is not None:
            self.trainer.close()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def __repr__(self):
        c = self.config
        return (f"<rws.Run of {c['model']}, method {c['method']}, {c['particles']} particles, iteration {self.iteration} of "
                f"{c['iterations']}" + (f", in {self.folder}" if self.folder else "") + ">")


def _safetensors(path):
    import builtins
    import json
    with builtins.open(path, "rb") as f:
        n = int.from_bytes(f.read(8), "little")
        header = json.loads(f.read(n))
        data = f.read()
    types = {"F32": "<f4", "F64": "<f8", "U64": "<u8", "I64": "<i8"}
    return {k: np.frombuffer(data[t["data_offsets"][0]:t["data_offsets"][1]], types[t["dtype"]]).reshape(t["shape"])
            for k, t in header.items() if k != "__metadata__"}


class Stored:
    """What a store says of one run: `name`, `config`, `state`, `histories` ({metric: (iterations, seconds, values)}), `snapshots`."""

    def __init__(self, inner):
        self.histories = inner.pop("metrics")
        shots = {}
        for name, iteration, values, labels in inner.pop("snapshots"):
            shots.setdefault(name, []).append((iteration, values, labels))
        self.snapshots = shots
        self.__dict__.update(inner)

    def last(self, metric):
        """The last value of a metric; NaN if it was not measured."""
        return float(self.histories[metric][2][-1]) if metric in self.histories else float("nan")

    def __repr__(self):
        return f"<rws.Stored {self.name}, {self.state}, iteration {self.iteration} of {self.iterations}>"


class Stores(list):
    """Runs of a folder, with `to_pandas`, `plot`."""

    def __init__(self, items, paths, where):
        super().__init__(items)
        self._paths, self._where = paths, where

    def to_pandas(self):
        """A frame with a row for each run: its configuration and the last value of every metric."""
        import pandas as pd
        return pd.DataFrame([{"run": r.name, **r.config, "state": r.state, "iteration": r.iteration,
                              **{m: r.last(m) for m in r.histories}} for r in self])

    def plot(self, *metrics, **options):
        """A chart of metrics of these runs: medians over seeds, with a band between the quartiles."""
        from ._figure import chart
        return chart(self, *metrics, **options)


def runs(*paths, where=()):
    """The runs that folders hold, of one run, a sweep or many: `Stores`. where: conditions such as "method=ww,ws"."""
    where = [where] if isinstance(where, str) else list(where)
    paths = [os.fspath(p) for p in paths] or ["."]
    return Stores([Stored(r) for r in _rws.results(paths, where)], paths, where)
