"""How much of a package's public API a document names with the right signature (section 3.1.4). Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from runner.records import Record
from runner.specification.inventory import Entry, parameters

_ORDER = ("right", "otherwise", "missing")


class Coverage(Record):
    """What a document says of a public API; modules are named by what they hold and are not counted."""

    right: tuple[str, ...]
    """Named, and where there is a signature, with it."""
    otherwise: tuple[str, ...]
    """Named, and never with these parameters."""
    missing: tuple[str, ...]

    @property
    def share(self) -> float:
        """`right` / all; 1 for an API of nothing."""
        everything = len(self.right) + len(self.otherwise) + len(self.missing)
        return len(self.right) / everything if everything else 1.0


def coverage(entries: Iterable[Entry], document: str) -> Coverage:
    """Compare. A signature is right when some mention has the same parameter names in the same order; annotations and
    defaults may be left out. Of several definitions of one name (overloads) the best counts. Dunder methods other than
    `__init__` are not asked for.
    """
    best: dict[str, str] = {}
    for entry in entries:
        dunder = entry.short.startswith("__") and entry.short != "__init__"
        if entry.public and entry.kind != "module" and not dunder:
            verdict = _verdict(entry, document)
            best[entry.name] = min(best.get(entry.name, verdict), verdict, key=_ORDER.index)
    named = {word: tuple(name for name, of in best.items() if of == word) for word in _ORDER}
    return Coverage(**named)


def _verdict(entry: Entry, document: str) -> str:
    # A class is called by its own name, and its `__init__` may be told so.
    names = [entry.short, entry.name.split(".")[-2]] if entry.short == "__init__" else [entry.short]
    if not any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", document) for name in names):
        return "missing"
    if entry.parameters is None or any(
        said in (entry.parameters, _without_marks(entry.parameters))
        for name in names
        for said in _mentions(name, document)
    ):
        return "right"
    if (
        not entry.parameters
        and re.search(rf"(?<!\w){re.escape(names[-1])}(?!\w|\()", document)
        and _is_property(entry)
    ):
        return "right"
    return "otherwise"


def _is_property(entry: Entry) -> bool:
    """Whether a method without parameters may be told as an attribute."""
    return entry.kind == "method" and entry.short != "__init__"


def _without_marks(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.lstrip("*") for name in names)


def _mentions(name: str, document: str) -> Iterator[tuple[str, ...]]:
    """Parameter names of each mention of `name(...)` that reads like a signature."""
    for match in re.finditer(rf"(?<!\w){re.escape(name)}\s*\(", document):
        inner = _balanced(document, match.end())
        if inner is None:
            continue
        try:
            node = ast.parse(f"def f({inner}): pass").body[0]
        except (SyntaxError, ValueError):
            continue
        if isinstance(node, ast.FunctionDef):
            names = parameters(node.args, bound=False)
            yield names[1:] if names[:1] in (("self",), ("cls",)) else names


def _balanced(text: str, start: int) -> str | None:
    """Up to the parenthesis that closes; None if it does not within reason."""
    depth = 1
    for at in range(start, min(len(text), start + 4000)):
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if not depth:
            return text[start:at]
    return None
