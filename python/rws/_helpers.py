"""Functions that the extension calls: everything that it needs of numpy."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np


def floats(o: Any) -> np.ndarray:
    """Any array of numbers as contiguous float32."""
    if hasattr(o, "detach") and hasattr(o, "cpu"):  # a tensor of PyTorch
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
