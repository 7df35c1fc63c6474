"""Put a document together: the paper's four sections, from the inventory, the tests' imports and what was written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from runner.benchmarks.nl2repo.specification.entries import Entry
from runner.benchmarks.nl2repo.suite import covered

UNWRITTEN = "TODO"
"""Word that stands in a document where its author still has to write."""
DOCUMENT = """\
# {name}

## Project Description

{overview}

## Supports

{name} {version} is a Python library. Packages that it and its tests need: {packages}

Its files, without the tests:

```
{tree}
```

## API Usage Guide

These statements import what the tests use:

```python
{imports}
```

{api}## Implementation Nodes

{examples}
"""
_LEFT_OUT = ("PKG-INFO", "setup.cfg.orig")
"""Files of a source distribution that are not the project's own."""


class Facts(NamedTuple):
    """The parts of a document that are computed from the library; the other parts are written."""

    name: str
    version: str
    packages: Sequence[str]
    """Requirements of library and tests, each `name==version`."""
    tree: Sequence[str]
    """Paths of all files but the tests."""
    imports: Sequence[str]
    """Statements by which the tests import the library."""
    entries: Sequence[Entry]
    """Entries to describe, with the modules that hold them."""


def document(facts: Facts, overview: str, examples: str, described: Callable[[Entry], str]) -> str:
    """Return the document. `described` gives the description of an entry; modules have none."""
    return DOCUMENT.format(
        name=facts.name,
        version=facts.version,
        overview=overview.strip(),
        packages=", ".join(facts.packages) or "none.",
        tree="\n".join(facts.tree),
        imports="\n".join(facts.imports),
        api="".join(_section(entry, described) for entry in facts.entries),
        examples=examples.strip(),
    )


def tree(source: Path, tests: Sequence[str]) -> list[str]:
    """Return the sorted paths of a library's files, without tests, hidden files and what a build adds (C.3.2)."""
    paths = (
        path.relative_to(source) for path in source.rglob("*") if path.is_file() and not path.is_symlink()
    )
    return sorted(
        path.as_posix()
        for path in paths
        if not covered(path.as_posix(), tuple(tests))
        and not any(
            part.startswith(".") or part.endswith(".egg-info") or part == "__pycache__" for part in path.parts
        )
        and path.as_posix() not in _LEFT_OUT
        and path.as_posix().isprintable()
    )


def _section(entry: Entry, described: Callable[[Entry], str]) -> str:
    if entry.kind == "module":
        return f"### Module `{entry.name}`\n\n"
    if entry.kind == "class":
        return f"#### class `{entry.short}({entry.signature})`\n\n{described(entry).strip()}\n\n"
    signature = "" if entry.parameters is None else entry.signature
    return f"##### {entry.kind} `{_within(entry)}{signature}`\n\n{described(entry).strip()}\n\n"


def _within(entry: Entry) -> str:
    """Return the name of an entry, after that of its class if it has one."""
    return f"{entry.owner}.{entry.short}" if entry.kind in ("method", "property") else entry.short
