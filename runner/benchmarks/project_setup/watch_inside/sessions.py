"""Collect what pytest's plugin reports test by test, so that an aborted session keeps its results."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runner.benchmarks.project_setup.watch_inside.programs import digest, readable

OUTCOMES = ("passed", "failed", "skipped")


class Session:
    """One session of pytest, as far as it was reported."""

    def __init__(self) -> None:
        self._tests: dict[tuple[str, str], str] = {}
        self._files: dict[str, str] = {}
        self._plugins: dict[str, str] = {}

    def add(self, report: dict[str, Any]) -> None:
        """Add outcomes of tests. Digests of files are taken at the first report of one of their tests."""
        for name, outcome in report["tests"].items():
            if outcome not in OUTCOMES:
                raise ValueError(outcome)
            file, _, rest = name.partition("::")
            path = os.path.normpath(os.path.join(report["root"], file))  # noqa: PTH118
            self._tests[path, rest] = outcome
            if path not in self._files:
                self._files[path] = digest(path)
                self._look(_conftests(path, report["root"]))
        self._look(report["plugins"])

    def _look(self, plugins: Iterator[str] | list[str]) -> None:
        for path in plugins:
            if path not in self._plugins:
                self._plugins[path] = digest(path)

    def body(self) -> bytes:
        """Return tests by file, and digests of the files and of all plugins and conftest.py that they ran with."""
        tests = [(readable(path), readable(rest), outcome) for (path, rest), outcome in self._tests.items()]
        files, plugins = (
            {readable(path): found for path, found in digests.items()}
            for digests in (self._files, self._plugins)
        )
        return json.dumps({"tests": tests, "files": files, "plugins": plugins}).encode()


def _conftests(file: str, root: str) -> Iterator[str]:
    """Yield each conftest.py that pytest loads with a file: xdist's controller does not know what its workers load."""
    for folder in Path(file).parents:
        if os.path.isfile(path := f"{folder}/conftest.py"):  # noqa: PTH113
            yield path
        if str(folder) == root:
            return
