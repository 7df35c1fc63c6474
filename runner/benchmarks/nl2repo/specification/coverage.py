"""How much of a package's public API a document names with the right signature (section 3.1.4). Pure."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterable

from runner.benchmarks.nl2repo.specification.entries import Entry
from runner.benchmarks.nl2repo.specification.inventory import parameters
from runner.records import Record

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
    """Compare.

    A signature is right when some mention has the same parameter names in the same order; annotations and defaults may
    be left out, the parentheses of what has no parameters may not; properties have none. Where several classes have a
    method of one name, a mention is of the one of them that was told of last before it. Of several definitions of one
    name (overloads) the best counts. Dunder methods other than `__init__` are not asked for.
    """
    asked = [entry for entry in entries if entry.public and entry.kind != "module" and not _is_dunder(entry)]
    owners: dict[str, set[str]] = {}
    for entry in asked:
        if entry.kind in ("method", "property"):
            owners.setdefault(entry.short, set()).add(entry.owner)
    told = {
        short: sorted((end, name) for name in names for end in _heads(name, document))
        for short, names in owners.items()
        if len(names) > 1  # what one class alone has is that class's, wherever it is named
    }
    best: dict[str, str] = {}
    for entry in asked:
        verdict = _verdict(entry, document, told.get(entry.short))
        best[entry.name] = min(best.get(entry.name, verdict), verdict, key=_ORDER.index)
    named = {word: tuple(name for name, of in best.items() if of == word) for word in _ORDER}
    return Coverage(**named)


def _is_dunder(entry: Entry) -> bool:
    return entry.short.startswith("__") and entry.short != "__init__"


def _verdict(entry: Entry, document: str, told: list[tuple[int, str]] | None) -> str:
    """`told`: where it is told of the classes that have such a method; None: no matter."""
    ends = _ends(entry.short, document)
    if told is not None:
        ends = [end for end in ends if _last(told, end) == entry.owner]
    if entry.short == "__init__":  # a class is called by its own name
        ends += _ends(entry.owner, document)
    if not ends:
        return "missing"
    if entry.parameters is None:
        return "right"
    right = (entry.parameters, _without_marks(entry.parameters))
    return "right" if any(_parameters_at(end, document) in right for end in ends) else "otherwise"


def _ends(name: str, document: str) -> list[int]:
    """Where mentions of a name end."""
    return [match.end() for match in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", document)]


def _heads(name: str, document: str) -> list[int]:
    """Where a class begins to be told of: headings, `class NAME`, `NAME.`; without the former, wherever it is named."""
    word = rf"(?<!\w){re.escape(name)}(?!\w)"
    heads = re.finditer(rf"^#.*{word}|\bclass\s+`*{word}", document, re.MULTILINE)
    own = [match.end() for match in re.finditer(rf"{word}(?=\.\w)", document)]
    return [*own, *([match.end() for match in heads] or _ends(name, document))]


def _last(told: list[tuple[int, str]], end: int) -> str | None:
    """Who was told of last before a place."""
    at = bisect_left(told, (end, ""))
    return told[at - 1][1] if at else None


def _without_marks(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.lstrip("*") for name in names)


def _parameters_at(end: int, document: str) -> tuple[str, ...] | None:
    """Parameter names of the mention that ends here; None unless it reads like a signature."""
    opened = re.compile(r"\s*\(").match(document, end)
    inner = _balanced(document, opened.end()) if opened else None
    try:
        node = ast.parse(f"def f({inner}): pass").body[0] if inner is not None else None
    except (SyntaxError, ValueError):
        return None
    if not isinstance(node, ast.FunctionDef):
        return None
    names = parameters(node.args, bound=False)
    return names[1:] if names[:1] in (("self",), ("cls",)) else names


def _balanced(text: str, start: int) -> str | None:
    """Up to the parenthesis that closes; None if it does not within reason."""
    depth = 1
    for at in range(start, min(len(text), start + 4000)):
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if not depth:
            return text[start:at]
    return None
