"""Sessions of pytest as its plugin tells them, test by test: one that is ended on the way has told what it did."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runner.benchmarks.project_setup.watch_inside.programs import digest, readable

OUTCOMES = ("passed", "failed", "skipped")


class Session:
    """What is known of one of them."""

    def __init__(self) -> None:
        self._tests: dict[tuple[str, str], str] = {}
        self._files: dict[str, str] = {}
        self._plugins: dict[str, str] = {}

    def add(self, told: dict[str, Any]) -> None:
        """Outcomes of tests; files are as they were when the first of their tests was told."""
        for name, outcome in told["tests"].items():
            if outcome not in OUTCOMES:
                raise ValueError(outcome)
            file, _, rest = name.partition("::")
            path = os.path.normpath(os.path.join(told["root"], file))  # noqa: PTH118
            self._tests[path, rest] = outcome
            if path not in self._files:
                self._files[path] = digest(path)
                self._look(_conftests(path, told["root"]))
        self._look(told["plugins"])

    def _look(self, plugins: Iterator[str] | list[str]) -> None:
        for path in plugins:
            if path not in self._plugins:
                self._plugins[path] = digest(path)

    def body(self) -> bytes:
        """Its tests by file, and digests of the files and of every plugin, each conftest.py too, that they ran with."""
        tests = [(readable(path), readable(rest), outcome) for (path, rest), outcome in self._tests.items()]
        files, plugins = (
            {readable(path): held for path, held in digests.items()}
            for digests in (self._files, self._plugins)
        )
        return json.dumps({"tests": tests, "files": files, "plugins": plugins}).encode()


def _conftests(file: str, root: str) -> Iterator[str]:
    """Those that pytest loads with a file: who controls workers knows nothing of what they load."""
    for folder in Path(file).parents:
        if os.path.isfile(path := f"{folder}/conftest.py"):  # noqa: PTH113
            yield path
        if str(folder) == root:
            return
