"""Read the results of tests that frameworks write for machines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Final
from xml.parsers import expat

from runner.benchmarks.project_setup.deliverables import Ended, Outcomes

LARGEST: Final = 64 * 2**20
"""Largest file that is read, in bytes; it may hold the output of tests."""
_DEEPEST: Final = 64
"""Deepest nesting of elements."""
_TRS: Final = re.compile(rb"^:test-result: *(PASS|FAIL|XFAIL|XPASS|SKIP|ERROR)\b", re.MULTILINE)
_TRS_OUTCOMES: Final[Mapping[bytes, Ended]] = {b"PASS": "passed", b"SKIP": "skipped", b"XFAIL": "skipped"}


class _Refused(Exception):  # noqa: N818 - our own handlers end the parser with it
    """The file has a construct that no result of tests needs."""


class _Cases:
    """Reader of an XML file's elements that are tests."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.tests: dict[str, Ended] = {}
        """Name of each test -> its outcome, where the format names them."""
        self._path: list[str] = []

    def read(self, data: bytes) -> Outcomes:
        """Return the outcomes of all tests, without reading any other file. Raises `ExpatError` and `_Refused`."""
        parser = expat.ParserCreate()
        parser.StartDoctypeDeclHandler = self._refuse
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.Parse(data, True)  # noqa: FBT003 -- expat's own signature
        return Outcomes(**self.outcomes)

    def _refuse(self, *_: object) -> None:
        raise _Refused

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        if len(self._path) == _DEEPEST:
            raise _Refused
        self._path.append(name)
        self.start(name, attributes, self._path[-2] if len(self._path) > 1 else "")

    def _end(self, name: str) -> None:
        self._path.pop()
        self.end(name)

    def _text(self, text: str) -> None:
        self.text(self._path[-1], text)

    def start(self, name: str, attributes: Mapping[str, str], parent: str) -> None:
        """Handle the beginning of an element."""

    def text(self, name: str, text: str) -> None:
        """Handle text in an element."""

    def end(self, name: str) -> None:
        """Handle the end of an element."""


class _JUnit(_Cases):
    """Reader of JUnit XML. Elements for repetitions of a test do not change its outcome."""

    _outcome: Ended = "passed"
    _named = ""

    def start(self, name: str, attributes: Mapping[str, str], parent: str) -> None:
        if name == "testcase":
            self._outcome = "passed"
            self._named = f"{attributes.get('classname', '')}.{attributes.get('name', '')}"
        elif parent == "testcase" and name in {"failure", "error"}:
            self._outcome = "failed"
        elif parent == "testcase" and name == "skipped" and self._outcome == "passed":
            self._outcome = "skipped"

    def end(self, name: str) -> None:
        if name == "testcase":
            self.outcomes[self._outcome] += 1
            self.tests[self._named] = self._outcome


class _Dashboard(_Cases):
    """Reader of CTest's `Test.xml`. A test that was not run is skipped if the test or the project asked for that."""

    _status = ""
    _why = ""
    _named = ""

    def start(self, name: str, attributes: Mapping[str, str], parent: str) -> None:
        del parent
        if name == "Test":
            self._status, self._why = attributes.get("Status", ""), ""
        elif name == "NamedMeasurement":
            self._named = attributes.get("name", "")

    def text(self, name: str, text: str) -> None:
        if name == "Value" and self._named == "Completion Status":
            self._why += text

    def end(self, name: str) -> None:
        if name != "Test" or not self._status:
            return
        if self._status == "notrun":
            wanted = self._why.startswith(("Disabled", "SKIP_"))
            self.outcomes["skipped" if wanted else "failed"] += 1
        else:
            self.outcomes["passed" if self._status == "passed" else "failed"] += 1
        self._status = ""


def _trs(data: bytes) -> Outcomes:
    outcomes: Counter[str] = Counter(_TRS_OUTCOMES.get(found, "failed") for found in _TRS.findall(data))
    return Outcomes(**outcomes)


def _trs_tests(data: bytes, path: str) -> dict[str, Ended]:
    """Return the tests in a file of automake, which has the name of its program. Parts of it have numbers, too."""
    program = "/".join(PurePosixPath(path.removesuffix(".trs")).parts[-2:])
    found = _TRS.findall(data)
    names = [program] if len(found) == 1 else [f"{program} {number}" for number in range(1, len(found) + 1)]
    return {name: _TRS_OUTCOMES.get(result, "failed") for name, result in zip(names, found, strict=True)}


_READERS: Final[Mapping[str, Callable[[bytes], Outcomes]]] = {
    "surefire": lambda data: _JUnit().read(data),
    "gradle": lambda data: _JUnit().read(data),
    "ctest": lambda data: _Dashboard().read(data),
    "automake": _trs,
}


def read_tests(framework: str, data: bytes, path: str) -> dict[str, Ended]:
    """Return the name of each test in a file that `read_file` can read -> its outcome; empty if it names none."""
    if framework == "automake":
        return _trs_tests(data, path)
    if framework not in ("surefire", "gradle"):
        return {}
    cases = _JUnit()
    cases.read(data)
    return cases.tests


def read_file(framework: str, data: bytes) -> Outcomes | None:
    """Return the outcomes in one of this framework's `FILES`; None if it cannot be read, or has no tests."""
    if len(data) > LARGEST:
        return None
    try:
        outcomes = _READERS[framework](data)
    except (expat.ExpatError, _Refused, ValueError, LookupError):
        return None
    return outcomes if outcomes.total else None
