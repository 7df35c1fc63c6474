"""Read the output of `go test`: plain, with `-v`, and with `-json`."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from runner.benchmarks.project_setup.deliverables import Ended, Outcomes
from runner.benchmarks.project_setup.frameworks.result_lines import NAME, Run, complete

_RUN: Final = re.compile(r"=== RUN +(\S+)$")
_TEST: Final = re.compile(r" *--- (PASS|FAIL|SKIP): (\S+) \(\d+\.\d+s\)$")
_PACKAGE: Final = re.compile(
    r"(ok|FAIL) *\t(\S+)(?:\t| )(?:\d[\d.]*s|\(cached\)|\[(?:build|setup) failed\])(.*)$"
)


_ENDS: Final[Mapping[str, Ended]] = {"pass": "passed", "fail": "failed", "skip": "skipped"}


class _Event(NamedTuple):
    action: str
    """The event: run, pass, fail or skip for a test; ok, no tests or broken for a package."""
    package: str
    """Name by which a package's events are found; empty in text, where packages follow each other."""
    test: str = ""
    name: str = ""
    """Name of the package, at its end."""


class _Package:
    """The tests of one package, as far as they were printed."""

    def __init__(self, first: int) -> None:
        self.first = self.last = first
        self._running: Counter[str] = Counter()
        self._ended: Counter[str] = Counter()
        self._named: dict[str, Ended] = {}

    def take(self, event: _Event, at: int) -> None:
        """Record that a test begins or ends."""
        self.last = at
        if event.action == "run":
            self._running[event.test] += 1
        else:
            self._running[event.test] -= 1
            self._ended[event.action] += 1
            self._named[event.test] = _ENDS[event.action]

    def outcomes(self, end: str = "") -> Outcomes:
        """Return the outcomes of the tests.

        Tests without an end have the package's outcome. A broken package has at least one failed test. Without `-v`
        passing tests are not printed, and the package counts as one test.
        """
        endless = (+self._running).total()
        passed, failed, skipped = (self._ended[action] for action in ("pass", "fail", "skip"))
        if end == "ok":
            passed += endless or not self._ended
        elif end == "broken":
            failed += endless or not failed
        return Outcomes(passed=passed, failed=failed, skipped=skipped)

    def run(self, package: str, at: int, end: str = "") -> Iterator[Run]:
        """Yield the package's run, if it has tests. A test's name begins with the package's."""
        if (outcomes := self.outcomes(end)).total:
            named = ((f"{package[-NAME:]} {test}", ended) for test, ended in self._named.items())
            yield Run(self.first, at, outcomes, complete(named, outcomes))


def read(lines: Sequence[str]) -> Iterator[Run]:
    """Yield a run for each package."""
    packages: dict[str, _Package] = {}
    verbose: Counter[str] = Counter()
    for at, line in enumerate(lines):
        if not (event := _json(line) if line.startswith("{") else _text(line)):
            continue
        verbose[event.package] += event.action == "run"
        if event.test and not verbose[event.package]:
            continue  # without -v failures are named too, but not counted alone
        package = packages.setdefault(event.package, _Package(at))
        if event.test:
            package.take(event, at)
            continue
        del packages[event.package], verbose[event.package]
        yield from package.run(event.name, at, event.action)
    for name, package in packages.items():
        yield from package.run(name, package.last)


def _text(line: str) -> _Event | None:
    """Read a line of text. Packages are printed one after the other, with their name at the end."""
    if match := _RUN.match(line):
        return _Event("run", "", match[1])
    if match := _TEST.match(line):
        return _Event(match[1].lower(), "", match[2])
    if match := _PACKAGE.match(line):
        good = "no tests" if "[no tests to run]" in match[3] else "ok"
        return _Event("broken" if match[1] == "FAIL" else good, "", name=match[2])
    return None


def _json(line: str) -> _Event | None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    action, package, test = (event.get(name, "") for name in ("Action", "Package", "Test"))
    if not all(isinstance(value, str) for value in (action, package, test)) or not package:
        return None
    if action not in {"run", "pass", "fail", "skip"}:
        return None
    if test:
        return _Event(action, package, test)
    return _Event("broken" if action == "fail" else "no tests", package, name=package)
