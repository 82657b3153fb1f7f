"""The code that a model in Python is made of: its fingerprint, and what can be seen in it without running it."""

from __future__ import annotations

import dis
import hashlib
import sys
import types
from typing import Any, Iterator, Optional

#: The version of the interpreter: another one compiles the same text to other code, which is not compared.
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


def _package(module: Optional[str]) -> str:
    return (module or "").split(".")[0]


def _functions_of(value: Any) -> Iterator[types.FunctionType]:
    """The functions behind a function, method, property or class."""
    if isinstance(value, (staticmethod, classmethod, types.MethodType)):
        value = value.__func__
    if isinstance(value, property):
        for f in (value.fget, value.fset):
            yield from _functions_of(f)
    elif isinstance(value, type):
        for part in vars(value).values():
            yield from _functions_of(part)
    elif isinstance(getattr(value, "__wrapped__", None), types.FunctionType):
        yield value.__wrapped__
    elif isinstance(value, types.FunctionType):
        yield value


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            yield from _names(part)


def _called(f: types.FunctionType, home: str) -> Iterator[types.FunctionType]:
    """Functions of the package `home` that the code of f names: globals, their attributes, and what it closes over."""
    cells = [c.cell_contents for c in f.__closure__ or () if _filled(c)]
    names = list(_names(f.__code__))
    found = [f.__globals__[n] for n in names if n in f.__globals__] + cells
    for value in list(found):
        if isinstance(value, types.ModuleType) and _package(value.__name__) == home:
            found += [vars(value)[n] for n in names if n in vars(value)]
    for value in found:
        for g in _functions_of(value):
            if _package(g.__module__) == home:
                yield g


def _filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def functions(model: Any) -> dict[str, types.FunctionType]:
    """The functions of a model by name: of its class and the classes above it, but for the package rws itself, those that it was made
    of, and those of the same package that they call."""
    home = _package(type(model).__module__)
    waiting = [f for c in type(model).__mro__ if _package(c.__module__) not in ("rws", "builtins", "typing", "abc")
               for part in vars(c).values() for f in _functions_of(part)]
    waiting += [f for part in vars(model).values() if callable(part) for f in _functions_of(part)]
    made_of = getattr(model, "_functions", ())
    if made_of:
        home = _package(made_of[0].__module__)
        waiting += [f for part in made_of for f in _functions_of(part)]
    found: dict[str, types.FunctionType] = {}
    while waiting:
        f = waiting.pop()
        name = f"{f.__module__}.{f.__qualname__}"
        if name in found or _package(f.__module__) == "rws":
            continue
        found[name] = f
        waiting += _called(f, home)
    return found


def _text(value: Any) -> str:
    """A constant as text that is the same in every process: sets in order."""
    if isinstance(value, types.CodeType):
        return _code_text(value)
    if isinstance(value, (tuple, list)):
        return "(" + ",".join(map(_text, value)) + ")"
    if isinstance(value, frozenset):
        return "{" + ",".join(sorted(map(_text, value))) + "}"
    return repr(value)


def _code_text(code: types.CodeType) -> str:
    documentation = code.co_consts[0] if code.co_consts and isinstance(code.co_consts[0], str) else None
    constants = [c for i, c in enumerate(code.co_consts) if not (i == 0 and c == documentation)]
    return "|".join([code.co_code.hex(), _text(constants), _text(code.co_names), _text(code.co_varnames), _text(code.co_freevars)])


def fingerprint(model: Any) -> dict[str, Any]:
    """What a run's folder keeps of the code of its model."""
    module = type(model).__module__
    codes = {}
    for name, f in functions(model).items():
        defaults = _text((f.__defaults__ or ())) if all(_plain(x) for x in f.__defaults__ or ()) else ""
        short = name[len(module) + 1:] if name.startswith(module + ".") else name
        codes[short] = hashlib.sha256((_code_text(f.__code__) + defaults).encode()).hexdigest()[:32]
    return {"python": VERSION, "functions": dict(sorted(codes.items()))}


def _plain(x: Any) -> bool:
    return x is None or isinstance(x, (bool, int, float, str, bytes)) or isinstance(x, tuple) and all(map(_plain, x))


def differences(before: Any, now: dict[str, Any]) -> list[str]:
    """What differs between two fingerprints, as parts of a sentence. `before` is read from a file. Code of another version of Python is
    not compared."""
    a, b = before.get("functions") if isinstance(before, dict) else None, now["functions"]
    if not isinstance(a, dict):
        return ["the record of its code is damaged"]
    if before.get("python") != now["python"]:
        return []
    changed = sorted(n for n in a if n in b and a[n] != b[n])
    gone, new = sorted(n for n in a if n not in b), sorted(n for n in b if n not in a)
    return [f"{', '.join(names)} {what}" for names, what in ((changed, "changed"), (gone, "gone"), (new, "new")) if names]


_SETS = {"set", "frozenset"}


def _loops_over_sets(code: types.CodeType) -> Iterator[int]:
    """The lines where code iterates over a set that it has just made."""
    line, last, called = code.co_firstlineno, None, ""
    for i in dis.get_instructions(code):
        line = i.starts_line if isinstance(i.starts_line, int) and not isinstance(i.starts_line, bool) else line
        if i.opname == "GET_ITER" and last is not None:
            constant = last.opname == "LOAD_CONST" and isinstance(last.argval, frozenset)
            if last.opname in ("BUILD_SET", "SET_UPDATE") or constant or (last.opname.startswith("CALL") and called in _SETS):
                yield line
        if i.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            called = str(i.argval)
        elif i.opname.startswith(("LOAD_ATTR", "LOAD_METHOD")):
            called = ""
        if i.opname not in ("CACHE", "PRECALL", "RESUME"):
            last = i
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            yield from _loops_over_sets(part)


def loops_over_sets(model: Any) -> list[tuple[str, int]]:
    """(function, line) wherever the code of a model iterates over a set that it has just made."""
    return [(name, line) for name, f in functions(model).items() for line in _loops_over_sets(f.__code__)]
