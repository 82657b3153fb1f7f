"""Functions that the extension calls: everything that it needs of numpy."""

import numpy as np


def floats(o):
    """Any array of numbers as contiguous float32."""
    if hasattr(o, "detach") and hasattr(o, "cpu"):  # a tensor of PyTorch
        o = o.detach().cpu().numpy()
    a = np.asarray(o)
    if a.dtype.kind not in "biuf":
        raise TypeError(f"numbers were expected, not {type(o).__name__}")
    return np.ascontiguousarray(a, dtype=np.float32)


def array(data, rows, cols):
    return np.frombuffer(data, np.float32).reshape(rows, cols)


def doubles(data):
    return np.frombuffer(data, np.float64)


def kernel(f, datum, made):
    return float(f(datum.reshape(-1), made.reshape(-1)))


def keep_kernel(model, f):
    kept = model.__dict__.setdefault("_kernels", [])
    if not any(k is f for k in kept):
        if len(kept) >= 64:
            raise ValueError("A kernel is a function of the module or a method kept in an attribute, "
                             "not a new function in every execution of the program.")
        kept.append(f)
