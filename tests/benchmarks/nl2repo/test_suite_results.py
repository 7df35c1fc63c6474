"""Figures of a verdict and JUnit XML from reports of hidden suites, worked out by hand, without containers."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree as ET

from metrics.failures import FAILURES
from runner.benchmarks.nl2repo.suite_results import (
    OUTCOMES,
    counts,
    junit,
    only_of,
    passed,
    read_reports,
    summary,
)

EXPECTED = ("t.py::good", "t.py::twice", "t.py::skips", "gone.py::test", "odd.py::test", "late.py::test")


def event(name: str, outcome: str, command: int = 0, **other: Any) -> dict[str, Any]:
    """Return the report of one test."""
    file = name.partition("::")[0]
    return {"event": "test", "id": name, "file": f"/{file}", "outcome": outcome, "command": command} | other


REPORTS: tuple[dict[str, Any], ...] = (
    event("t.py::good", "passed", seconds=0.25),
    event("t.py::twice", "failed", kind="AssertionError", message="assert 1 == 2", seconds=0.5),
    event("t.py::skips", "skipped", kind="Skipped"),
    event("x.py::extra", "passed"),
    event("t.py::good", "xpassed", command=1),
    event("t.py::good", "passed", command=1),
    event("t.py::twice", "passed", command=1),
    {
        "event": "collection",
        "command": 0,
        "id": "gone.py",
        "message": "E   KeyError: 1\nE   ModuleNotFoundError: x",
    },
    {
        "event": "collection",
        "command": 1,
        "id": "odd.py",
        "message": "ImportError while importing test module",
    },
    {"event": "command", "command": 0, "code": None, "seconds": 3.0},
    {"event": "command", "command": 1, "code": 1, "seconds": 0.5},
)


def lines(*reports: dict[str, Any]) -> str:
    return "\n".join(["no report", "[1]", *map(json.dumps, reports), '{"event": "test", "id": 3}'])


def test_an_expected_test_passes_if_it_passes_in_every_command() -> None:
    good = read_reports(lines(*REPORTS[:4]), 2)
    assert passed(good, EXPECTED) == {"t.py::good"}
    assert passed(good, None) == {"t.py::good", "x.py::extra"}
    assert passed(only_of(good, {"/x.py"}), None) == {"x.py::extra"}
    assert passed(read_reports(lines(*REPORTS), 2), EXPECTED) == set(), "the worst outcome of a test counts"
    assert passed(read_reports(lines(event("a", "passed"), event("a", "failed")), 2), None) == set()
    forged = read_reports(lines(*REPORTS[:4], {"event": "forged", "message": "changed: x"}), 2)
    assert passed(forged, EXPECTED) == set()
    assert summary(forged, ()) == "FORGED: changed: x; nothing of this run is believed"


def test_every_expected_test_that_did_not_pass_has_one_reason() -> None:
    found = counts(read_reports(lines(*REPORTS), 2), EXPECTED, late=True)
    outcomes = {"failed": 1, "skipped": 1, "xpassed": 1, "error": 0, "xfailed": 0}
    reasons = {"import": 2, "assertion": 1, "timeout": 1, "other": 2, "signature": 0}
    assert found == {
        **outcomes,
        "unreported": 3,
        "extra": 1,
        "uncollected": 2,
        **{f"failure_{kind}": reasons[kind] for kind in FAILURES},
    }
    assert outcomes.keys() == {*OUTCOMES} - {"passed"}
    early = counts(read_reports(lines(*REPORTS), 2), EXPECTED, late=False)
    assert (early["failure_timeout"], early["failure_other"]) == (0, 3)
    some = counts(read_reports(lines(*REPORTS[:4]), 2), EXPECTED, late=False)
    assert sum(some[f"failure_{kind}"] for kind in FAILURES) == len(EXPECTED) - 1, (
        "all except the one that passed"
    )
    everything = counts(read_reports(lines(*REPORTS), 2), None, late=False)
    assert (everything["extra"], everything["unreported"], everything["failure_import"]) == (0, 0, 0)


def test_a_test_that_fails_in_one_command_and_passes_in_the_other_has_failed() -> None:
    """Only the last command's outcome was counted, so such a test had neither passed nor failed."""
    words = [event("a", "failed", kind="AssertionError"), event("a", "passed", command=1)]
    for order in (words, words[::-1]):
        found = counts(read_reports(lines(*order), 2), ("a",), late=False)
        assert (found["failed"], found["failure_assertion"], found["failure_other"]) == (1, 1, 0)


def test_each_command_has_its_own_junit_xml_and_its_own_lines_of_the_summary() -> None:
    reported = read_reports(lines(*REPORTS), 2)
    first, second = (ET.fromstring(junit("pytest \0", at, reported))[0] for at in (0, 1))
    numbers = {name: value for name, value in first.attrib.items() if name != "name"}
    assert numbers == {"tests": "5", "failures": "1", "errors": "1", "skipped": "1", "time": "0.750"}
    assert (second.get("tests"), second.get("errors"), second.get("name")) == ("3", "1", "pytest \ufffd")
    assert [(case.get("classname"), case.get("name"), [tag.tag for tag in case]) for case in first] == [
        ("t.py", "good", []),
        ("t.py", "twice", ["failure"]),
        ("t.py", "skips", ["skipped"]),
        ("x.py", "extra", []),
        ("", "gone.py", ["error"]),
    ]
    assert [(tag.get("type"), tag.text) for tag in first[1]] == [("AssertionError", "assert 1 == 2")]
    assert [tag.text for tag in second[0]] == ["passed, and was expected to fail"]
    assert summary(reported, ("pytest", "pytest -x")) == (
        "$ pytest\n  its time limit after 3.0 s; 2 passed, 1 failed, 1 skipped\n"
        "$ pytest -x\n  exit code 1 after 0.5 s; 1 passed, 1 xpassed"
    )
