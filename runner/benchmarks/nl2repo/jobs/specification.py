"""`job=spec_inventory` and `job=spec_coverage`: list what a package defines, and how much of it a document names."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from pydantic import Field

from runner.benchmarks.nl2repo.specification.coverage import coverage
from runner.benchmarks.nl2repo.specification.entries import Entry
from runner.benchmarks.nl2repo.specification.inventory import code_lines, inventory
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
    """Job that measures how much of a package's public API a document names with the right signature."""

    path: Path
    """See `SpecInventory.path`."""
    document: Path
    least: float = Field(default=0.0, ge=0, le=1)
    """Share below which the exit code is 4."""

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
        return 0 if found.share >= self.least else 4


def write_inventory(entries: list[Entry], into: Path) -> None:
    """Write the entries as a JSON list."""
    node = [entry.model_dump(mode="json") for entry in entries]
    into.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(into, json.dumps(node, indent=1).encode() + b"\n")
