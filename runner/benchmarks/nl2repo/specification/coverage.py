"""Measure how much of a package's public API a document names with the right signature (section 3.1.4). Pure."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterable

from runner.benchmarks.nl2repo.specification.entries import Entry
from runner.benchmarks.nl2repo.specification.inventory import parameters
from runner.benchmarks.nl2repo.specification.used_names import Use
from runner.records import Record

_ORDER = ("right", "otherwise", "missing")
_IMPORT = re.compile(r"^[ \t>.]*(?:from\s+[\w.]+\s+import\s+(?:\([^)]*\)|.*)|import\s+.*)$", re.MULTILINE)
"""Pattern of an import statement in a document."""


class Coverage(Record):
    """Names of a public API by how a document mentions them; modules do not count."""

    right: tuple[str, ...]
    """Names that are mentioned, with their signature if they have one."""
    otherwise: tuple[str, ...]
    """Names that are mentioned, but never with the right parameters."""
    missing: tuple[str, ...]

    @property
    def share(self) -> float:
        """Share of `right` among all names; 1 for an empty API."""
        everything = len(self.right) + len(self.otherwise) + len(self.missing)
        return len(self.right) / everything if everything else 1.0


def coverage(entries: Iterable[Entry], document: str) -> Coverage:
    """Compare a document with the entries of a package.

    A signature is right when some mention has the same parameter names in the same order. Annotations and defaults may
    be left out, but not the parentheses of a function without parameters; properties have none. Where several classes
    have a method of one name, a mention belongs to the class that was introduced last before it. Of several
    definitions of one name (overloads) the best counts. Dunder methods other than `__init__` do not count.
    """
    asked = [entry for entry in entries if entry.public and entry.kind != "module" and not _is_dunder(entry)]
    owners: dict[str, set[str]] = {}
    for entry in asked:
        if entry.kind in ("method", "property"):
            owners.setdefault(entry.short, set()).add(entry.owner)
    heads = {
        short: sorted((end, name) for name in names for end in _heads(name, document))
        for short, names in owners.items()
        if len(names) > 1  # the method of a single class may be named anywhere
    }
    best: dict[str, str] = {}
    for entry in asked:
        own = heads.get(entry.short) if entry.kind in ("method", "property") else None
        verdict = _verdict(entry, document, own)
        best[entry.name] = min(best.get(entry.name, verdict), verdict, key=_ORDER.index)
    named = {word: tuple(name for name, verdict in best.items() if verdict == word) for word in _ORDER}
    return Coverage(**named)


def unnamed(uses: Iterable[Use], document: str) -> list[Use]:
    """Return the uses of a suite whose names the document does not mention.

    A mention in an import statement does not count: it names a thing and says nothing about it.
    """
    told = _IMPORT.sub("", document)
    return [use for use in uses if not _ends(use.name, told)]


def _is_dunder(entry: Entry) -> bool:
    return entry.short.startswith("__") and entry.short != "__init__"


def _verdict(entry: Entry, document: str, heads: list[tuple[int, str]] | None) -> str:
    """Compare one entry. `heads`: places that introduce the classes with such a method; None if there is one class."""
    ends = _ends(entry.short, document)
    if heads is not None:
        ends = [end for end in ends if _last(heads, end) == entry.owner]
    if entry.short == "__init__":  # a class is called by its own name
        ends += _ends(entry.owner, document)
    if not ends:
        return "missing"
    if entry.parameters is None:
        return "right"
    right = (entry.parameters, _without_marks(entry.parameters))
    return "right" if any(_parameters_at(end, document) in right for end in ends) else "otherwise"


def _ends(name: str, document: str) -> list[int]:
    """Return the positions at which mentions of a name end."""
    return [match.end() for match in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", document)]


def _heads(name: str, document: str) -> list[int]:
    """Return where a class is introduced: headings, `class NAME`, `NAME.`; without the first two, all mentions.

    In a heading such as `class Number(Base)`, only what stands before the parenthesis is introduced.
    """
    word = rf"(?<!\w){re.escape(name)}(?!\w)"
    heads = re.finditer(rf"^#[^(\n]*{word}|\bclass\s+`*{word}", document, re.MULTILINE)
    own = [match.end() for match in re.finditer(rf"{word}(?=\.\w)", document)]
    return [*own, *([match.end() for match in heads] or _ends(name, document))]


def _last(heads: list[tuple[int, str]], end: int) -> str | None:
    """Return the class that was introduced last before a position."""
    at = bisect_left(heads, (end, ""))
    return heads[at - 1][1] if at else None


def _without_marks(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.lstrip("*") for name in names)


def _parameters_at(end: int, document: str) -> tuple[str, ...] | None:
    """Return the parameter names after a mention that ends at `end`; None if no signature follows."""
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
    """Return the text up to the closing parenthesis; None if that is missing or too far away."""
    depth = 1
    for at in range(start, min(len(text), start + 4000)):
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if not depth:
            return text[start:at]
    return None
