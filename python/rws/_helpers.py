"""Functions that the extension calls: everything that it needs of numpy."""

from __future__ import annotations

import difflib
import re
import types
import warnings
from typing import Any, Callable, Iterable

import numpy as np


def unknown(kind: str, name: str, names: Iterable[str]) -> str:
    """The message that there is no `kind` of this name, with the one that was probably meant and all that there are."""
    names = list(names)
    folded = {n.lower().replace("-", "_"): n for n in reversed(names)}
    wanted = name.lower().replace("-", "_")
    near = difflib.get_close_matches(wanted, folded, 1) or [n for n in folded if len(wanted) > 2 and wanted in n]
    hint = f" (did you mean {folded[near[0]]!r}?)" if near else ""
    return f"There is no {kind} {name!r}{hint}; the {kind}s are {', '.join(map(repr, names))}."


class Carry(types.SimpleNamespace):
    """What a step of p.loop hands to the next: integers, by which particles are compared, and values or None."""

    def clear(self) -> None:
        """Sets integers to 0 and values to None, so that all particles are one path."""
        for name, o in vars(self).items():
            setattr(self, name, 0 if isinstance(o, int) else None)


def floats(o: Any) -> np.ndarray:
    """Any array of numbers as contiguous float32."""
    if hasattr(o, "detach") and hasattr(o, "cpu"):  # a tensor of PyTorch
        if getattr(o, "requires_grad", False):
            warnings.warn("A tensor of PyTorch that requires a gradient is read as numbers: its parameters do not learn here. Declare them "
                          "in setup (s.param, s.linear, s.mlp, …).", stacklevel=2)
        o = o.detach().cpu().numpy()
    a = np.asarray(o)
    if a.dtype.kind not in "biuf":
        raise TypeError(f"numbers were expected, not {type(o).__name__}")
    return np.ascontiguousarray(a, dtype=np.float32)


def array(data: bytearray, rows: int, cols: int) -> np.ndarray:
    return np.frombuffer(data, np.float32).reshape(rows, cols)


def doubles(data: bytearray) -> np.ndarray:
    return np.frombuffer(data, np.float64)


def kernel(f: Callable[..., Any], datum: np.ndarray, made: np.ndarray) -> float:
    return float(f(datum.reshape(-1), made.reshape(-1)))


def keep_kernel(model: Any, f: Any) -> None:
    kept = model.__dict__.setdefault("_kernels", [])
    if not any(k is f for k in kept):
        if len(kept) >= 64:
            raise ValueError("A kernel is a function of the module or a method kept in an attribute, "
                             "not a new function in every execution of the program.")
        kept.append(f)


_SPELLED = {
    "rws_constants": "p.constant", "rws_zeros": "p.constant", "rws_branch": "p.integer", "rws_look": "p.numbers", "rws_choose": "p.choose",
    "rws_layer_bias": "layer.bias", "rws_param_values": "param.values", "rws_parameter": "the parameter itself", "rws_site_visit": "p.visit",
    "rws_var": "value", "rws_alloc": "a local variable", "rws_await": "p.wait", "rws_detach": "rws.detach", "rws_stop": "rws.detach",
    "rws_apply": "rws.exp and its like", "rws_path_field": "p.shape", "rws_shared_loop": "p.loop", "rws_slice": "x[i:j]", "rws_embedding": "the layer", "rws_draw_noise": "a draw",
    "rws_report_text": "p.report", "rws_setup_truth": "the truth of a parameter", "rws_fail": "an exception", "rws_status": "status",
    "rws_support": "support of rws.Family", "rws_model": "rws.Model", "rws_user_model": "the model of a shared object",
    "rws_checksum": "checksum", "rws_affine": "a * x + b", "rws_add": "+", "rws_sub": "-", "rws_mul": "*", "rws_div": "/", "rws_setup_model": "self",
}


def spelled(text: str) -> str:
    """A message of the library in the words of Python: functions and options as they are called here."""
    from . import _model, _rws
    import rws

    def name(match: re.Match[str]) -> str:
        c = match.group(0)
        short = c[len("rws_"):]
        setup = short[len("setup_"):] if short.startswith("setup_") else ""
        table = setup[len("table_"):] if setup.startswith("table_") else ""
        if table and hasattr(_model.Table, table):
            return f"table.{table}"
        if setup and hasattr(_model.Setup, setup):
            return f"s.{setup}"
        if hasattr(_rws.Path, short):
            return f"p.{short}"
        if c in _SPELLED:
            return _SPELLED[c]
        if short != "rws" and hasattr(rws, short):
            return f"rws.{short}"
        return short

    text = text.replace("`no_check` accepts it", "check=False accepts it")
    return re.sub(r"\brws_[a-z0-9][a-z0-9_]*", name, text)


def explained(error: BaseException) -> None:
    """Adds to an exception of a program what it means there."""
    if isinstance(error, RecursionError) and error.args and "never ends" not in str(error.args[0]):
        error.args = (f"{error.args[0]}: a program calls itself too often. Either its branching never ends with a probability above 0 "
                      "(a process that has one child or more on average does not end), or an untrained guide goes on too long. Bound the "
                      "depth, and stop there in guide and model alike; or start the guide's logits so that it ends soon.",)
