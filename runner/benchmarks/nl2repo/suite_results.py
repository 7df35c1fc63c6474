"""Results of a hidden suite: which tests count, why others fail, and JUnit XML of each command."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Literal, NamedTuple
from xml.etree import ElementTree as ET

from pydantic import Field, TypeAdapter, ValidationError

from metrics.failures import FAILURES, failure_kind
from runner.records import Record

Outcome = Literal["passed", "failed", "error", "skipped", "xfailed", "xpassed"]
OUTCOMES: tuple[Outcome, ...] = ("passed", "failed", "error", "skipped", "xfailed", "xpassed")
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot hold."""


class Result(Record):
    """Result of one test in one command."""

    id: str
    file: str
    """Absolute path, inside the sandbox, of the file that pytest collected the test from."""
    outcome: Outcome
    seconds: float = 0.0
    kind: str = ""
    """Class name of the exception, if any."""
    message: str = ""
    command: int


class Ended(Record):
    """End of one command."""

    event: Literal["command"] = "command"
    command: int
    code: int | None
    """Exit code; None at the time limit."""
    seconds: float


class _Test(Result):
    event: Literal["test"]


class _Collection(Record):
    event: Literal["collection"]
    command: int
    id: str
    message: str = ""


class _Forged(Record):
    event: Literal["forged"]
    command: int = 0
    message: str


_Report = _Test | _Collection | _Forged | Ended
_REPORT: TypeAdapter[_Report] = TypeAdapter(Annotated[_Report, Field(discriminator="event")])


class Reported(NamedTuple):
    """Report of one run of all commands."""

    results: tuple[Result, ...]
    """Worst result of each (command, id), so that a forged second report cannot improve a test."""
    uncollected: Mapping[tuple[int, str], str]
    """(command, file whose collection failed) -> the end of the error."""
    forged: tuple[str, ...]
    """Reasons to believe nothing of the report."""
    commands: tuple[Ended, ...]
    """Ends of the commands."""


def read_reports(text: str, commands: int) -> Reported:
    """Read the lines that `launch.py` wrote about so many commands. Other lines are left out."""
    results: dict[tuple[int, str], Result] = {}
    uncollected: dict[tuple[int, str], str] = {}
    forged: list[str] = []
    ended: dict[int, Ended] = {}
    for line in text.split("\n"):
        try:
            report = _REPORT.validate_json(line)
        except ValidationError:
            continue
        if not 0 <= report.command < commands:
            continue
        match report:
            case _Test():
                earlier = results.setdefault((report.command, report.id), report)
                if earlier.outcome == "passed":
                    results[report.command, report.id] = report
            case _Collection():
                uncollected[report.command, report.id] = report.message
            case _Forged():
                forged.append(report.message)
            case Ended():
                ended.setdefault(report.command, report)
    return Reported(tuple(results.values()), uncollected, tuple(dict.fromkeys(forged)), tuple(ended.values()))


def only_of(reported: Reported, files: Collection[str]) -> Reported:
    """Return the report reduced to the tests in these files, whatever the tests' ids say."""
    return reported._replace(results=tuple(result for result in reported.results if result.file in files))


def passed(reported: Reported, expected: Collection[str] | None) -> set[str]:
    """Return the ids of passed tests: expected tests that passed in every command that ran them."""
    if reported.forged:
        return set()
    outcomes: dict[str, set[str]] = {}
    for result in reported.results:
        outcomes.setdefault(result.id, set()).add(result.outcome)
    good = {id_ for id_, found in outcomes.items() if found == {"passed"}}
    return good if expected is None else good.intersection(expected)


def counts(reported: Reported, expected: Collection[str] | None, *, late: bool) -> dict[str, float]:
    """Return the figures of a verdict over the tests that count. `late`: a test command reached its time limit.

    The figures are the `OUTCOMES` except passed; `unreported` expected tests; `extra` tests that are not expected;
    `uncollected` files; and `failure_<kind>`, the expected tests that did not pass, by the failure taxonomy (section
    4.3.7). A test has passed only if it passed in every command that ran it.
    """
    passes_first = sorted(reported.results, key=lambda result: result.outcome != "passed")
    mine = {result.id: result for result in passes_first if expected is None or result.id in expected}
    outcomes = Counter(result.outcome for result in mine.values())
    good = passed(reported, expected)
    files = {file: message for (_, file), message in reported.uncollected.items()}
    kinds = Counter(
        _kind(id_, mine.get(id_), files, late=late) for id_ in (expected or mine) if id_ not in good
    )
    return {
        **{outcome: float(outcomes[outcome]) for outcome in OUTCOMES if outcome != "passed"},
        "unreported": float(len(set(expected or ()) - mine.keys())),
        "extra": float(len({result.id for result in reported.results} - mine.keys())),
        "uncollected": float(len(files)),
        **{f"failure_{kind}": float(kinds[kind]) for kind in FAILURES},
    }


