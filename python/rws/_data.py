"""Data at hand: arrays, lists of sequences and frames become a table of the library.

A field has the same number of numbers in every datum. A series has up to N items; each datum has its own number of items. Sequences of different
length can only be a series. Where all sequences have the same length, what setup declares decides, and what it does not declare
is a field. The table is therefore made when setup is over (`Arrays.make`), with these columns:

    a field of 3 numbers     x0   x1   x2
    a series of 1 number     n    y0   y1   …   y(most - 1), of which n count
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, NamedTuple, Optional, Sequence, Union

import numpy as np

from ._rws import Error

if TYPE_CHECKING:
    from . import _rws

_ORDERS = {"shuffled": 0, "in order": 1, "drawn": 2}


def orders(name: str) -> int:
    """The library's number of an order of training data."""
    if name not in _ORDERS:
        raise Error(f"The order of data is one of {', '.join(_ORDERS)}, not {name!r}.")
    return _ORDERS[name]


def pack_series(items: Any, dim: int, most: int) -> np.ndarray:
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


def pack_all(rows: Iterable[Any], dim: int, most: int) -> np.ndarray:
    return np.stack([pack_series(i, dim, most) for i in rows])


class Column:
    """A field or a series of the data: what can be declared of it.

    parts: rows for training and for tests: an array of n x …, or a list of arrays of different length."""

    def __init__(self, name: str, parts: Sequence[Any]) -> None:
        self.parts = parts
        self.ragged = any(isinstance(p, list) for p in parts)
        # a sequence without items, [], says nothing about the shape of an item
        shapes = {i.shape[1:] for p in parts for i in p if i.size} if self.ragged else {p.shape[1:] for p in parts}
        if len(shapes) != 1:
            raise Error(f"The items of the series {name!r} have different lengths." if self.ragged else
                        f"The test data of {name!r} have another shape than the training data.")
        shape = shapes.pop()
        self.series = self.ragged or len(shape) > 0  # whether it can be one
        self.item = int(np.prod(shape if self.ragged else shape[1:], dtype=int))  # numbers of an item if it is
        self.size = max(i.size for p in parts for i in p) if self.ragged else int(np.prod(shape, dtype=int))

    def shape(self, name: str, dim: Optional[int], most: Optional[int], label: bool) -> tuple[int, int]:
        """What is declared: (numbers, 0) of a field, for which most is 0; (numbers of an item, most items) of a series. None: as the
        data have it."""
        if most == 0:
            if self.ragged:
                raise Error(f"The data of {name!r} are a series: declare it with {'label_series' if label else 'series'}().")
            if dim is not None and dim != self.size:
                raise Error(f"The field {name!r} has {dim} numbers in setup and {self.size} in the data.")
            return self.size, 0
        if not self.series:
            raise Error(f"The data of {name!r} have one number for each datum and are no series; "
                        f"declare it with {'label' if label else 'field'}().")
        item = self.item if dim is None else dim
        if item != self.item and (self.item != 1 or item < 1 or any(i.size % item for p in self.parts for i in p)):
            raise Error(f"The items of the series {name!r} have {item} numbers in setup and {self.item} in the data.")
        have = max(1, self.size // item)
        if most is not None and most < have:
            raise Error(f"The data of {name!r} have up to {have} items, more than {most}.")
        return item, have if most is None else most

    def block(self, part: Any, dim: int, most: int) -> np.ndarray:
        """The rows of the table."""
        return pack_all(part, dim, most) if most else part.reshape(len(part), -1)


class DescribedColumn:
    """A field or a series of data that are not at hand."""

    ragged = False

    def __init__(self, dim: int, most: int) -> None:
        self.dim, self.most = dim, most

    def shape(self, name: str, dim: Optional[int], most: Optional[int], label: bool) -> tuple[int, int]:
        if (most == 0) != (self.most == 0) or dim not in (None, self.dim) or (most or self.most) != self.most:
            raise Error(f"The field {name!r} is not what the run was trained with; is this its model?")
        return self.dim, self.most


def _check_finite(name: str, part: Any) -> None:
    """Refuses a number that is not finite, by field, datum and place."""
    for i, x in enumerate(part) if isinstance(part, list) else [(None, part)]:
        wrong = np.argwhere(~np.isfinite(x))
        if len(wrong):
            at = [*([] if i is None else [i]), *map(int, wrong[0])]
            raise Error(f"The field {name!r} has {x[tuple(wrong[0])]} at {at}; data must be finite, and only a label may be NaN.")


class Arrays:
    """Data at hand: an array, or several of them by name."""

    def __init__(self, data: Any, test: Any = None, order: str = "shuffled", test_share: float = 0.0,
                 test_last: bool = False) -> None:
        self.order, self.share, self.last = orders(order), float(test_share), bool(test_last)
        parts = [read_columns(data)] + ([read_columns(test)] if test is not None else [])
        if any(list(p) != list(parts[0]) for p in parts):
            raise Error("The test data have other fields than the training data.")
        self.columns: dict[str, Union[Column, DescribedColumn]] = {n: Column(n, [p[n] for p in parts]) for n in parts[0]}

    def named(self, name: str) -> None:
        """A single array without a name belongs to the first field that is declared."""
        if "" in self.columns:
            self.columns = {name: self.columns[""]}

    def make(self, inner: _rws.Setup, declared: Sequence[Declared]) -> None:
        """Makes the library's table and the fields of its columns."""
        blocks: list[list[np.ndarray]] = [[], []]
        for d in declared:
            assert isinstance(d.column, Column)
            for k, part in enumerate(d.column.parts):
                if not d.label:
                    _check_finite(d.name, part)
                blocks[k].append(d.column.block(part, d.dim, d.most))
        train = np.ascontiguousarray(np.concatenate(blocks[0], axis=1), np.float32)
        test = np.ascontiguousarray(np.concatenate(blocks[1], axis=1), np.float32) if blocks[1] else train[:0]
        table = inner._numbers("the data", train, len(train), train.shape[1], test, len(test), self.order, self.share, self.last)
        at = 1
        for d in declared:
            width = 1 + d.dim * d.most if d.most else d.dim
            columns = f"{at}:{at + width - 1}"
            if d.most and d.label:
                inner._field(d.name, d.dim, d.most, True)
            elif d.most:
                table.row_series(d.name, columns, d.dim)
            elif d.label:
                table.label(d.name, columns)
            else:
                table.field(d.name, columns)
            at += width
        if any(d.most and d.label for d in declared):
            table.label("datum", "#")  # rows by number, by which Python finds series of labels


class Described:
    """Data that are not at hand, of which the folder of a run says what they were like."""

    def __init__(self, columns: Iterable[tuple[str, int, int]]) -> None:
        self.columns: dict[str, Union[Column, DescribedColumn]] = {n: DescribedColumn(dim, most) for n, dim, most in columns}

    def named(self, name: str) -> None:
        pass

    def make(self, inner: _rws.Setup, declared: Sequence[Declared]) -> None:
        for d in declared:
            inner._field(d.name, d.dim, d.most, d.label)


class Declared(NamedTuple):
    """What setup declares of a column."""

    name: str
    column: Union[Column, DescribedColumn]
    dim: int
    most: int
    label: bool


def _floats(name: str, x: Any) -> np.ndarray:
    """Numbers of a field as the library has them. Numbers that would lose their meaning are refused."""
    a = np.asanyarray(x.detach().cpu() if hasattr(x, "detach") else x)
    of = f"The field {name!r}" if name else "An array of data"
    if isinstance(a, np.ma.MaskedArray) and np.ma.getmaskarray(a).any():
        raise Error(f"{of} has masked numbers; leave these data out, or fill them in.")
    if a.dtype.kind not in "biufO":
        raise Error(f"{of} has values of the type {a.dtype}, and not numbers.")
    try:
        return np.asarray(a, np.float32)
    except (TypeError, ValueError) as e:
        raise Error(f"{of} has values that are no numbers: {e}.") from None


def _is_ragged(x: Any) -> bool:
    return isinstance(x, (list, tuple)) and len(x) > 0 and not np.isscalar(x[0]) and \
        len({len(i) for i in x if hasattr(i, "__len__")}) > 1


def read_columns(data: Any) -> dict[str, Any]:
    """Columns by name: arrays with a row for each datum, or lists of arrays of different length."""
    if hasattr(data, "to_dict") and hasattr(data, "columns"):  # a frame of pandas: one field for each column
        data = {str(c): data[c].to_numpy() for c in data.columns}
    if not isinstance(data, dict):
        data = {"": data}
    out: dict[str, Any] = {}
    n = None
    for name, x in data.items():
        if not isinstance(name, str):
            raise TypeError(f"The name of a field is a text, not {name!r}.")
        if isinstance(x, np.ndarray) and x.dtype == object:  # a column of a frame that has sequences in it
            x = list(x)
        if _is_ragged(x):
            x = [_floats(name, i) for i in x]
        else:
            x = _floats(name, x)
            if x.ndim == 0:
                raise Error("Data are arrays with a row for each datum, not a single number.")
        if len(x) == 0 or (n is not None and len(x) != n):
            raise Error(f"The field {name!r} has {len(x)} rows" + (f", and {next(iter(out))!r} has {n}" if n is not None else "") +
                        "; every field has a row for each datum, at least one.")
        n = len(x)
        out[name] = x
    if not out:
        raise Error("The data have no fields.")
    return out
