"""Questions about a datum, and their answers."""

from __future__ import annotations

import json
from functools import cached_property
from operator import index
from typing import Any, Mapping, Optional, Sequence, Union

import numpy as np

from . import _rws
from ._data import pack_all, pack_series, read_columns
from ._helpers import unknown
from ._life import live
from ._rws import Error

__all__ = ["Answer", "AnswerTable", "Answers", "Calibration", "Particle", "Sample"]


class Questions:
    """Questions to what has fields and can be asked."""

    _inner: Union[_rws.Posterior, _rws.Trainer]

    def _fields(self, given: Mapping[str, Any], inputs: bool = False) -> list[Optional[np.ndarray]]:
        """Numbers by field. inputs: the others may be missing."""
        fields = self._inner.fields
        known = {f[0] for f in fields}
        for name in given:
            if name not in known:
                raise Error(unknown("field", name, (f[0] for f in fields)))
        out: list[Optional[np.ndarray]] = []
        for name, dim, label, item, most, is_input in fields:
            x = given.get(name)
            if x is None:
                if is_input if inputs else not label:
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
    def listed(choices: Optional[Mapping[Any, Any]]) -> list[tuple[str, int, np.ndarray]]:
        """(site, visit, numbers) of choices by site or by (site, visit); a list has the values of several visits."""
        out = []
        for key, value in (choices or {}).items():
            site, first = key if isinstance(key, tuple) else (key, 0)
            for visit, v in enumerate(value if isinstance(value, list) else [value], int(first)):
                out.append((site, visit, np.asarray(v, np.float32).reshape(-1)))
        return out

    def _question(self, question: tuple[Any, ...], fields: Mapping[str, Any], test: Optional[int], particles: int, seed: int,
                  listed: bool, given: Optional[Mapping[Any, Any]] = None) -> tuple[Any, ...]:
        text = picture = arrays = None
        if len(question) + bool(fields) + (test is not None) > 1:
            raise TypeError("A question is one text, one picture, fields by name, or test=NUMBER.")
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
        return arrays, text, picture, index(test or 0), index(particles), _seed(seed), bool(listed), self.listed(given)

    def infer(self, *question: Any, test: Optional[int] = None, particles: int = 1000, seed: int = 1, listed: bool = True,
              given: Optional[Mapping[Any, Any]] = None, **fields: Any) -> Answers:
        """As `Run.infer`; of a `Trainer`, at the present parameters."""
        return Answers(self._inner.ask(*self._question(question, fields, test, particles, seed, listed, given)))


class AnswerTable(dict[str, Any]):
    """Answers to many questions: columns by name, with an entry for each datum. `log_evidence`, `log_evidence_error`, `ess`, `k_hat` and
    `verdict` tell how good they are; `error` says why a datum has no answer. A site of few values, as "z", has the most probable one,
    and "z.probability", "z=0", "z=1", …; any other site has "mu.mean", "mu.mean_error" and "mu.sd", or "mu[0].mean", …; "z.visited" is
    the probability that it is visited, "z:1" the second visit, "report.x" a number that is reported. NaN and None are missing."""

    @property
    def n(self) -> int:
        """How many data there are."""
        return max((len(c) for c in self.values()), default=0)

    def to_pandas(self) -> Any:
        """The columns as a frame of pandas, which writes CSV, Parquet and others."""
        import pandas as pd
        return pd.DataFrame(dict(self))


