"""Read the JUnit files that the verdict of a hidden suite left in a trial's folder.

Our verifier wrote them, without a DTD.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

from runner.benchmarks.nl2repo.suite_results import OUTCOMES, Outcome, Reported, Result

LARGEST: Final = 16 << 20
"""Largest file of results that is read, in bytes."""
UNCOLLECTED: Final = "collection failure"
"""Message of the error of a file that could not be collected."""
TAGS: Final[dict[str, Outcome]] = {"failure": "failed", "error": "error", "skipped": "skipped"}
"""Element of a case that did not pass -> its outcome, where nothing more exact is known."""
_NUMBER = re.compile(r"junit-(\d+)\.xml")


def read_junit(folder: Path) -> Reported | None:
    """Return the results of all commands; None if there is no file. A file that cannot be read counts as empty."""
    files = sorted(folder.glob("junit-*.xml"))
    if not files:
        return None
    results: list[Result] = []
    uncollected: dict[tuple[int, str], str] = {}
    for file in files:
        number = _NUMBER.fullmatch(file.name)
        command = int(number[1]) if number else 0
        for case in _cases(file):
            name = "::".join(filter(None, (case.get("classname"), case.get("name"))))
            child = next((one for one in case if one.tag in TAGS), None)
            if child is not None and child.get("message") == UNCOLLECTED:
                uncollected[command, name] = child.text or ""
                continue
            results.append(
                Result(
                    id=name,
                    file=name.partition("::")[0],
                    outcome=_outcome(case, child),
                    kind="" if child is None else child.get("type") or "",
                    message="" if child is None else child.text or "",
                    command=command,
                )
            )
    return Reported(tuple(results), uncollected, (), ())


def _outcome(case: ET.Element, child: ET.Element | None) -> Outcome:
    """Return how a test ended, also from a file that another program wrote, which has no outcome as its message."""
    if case.find("system-out") is not None:
        return "xpassed"
    if child is None:
        return "passed"
    message = child.get("message")
    return message if message in OUTCOMES else TAGS[child.tag]


def _cases(file: Path) -> list[ET.Element]:
    try:
        if file.stat().st_size > LARGEST:
            return []
        return list(ET.fromstring(file.read_bytes()).iter("testcase"))  # noqa: S314 - no DTD, see above
    except (OSError, ET.ParseError):
        return []
