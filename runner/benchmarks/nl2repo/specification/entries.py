"""One thing that a package defines, and what of a module's body defines things."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Literal

from runner.records import Record

Kind = Literal["module", "class", "function", "method", "property", "constant"]


class Entry(Record):
    """One thing that a package defines."""

    kind: Kind
    name: str
    """Dotted, with its module: `jsonlines.jsonlines.Reader.read`."""
    signature: str = ""
    """Of functions and methods: what stands between the parentheses, and the result; of classes their bases."""
    parameters: tuple[str, ...] | None = None
    """Names of the parameters of functions and methods, without `self` and `cls`; None for anything else."""
    file: str
    line: int
    public: bool
    """No part of its name begins with `_`, dunder methods aside."""

    @property
    def short(self) -> str:
        """Its own name."""
        return self.name.rpartition(".")[2]

    @property
    def owner(self) -> str:
        """The name of the class or module that it stands in, without those around it."""
        return self.name.rpartition(".")[0].rpartition(".")[2]


def is_public(name: str) -> bool:
    """Whether no part of a dotted name begins with `_`, dunder names aside."""
    return not any(
        part.startswith("_") and not (part.startswith("__") and part.endswith("__"))
        for part in name.split(".")
    )


def statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """A body's statements, those of `if` and `try` among them: what depends on a version, or on a library."""
    for node in body:
        if isinstance(node, ast.If | ast.Try):
            yield from statements(node.body)
            yield from statements(node.orelse)
            for handler in getattr(node, "handlers", ()):
                yield from statements(handler.body)
        else:
            yield node
