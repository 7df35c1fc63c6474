"""Read the JUnit files that the verdict of a hidden suite left in a trial's folder.

Our verifier wrote them, without a DTD.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, cast
from xml.etree import ElementTree as ET

from runner.benchmarks.nl2repo.suite_results import Outcome, Reported, Result

LARGEST: Final = 16 << 20
"""Largest file of results that is read, in bytes."""
UNCOLLECTED: Final = "collection failure"
"""Message of the error of a file that could not be collected."""
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
            child = next((one for one in case if one.tag in ("failure", "error", "skipped")), None)
            if child is not None and child.get("message") == UNCOLLECTED:
                uncollected[command, name] = child.text or ""
                continue
            outcome = "passed" if child is None else child.get("message") or child.tag
            if case.find("system-out") is not None:
                outcome = "xpassed"
            results.append(
                Result(
                    id=name,
                    file=name.partition("::")[0],
                    outcome=cast("Outcome", outcome),
                    kind="" if child is None else child.get("type") or "",
                    message="" if child is None else child.text or "",
                    command=command,
                )
            )
    return Reported(tuple(results), uncollected, (), ())


def _cases(file: Path) -> list[ET.Element]:
    try:
        if file.stat().st_size > LARGEST:
            return []
        return list(ET.fromstring(file.read_bytes()).iter("testcase"))  # noqa: S314 - no DTD, see above
    except (OSError, ET.ParseError):
        return []
