"""Find private definitions with public names, as by `from ._core import Box` in a package's `__init__.py`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from runner.benchmarks.nl2repo.specification.entries import Entry, is_public, statements


class Import(NamedTuple):
    """Name that a module imports."""

    module: str
    """Dotted name of the importing module."""
    name: str
    """Name in that module; `*` for all public names."""
    origin: str
    """Dotted name of the imported object, as far as syntax tells."""


def imports(tree: ast.Module, module: str, *, is_package: bool) -> Iterator[Import]:
    """Yield every `from .. import ..` of a module's body."""
    parts = module.split(".")
    for node in statements(tree.body):
        if isinstance(node, ast.ImportFrom):
            above = parts[: len(parts) - node.level + is_package] if node.level else []
            origin = ".".join([*above, node.module] if node.module else above)
            for alias in node.names:
                yield Import(module, alias.asname or alias.name, f"{origin}.{alias.name}")


def exported(entries: Sequence[Entry], imported: Iterable[Import]) -> list[Entry]:
    """Return private entries under their public names, each once, under the shortest."""
    wanted = [each for each in imported if is_public(each.module)]
    aliases = {f"{each.module}.{each.name}": each.origin for each in imported if each.name != "*"}
    given: set[Entry] = set()
    found = []
    for module, name, origin in sorted(wanted, key=lambda each: each.module.count(".")):
        at = _defined(origin, aliases, {entry.name for entry in entries}).removesuffix(".*")
        to = module if name == "*" else f"{module}.{name}"
        for entry in entries:
            rest = entry.name.removeprefix(f"{at}.") if entry.name != at else ""
            mine = rest != entry.name and (rest or name != "*")
            if mine and not entry.public and entry not in given and is_public(f"{to}.{rest}".rstrip(".")):
                given.add(entry)
                found.append(entry.model_copy(update={"name": f"{to}.{rest}".rstrip("."), "public": True}))
    return found


def _defined(origin: str, aliases: dict[str, str], names: set[str]) -> str:
    """Follow a name through modules that only import it; return the name itself if that leads nowhere."""
    seen = set()
    while origin not in names and origin in aliases and origin not in seen:
        seen.add(origin)
        origin = aliases[origin]
    return origin