class Calibration(list[dict[str, Any]]):
    """The result of `Run.calibrate`: a dict for each quantity, by the weights and ("guide": True) by the bare guide, with the number of
    "ranks", "p" and "p_adjusted" of uniform ranks, "coverage" of the central 50, 80 and 95 % intervals, "ece" and "accuracy" of the most
    probable value, "histogram" of the ranks, and "difference", "low", "high": their distribution function less the uniform one at
    1/32, 2/32, … with 95 % bands. `ranks` are the columns of single simulations; `impossible` counts data that no particle explains."""

    def __init__(self, inner: tuple[list[tuple[str, Any]], list[dict[str, Any]], int]) -> None:
        columns, quantities, self.impossible = inner
        super().__init__(quantities)
        self.ranks = AnswerTable(columns)

    def rejected(self, guide: bool = False, level: float = 0.05) -> list[str]:
        """The quantities that are not calibrated: those with an adjusted p below the level."""
        return [q["quantity"] for q in self if q["guide"] == guide and q["p_adjusted"] < level]

    def to_pandas(self) -> Any:
        """A frame with a row for each quantity."""
        import pandas as pd
        return pd.DataFrame([{k: v for k, v in q.items() if k not in ("histogram", "difference", "low", "high")} for q in self])


class Asker(Questions):
    _inner: _rws.Posterior

    def __init__(self, inner: _rws.Posterior, model: Any) -> None:
        self._inner, self.model = inner, model
        live.add(self)

    def close(self) -> None:
        self._inner.close()

    def _columns(self, data: Mapping[str, Any]) -> tuple[int, list[Optional[np.ndarray]]]:
        """The number of data, and an array for each field with a row for each of them."""
        n = {len(x) for x in data.values()}
        if len(n) != 1:
            raise Error("The fields of the data have different numbers of rows.")
        declared = self._inner.fields
        for name in data:
            if all(name != f[0] or f[2] for f in declared):
                raise Error(unknown("field", name, (f[0] for f in declared if not f[2])))
        out: list[Optional[np.ndarray]] = []
        for name, dim, label, item, most, _ in declared:
            if name not in data and not label:
                raise Error(f"The field {name!r} is missing.")
            if name not in data:
                out.append(None)
            elif most:
                out.append(pack_all(data[name], item, most))
            else:
                a = np.asarray(data[name], np.float32).reshape(len(data[name]), -1)
                if a.shape[1] != dim:
                    raise Error(f"The field {name!r} has {dim} numbers, not {a.shape[1]}.")
                out.append(np.ascontiguousarray(a))
        return n.pop(), out

    def ask_many(self, data: Any, test: Optional[Sequence[int]], particles: int, seed: int, listed: bool,
                 given: Optional[Mapping[Any, Any]], threads: int, most_dim: int, told: Any) -> AnswerTable:
        fields = texts = pictures = tests = None
        if (data is None) == (test is None):
            raise TypeError("Ask about data, or about test data: test=range(100).")
        array = data if isinstance(data, np.ndarray) else None
        if test is not None:
            tests = [index(i) for i in test]
            n = len(tests)
        elif isinstance(data, (list, tuple)) and len(data) > 0 and all(isinstance(d, str) for d in data):
            texts = list(data)
            n = len(texts)
        elif array is not None and array.dtype == np.uint8 and array.ndim == 3:
            n, pictures = len(array), (array.shape[1], array.shape[2], np.ascontiguousarray(array))
        else:
            columns = read_columns(data)
            if "" in columns:
                columns = {self._inner.fields[0][0]: columns[""]}
            n, fields = self._columns(columns)
        return AnswerTable(self._inner.ask_many(n, fields, texts, pictures, tests, index(particles), _seed(seed), bool(listed),
                                                self.listed(given), index(threads), index(most_dim), told))

    def calibrate(self, simulations: int, particles: int, seed: int, threads: int, told: Any) -> Calibration:
        return Calibration(self._inner.calibrate(index(simulations), index(particles), _seed(seed), index(threads), told))

    def score(self, choices: Mapping[Any, Any], *question: Any, test: Optional[int] = None, **fields: Any) -> tuple[float, float]:
        return self._inner.score(self._question(question, fields, test, 1, 1, False), self.listed(choices))

    def sample(self, n: int = 1, seed: int = 1, test: Optional[int] = None, **inputs: Any) -> list[Sample]:
        if inputs and test is not None:
            raise TypeError("Samples have the inputs that are given or those of a test datum, not both.")
        given = inputs or test is not None
        at = (self._fields(inputs, True) if inputs else None, None, None, index(test or 0), 1, 1, False, []) if given else None
        return [Sample(s, self._inner.fields) for s in self._inner.sample(index(n), _seed(seed), at)]