def failure_of(id_: str, reported: Reported, *, late: bool) -> tuple[str, str]:
    """Return the kind of failure of a test that did not pass, and the exception and message that say so, if any.

    `late`: whether a test command reached its time limit, which explains tests of which nothing was heard.
    """
    results = [result for result in reported.results if result.id == id_]
    worst = min(results, key=lambda result: result.outcome == "passed", default=None)
    files = {file: message for (_, file), message in reported.uncollected.items()}
    text = f"{worst.kind}: {worst.message}" if worst else files.get(id_.partition("::")[0], "")
    return _kind(id_, worst, files, late=late), text.strip(": ")


def _kind(id_: str, result: Result | None, uncollected: Mapping[str, str], *, late: bool) -> str:
    if result:
        return failure_kind(result.kind, result.message)
    file = id_.partition("::")[0]
    if file in uncollected:
        return failure_kind(*_last_error(uncollected[file]))
    return failure_kind("timeout" if late else "", "")


def _last_error(text: str) -> tuple[str, str]:
    """Return class and message of the last exception in a traceback of pytest."""
    found = re.findall(r"^E\s+([\w.]+(?:Error|Exception|Failed|Exit))\b:? ?(.*)$", text, re.MULTILINE)
    return found[-1] if found else ("ImportError" if "ImportError" in text else "", text)


def junit(command: str, index: int, reported: Reported) -> bytes:
    """Return JUnit XML of one command. As in pytest's own, a file that was not collected is a test with an error."""
    results = [result for result in reported.results if result.command == index]
    uncollected = {file: why for (at, file), why in reported.uncollected.items() if at == index}
    outcomes = Counter(result.outcome for result in results)
    suite = ET.Element(
        "testsuite",
        name=_printable(command),
        tests=str(len(results) + len(uncollected)),
        failures=str(outcomes["failed"]),
        errors=str(outcomes["error"] + len(uncollected)),
        skipped=str(outcomes["skipped"] + outcomes["xfailed"]),
        time=f"{sum(result.seconds for result in results):.3f}",
    )
    for result in results:
        _case(suite, result)
    for name, message in uncollected.items():
        case = ET.SubElement(suite, "testcase", classname="", name=_printable(name), time="0")
        ET.SubElement(case, "error", message="collection failure").text = _printable(message)
    root = ET.Element("testsuites")
    root.append(suite)
    text: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return text


def _case(suite: ET.Element, result: Result) -> None:
    path, _, name = result.id.partition("::")
    case = ET.SubElement(
        suite, "testcase", classname=_printable(path), name=_printable(name), time=f"{result.seconds:.3f}"
    )
    tags = {"failed": "failure", "error": "error", "skipped": "skipped", "xfailed": "skipped"}
    if tag := tags.get(result.outcome):
        kind = "pytest.xfail" if result.outcome == "xfailed" else _printable(result.kind)
        ET.SubElement(case, tag, type=kind, message=result.outcome).text = _printable(result.message)
    elif result.outcome == "xpassed":
        ET.SubElement(case, "system-out").text = "passed, and was expected to fail"


def _printable(text: str) -> str:
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def summary(reported: Reported, commands: Sequence[str]) -> str:
    """Return text on how each command ended, with its numbers of tests."""
    lines = [f"FORGED: {reason}; nothing of this run is believed" for reason in reported.forged]
    for ended in reported.commands:
        index = ended.command
        outcomes = Counter(result.outcome for result in reported.results if result.command == index)
        found = ", ".join(f"{outcomes[outcome]} {outcome}" for outcome in OUTCOMES if outcomes[outcome])
        how = "its time limit" if ended.code is None else f"exit code {ended.code}"
        lines.append(f"$ {commands[index]}\n  {how} after {ended.seconds:.1f} s; {found or 'no tests'}")
    return "\n".join(lines)
