"""The section of a trial's page for NL2Repo-Bench: the hidden tests that did not pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from runner.benchmarks.nl2repo.report.junit_files import UNCOLLECTED, read_junit
from runner.benchmarks.nl2repo.suite_results import Reported
from runner.report.blocks import Column, Section, Table, TrialFolder, Value
from runner.report.hostile_text import shortened

LISTED: Final = 100
"""Most tests that are listed."""
MESSAGE: Final = 600
"""Longest message of a test, in characters."""


def failed_tests(trial: TrialFolder) -> Section | None:
    """Show the tests that failed or could not be collected, with their messages."""
    reported = read_junit(trial.folder)
    if reported is None:
        return None
    found = list(_failed(reported))
    columns = [Column(name, text=True) for name in ("test", "ending", "message")]
    rows = [
        [Value(shortened(trial.redacted(text), MESSAGE, from_end=True)) for text in test]
        for test in found[:LISTED]
    ]
    caption = f"{len(found)} tests failed, {len(rows)} of them shown"
    return Section("tests", "Failed tests", [Table(caption, columns, rows, "trial_table.html")])


def _failed(reported: Reported) -> Iterator[tuple[str, str, str]]:
    """Yield name, ending and message of each test that failed, and of each file that could not be collected."""
    for result in reported.results:
        if result.outcome in ("failed", "error"):
            yield result.id, result.kind or result.outcome, result.message
    for (_, name), message in reported.uncollected.items():
        yield name, UNCOLLECTED, message
