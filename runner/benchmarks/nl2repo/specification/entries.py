"""Definitions of a package, and the statements of a module that may define something."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Literal

from runner.records import Record

Kind = Literal["module", "class", "function", "method", "property", "constant"]


class Entry(Record):
    """Definition in a package."""

    kind: Kind
    name: str
    """Dotted name with the module: `jsonlines.jsonlines.Reader.read`."""
    signature: str = ""
    """Parameters in parentheses and result of a function or method; for classes their bases."""
    parameters: tuple[str, ...] | None = None
    """Names of the parameters of functions and methods, without `self` and `cls`; None for anything else."""
    file: str
    line: int
    public: bool
    """True if no part of the name begins with `_`, except dunder names."""

    @property
    def short(self) -> str:
        """Last part of the name."""
        return self.name.rpartition(".")[2]

    @property
    def owner(self) -> str:
        """Last part of the name of the enclosing class or module."""
        return self.name.rpartition(".")[0].rpartition(".")[2]


def is_public(name: str) -> bool:
    """Return whether no part of a dotted name begins with `_`, except dunder names."""
    return not any(
        part.startswith("_") and not (part.startswith("__") and part.endswith("__"))
        for part in name.split(".")
    )


def statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield a body's statements, including those in `if` and `try`, which depend on a version or a library.

    What runs only if the module is a program, under `if __name__ == "__main__"`, defines nothing for others.
    """
    for node in body:
        if isinstance(node, ast.If) and _is_program(node.test):
            continue
        if isinstance(node, ast.If | ast.Try):
            yield from statements(node.body)
            yield from statements(node.orelse)
            for handler in getattr(node, "handlers", ()):
                yield from statements(handler.body)
        else:
            yield node


def _is_program(test: ast.expr) -> bool:
    left = test.left if isinstance(test, ast.Compare) else None
    return isinstance(left, ast.Name) and left.id == "__name__"
