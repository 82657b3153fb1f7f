"""stubs.py FILE - writes the docstrings of the extension rws._rws into its stubs, FILE = python/rws/_rws.pyi.

The types are written in the stubs and the texts in C (python/src): a name that the stubs lack gets arguments and a result of any type,
which are then narrowed by hand. test_stubs.py fails if this script would change the file.
"""

import ast
import re
import sys
import textwrap


def text_of(real):
    """The docstring in C without its first line, "name(arguments)"."""
    return re.sub(r"^\w+\(.*?\)\n\n", "", real.__doc__ or "", flags=re.S)


def quoted(text, indent):
    """A docstring of lines that are not too long."""
    paragraphs = [textwrap.fill(" ".join(p.split()), 125 - indent, break_on_hyphens=False) for p in text.split("\n\n")]
    closing = '"""' if len(paragraphs) == 1 else '\n"""'
    return textwrap.indent('"""' + "\n\n".join(paragraphs) + closing, " " * indent).split("\n")


def edits(body, real_of, indent):
    """Yields (first line, last line, new lines) for every docstring, and for names that are missing."""
    for node in body:
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            continue
        real = real_of(node.name)
        first = node.body[0]
        has = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
        if has and real is not None and text_of(real):
            yield first.lineno, first.end_lineno, quoted(text_of(real), indent + 4)
        if isinstance(node, ast.ClassDef) and real is not None:
            yield from edits(node.body, vars(real).get, indent + 4)
            known = {n.name for n in node.body if isinstance(n, ast.FunctionDef)}
            for name in sorted(n for n in vars(real) if not n.startswith("_") and n not in known):
                new = [f"    def {name}(self, *args: Any) -> Any:"] + quoted(text_of(vars(real)[name]), 8)
                yield node.end_lineno + 1, node.end_lineno, new


def written(source, extension):
    """The stubs with the docstrings of the extension."""
    lines = source.split("\n")
    found = list(edits(ast.parse(source).body, lambda name: getattr(extension, name, None), 0))
    for first, last, new in sorted(found, key=lambda e: e[0], reverse=True):
        lines[first - 1:last] = new
    return "\n".join(lines)


if __name__ == "__main__":
    from rws import _rws
    with open(sys.argv[1]) as f:
        stubs = f.read()
    with open(sys.argv[1], "w") as f:
        f.write(written(stubs, _rws))