def _seed(seed: int) -> int:
    if not 0 <= index(seed) < 2**64:
        raise ValueError(f"A seed is a whole number from 0 to 2**64 - 1, not {seed}.")
    return index(seed)


def _merged(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Reports by name; those of one name become a list."""
    out: dict[str, Any] = {}
    counts: dict[str, int] = {}
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


def _choices(listed: Sequence[tuple[str, int, Any]]) -> dict[str, Any]:
    """Choices by site; a site that was visited several times has a list."""
    return _merged([(site, v) for site, _, v in listed])


def _hashable(value: Any) -> Any:
    """A choice as a key of a dictionary: lists and arrays become tuples."""
    return tuple(map(_hashable, value)) if isinstance(value, (list, np.ndarray)) else value


def _shape(value: Any) -> Optional[tuple[int, ...]]:
    """The shape of a choice, or of the choices of several visits; None if the visits have different shapes."""
    if not isinstance(value, list):
        return np.shape(value)
    shapes = {np.shape(v) for v in value}
    return (len(value), *shapes.pop()) if len(shapes) == 1 else None


class Answer:
    """Equal reports of particles: `reports`, and their probability by `guide`, `posterior` (importance weights), `exact`. `error` is
    the Monte-Carlo standard error of `posterior`."""

    guide: float
    posterior: float
    exact: float
    error: float

    def __init__(self, inner: dict[str, Any]) -> None:
        self.reports = _merged(inner.pop("reports"))
        self.__dict__.update(inner)

    def __repr__(self) -> str:
        exact = "" if self.exact != self.exact else f", exact={self.exact:.4g}"
        return f"Answer({self.reports}, posterior={self.posterior:.4g}, guide={self.guide:.4g}{exact})"


class Particle:
    """Particles that made the same choices: `choices` by site, log_p, log_q, weight, count; log_given is log q of choices
    that were given, which is no part of log_q."""

    log_p: float
    log_q: float
    log_given: float
    weight: float
    count: int
    answer: int

    def __init__(self, inner: dict[str, Any], answers: list[Answer]) -> None:
        self.choices = _choices(inner.pop("choices"))
        self.__dict__.update(inner)
        self.reports = answers[self.answer].reports if answers else {}

    def __repr__(self) -> str:
        return f"Particle({self.choices}, weight={self.weight:.4g}, count={self.count})"


class Answers(list[Answer]):
    """Answers about one datum, the most probable first; and the weighted particles that they come from. `verdict` is what the weights
    say: "reliable", "doubtful" or "unreliable"; `advice` says why, and what to do. `ess`, `k_hat` (the Pareto k of the weights, with
    its limit `k_limit`) and `log_evidence_error` are what it rests on."""

    n_particles: int
    ess: float
    log_evidence: float
    log_evidence_error: float
    exact_log_evidence: float
    k_hat: float
    k_limit: float
    verdict: str
    advice: str

    def __init__(self, inner: dict[str, Any]) -> None:
        super().__init__(Answer(a) for a in inner.pop("answers"))
        self.particles = [Particle(p, self) for p in inner.pop("particles")]
        self._held = inner.pop("held")  # the answers of the library; in a copy, their text
        self.__dict__.update(inner)

    def _json(self) -> str:
        return self._held if isinstance(self._held, str) else _rws.answers_json(self._held, bool(self.particles))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_held": self._json()}

    def to_dict(self) -> dict[str, Any]:
        """All of this as the object of JSON that `rws infer --json` and the HTTP API have: answers and, if they were listed, particles
        ("particles_listed") and marginals. None is a number that is not finite: an impossible log_evidence, for example."""
        return dict(json.loads(self._json()))

    @cached_property
    def marginals(self) -> list[dict[str, Any]]:
        """The distribution of each choice and of each reported number by itself: its "site" or "report", its "visit", how probable a
        visit is by "posterior" and "guide", and "values", a list of {"value", "posterior", "error", "guide"}, or the posterior's
        "mean", "mean_error" and "sd" where a choice is no whole number or has more than 256 values. "error" and "mean_error" are
        Monte-Carlo standard errors."""
        self._expect_particles()
        return list(self.to_dict()["marginals"])

    def _expect_particles(self) -> None:
        """Refuses a question without particles."""
        if not self.particles:
            raise Error("There are no particles: ask with listed=True.")

    def _values(self, of: Any) -> list[Any]:
        """What each particle has of a site, of a visit to a site or of a report: a value, or None. Refuses what no particle has."""
        self._expect_particles()
        site, visit = of if isinstance(of, tuple) else (of, None)
        if visit is None and all(site not in p.choices for p in self.particles):
            values = [p.reports.get(site) for p in self.particles]
        else:
            values = [p.choices.get(site) for p in self.particles]
        if visit is not None:
            visits = [v if isinstance(v, list) else [v] for v in values]
            values = [v[visit] if 0 <= visit < len(v) else None for v in visits]
        if all(v is None for v in values):
            sites = dict.fromkeys(s for p in self.particles for s in p.choices)
            reports = dict.fromkeys(r for p in self.particles for r in p.reports)
            raise KeyError(f"No particle visits a site {of!r}, or reports it; the sites are {', '.join(map(repr, sites)) or 'none'}, and "
                           f"the reports {', '.join(map(repr, reports)) or 'none'}.")
        return values

    def _described(self, of: Any) -> dict[str, Any]:
        """The one marginal of a site, of a visit or of a report; {} if several visits or sizes have one each, or none has."""
        site, visit = of if isinstance(of, tuple) else (of, None)
        kind = "site" if any(site in p.choices for p in self.particles) else "report"
        found = [m for m in self.marginals if m.get(kind) == site and visit in (None, m["visit"])]
        return found[0] if len(found) == 1 else {}

    def marginal(self, site: Any) -> dict[Any, float]:
        """The posterior of a choice by its value: {value: probability}, the most probable first. None: the site is not visited.
        ("z", 1) is the second visit to the site "z". A name that is no site may be that of a report."""
        out: dict[Any, float] = {}
        values, known = self._values(site), self._described(site)
        if "values" in known and known["posterior"] is not None:
            out = {float(v["value"]): v["posterior"] for v in known["values"]}
            if any(v is None for v in values):
                out[None] = 1 - known["posterior"]
        else:
            for p, value in zip(self.particles, values):
                v = _hashable(value)
                out[v] = out.get(v, 0.0) + p.weight
        return dict(sorted(out.items(), key=lambda kv: -kv[1]))

    def mean(self, site: Any) -> Any:
        """The posterior mean of a choice or a report, as `marginal` takes them, among the particles that have it."""
        having = [(p.weight, v) for p, v in zip(self.particles, self._values(site)) if v is not None]
        shapes = {_shape(v) for _, v in having}
        if len(shapes) > 1:
            raise Error(f"Not every particle visits site {site!r} equally often; marginal({site!r}) and to_pandas() have its values.")
        if None in shapes:
            raise Error(f"The values of site {site!r} have different sizes; marginal({site!r}) and to_pandas() have them.")
        return sum(w * np.asarray(v, float) for w, v in having) / sum(w for w, _ in having)

    def to_pandas(self) -> Any:
        """A frame with a row for each set of equal particles: its choices by site, weight, count, log_p, log_q."""
        import pandas as pd
        return pd.DataFrame([{**p.choices, "weight": p.weight, "count": p.count, "log_p": p.log_p, "log_q": p.log_q}
                             for p in self.particles])

    def table(self) -> Any:
        """The answers as a frame of pandas: reports, posterior, guide, exact."""
        import pandas as pd
        return pd.DataFrame([{**a.reports, "posterior": a.posterior, "guide": a.guide, "exact": a.exact} for a in self])

    def to_arviz(self, draws: Optional[int] = None, seed: int = 0) -> Any:
        """The posterior for ArviZ: particles drawn again by their weights, as one chain of `draws` (by default as many as there were
        particles), with log p as sample_stats.lp. It has the sites that every particle visits equally often, since ArviZ has arrays
        of one shape. Draws repeat where few particles have all the weight: `ess` tells."""
        import arviz
        n = draws or self.n_particles
        self._expect_particles()
        weights = np.array([p.weight for p in self.particles])
        if not np.isfinite(weights).all():
            raise Error("All particles are impossible: there is no posterior to draw from.")
        shapes: dict[str, set[Optional[tuple[int, ...]]]] = {}
        for p in self.particles:
            for site, v in p.choices.items():
                shapes.setdefault(site, set()).add(_shape(v))
        sites = [s for s, k in shapes.items()
                 if len(k) == 1 and None not in k and all(s in p.choices for p in self.particles)]
        if not sites:
            raise Error("No site is visited equally often by all particles; to_pandas() has a row for each particle instead.")
        picked = np.random.default_rng(seed).choice(len(weights), size=n, p=weights / weights.sum())
        groups = {"posterior": {s: np.stack([np.asarray(self.particles[i].choices[s]) for i in picked])[None] for s in sites},
                  "sample_stats": {"lp": np.array([self.particles[i].log_p for i in picked])[None]}}
        if int(arviz.__version__.split(".")[0]) >= 1:
            return arviz.from_dict(groups)
        return arviz.from_dict(posterior=groups["posterior"], sample_stats=groups["sample_stats"])

    def _trees(self) -> list[tuple[str, str]]:
        return [(a.reports["tree"], f"{a.posterior:.3f}") for a in self if isinstance(a.reports.get("tree"), str)][:4]

    def _repr_svg_(self) -> Optional[str]:
        trees = self._trees()
        if not trees:
            return None
        from ._figure import tree
        return tree([t for t, _ in trees], captions=[c for _, c in trees])._repr_svg_()

    def _repr_html_(self) -> Optional[str]:
        from html import escape
        if self._trees():
            return None
        rows = "".join(f"<tr><td>{escape(', '.join(f'{k}: {v}' for k, v in a.reports.items()))}</td><td>{a.posterior:.4g}</td>"
                       f"<td>{a.guide:.4g}</td></tr>" for a in self[:10])
        return ("<table><tr><th>answer</th><th>posterior</th><th>guide</th></tr>" + rows + "</table>"
                f"<p>log p(x) ≈ {self.log_evidence:.4g}, ess {self.ess:.3g}, {self.n_particles} particles</p>"
                + ("" if self.verdict == "reliable" else f"<p>{self.verdict}: {escape(self.advice)}</p>"))

    def __repr__(self) -> str:
        lines = [repr(a) for a in self[:10]] + (["…"] if len(self) > 10 else [])
        if self and not any(a.reports for a in self):
            lines = ["The model reports nothing (Path.report); " + (
                "marginal(site) and particles have its choices." if self.particles else "ask with listed=True for its choices.")]
        if self.verdict != "reliable":
            lines = [f"{self.verdict}: {self.advice}"] + lines
        return "\n".join([f"{len(self)} answer{'s' * (len(self) != 1)}, log_evidence={self.log_evidence:.4g}, ess={self.ess:.3g}"] + lines)


class Sample:
    """A sample of the model: the `fields` of the datum that it made, its `reports` and its `choices`."""

    def __init__(self, inner: tuple[Any, Any, Any], declared: Sequence[tuple[str, int, bool, int, int, bool]]) -> None:
        fields, reports, choices = inner
        self.fields = {}
        for (name, x), (_, _, _, item, most, _) in zip(fields, declared):
            if x is None:
                continue
            x = x.reshape(-1)
            if most:
                n = int(x[0])
                x = x[1:1 + n * item].reshape(n, item)
            self.fields[name] = x
        self.reports, self.choices = _merged(reports), _choices(choices)

    def __repr__(self) -> str:
        return f"Sample(fields={self.fields}, reports={self.reports}, choices={self.choices})"
