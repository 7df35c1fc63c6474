"""`job=spec_inventory` and `job=spec_coverage`: list what a package defines, and how much of it a document names."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from pydantic import Field

from runner.benchmarks.nl2repo.specification.coverage import coverage, unnamed
from runner.benchmarks.nl2repo.specification.entries import Entry
from runner.benchmarks.nl2repo.specification.inventory import (
    assigned_attributes,
    code_lines,
    import_root,
    inventory,
)
from runner.benchmarks.nl2repo.specification.used_names import read_tests, used_names
from runner.errors import ConfigError
from runner.files import write_atomically
from runner.sweeps.cells import Job, Sweep

_PLURALS = {"class": "classes", "property": "properties"}


class SpecInventory(Job):
    """Job that lists modules, classes, functions, methods and constants of a package, with signatures and places."""

    path: Path
    """Folder of the package or of its source tree, or one file. Tests are left out."""
    into: Path | None = None
    """JSON file for the inventory; None only prints the inventory."""

    def run(self, sweep: Sweep) -> int:  # noqa: ARG002 - a job's signature
        """Return exit code 0. Raises `ConfigError` for files that are not Python."""
        entries = inventory(self.path)
        if self.into:
            write_inventory(entries, self.into)
        for entry in entries:
            print(f"{entry.kind:9}{entry.file}:{entry.line}  {entry.name}{entry.signature}")
        counts = Counter(entry.kind for entry in entries if entry.public)
        numbers = ", ".join(
            f"{count} {_PLURALS.get(kind, f'{kind}s')}" for kind, count in sorted(counts.items())
        )
        print(f"public: {numbers}; {code_lines(self.path)} lines of code")
        return 0


class SpecCoverage(Job):
    """Job that measures how much of a package's public API, and of what its tests use, a document names."""

    path: Path
    """See `SpecInventory.path`."""
    document: Path
    tests: Path | None = None
    """Folder or file of the tests; every name that they import or reach must then be in the document, too."""
    least: float = Field(default=0.0, ge=0, le=1)
    """Share below which the exit code is 4: of the public API, and of what the tests use."""

    def run(self, sweep: Sweep) -> int:  # noqa: ARG002 - a job's signature
        """Return exit code 0, or 4 below `least`. Raises `ConfigError` when something cannot be read."""
        try:
            text = self.document.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"job.document: {self.document} cannot be read: {error}.") from error
        entries = inventory(self.path)
        found = coverage(entries, text)
        places = {
            entry.name: f"{entry.file}:{entry.line}  {entry.name}{entry.signature}" for entry in entries
        }
        for title, names in (("not named", found.missing), ("named with other parameters", found.otherwise)):
            for name in names:
                print(f"{title}: {places[name]}")
        everything = len(found.right) + len(found.otherwise) + len(found.missing)
        print(
            f"{found.share:.1%} of the public API: {len(found.right)} of {everything} are named with their signature"
        )
        used = self._print_used(entries, text) if self.tests else 1.0
        return 0 if min(found.share, used) >= self.least else 4

    def _print_used(self, entries: list[Entry], document: str) -> float:
        """Print the names that the tests use and the document lacks. Return the share that it has."""
        tests = read_tests(self.tests or self.path, import_root(self.path))
        uses = used_names(tests, entries, assigned_attributes(self.path))
        lacking = unnamed(uses, document)
        for use in lacking:
            print(f"used by the tests, not named: {use.file}:{use.line}  {use.kind} {use.name}")
        share = 1 - len(lacking) / len(uses) if uses else 1.0
        print(
            f"{share:.1%} of what the tests use: {len(uses) - len(lacking)} of {len(uses)} names are in the document"
        )
        return share


def write_inventory(entries: list[Entry], into: Path) -> None:
    """Write the entries as a JSON list."""
    node = [entry.model_dump(mode="json") for entry in entries]
    into.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(into, json.dumps(node, indent=1).encode() + b"\n")
