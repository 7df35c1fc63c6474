"""Find the tests of hidden suites that no cell passes, which are where a document may be wrong (section 3.1.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from metrics.failures import FAILURES
from runner.benchmarks.nl2repo.suite_results import Reported, failure_of, passed
from runner.records import Record


class Attempt(NamedTuple):
    """A judged trial of a task."""

    cell: str
    reported: Reported
    believed: bool
    """True if the judge believed the report; nothing passes in another one."""
    late: bool
    """True if a command reached its time limit."""


class Unsolved(Record):
    """A test that no trial passed."""

    task: str
    test: str
    trials: int
    """Judged trials of the task."""
    cells: int
    """Cells of these trials."""
    kinds: Mapping[str, int]
    """Kind of failure (section 4.3.7) -> number of trials in which the test failed so."""
    example: str
    """Class and message of one of its failures of the most frequent kind; empty if nothing was heard of the test."""


def unsolved(task: str, expected: Iterable[str], attempts: Sequence[Attempt]) -> list[Unsolved]:
    """Return the expected tests that pass in none of the judged trials, in their order; none without trials."""
    if not attempts:
        return []
    ids = sorted(expected)
    solved = {id_ for one in attempts if one.believed for id_ in passed(one.reported, ids)}
    return [_unsolved(task, id_, attempts) for id_ in ids if id_ not in solved]


def most_frequent(found: Iterable[Unsolved]) -> dict[str, int]:
    """Return kind -> number of tests that fail mostly so, the first of `FAILURES` where several are as frequent."""
    counts = Counter(_mostly(one.kinds) for one in found)
    return {kind: counts[kind] for kind in FAILURES if counts[kind]}


def _unsolved(task: str, id_: str, attempts: Sequence[Attempt]) -> Unsolved:
    failures = [failure_of(id_, one.reported, late=one.late) for one in attempts]
    kinds = Counter(kind for kind, _ in failures)
    kind = _mostly(kinds)
    return Unsolved(
        task=task,
        test=id_,
        trials=len(attempts),
        cells=len({one.cell for one in attempts}),
        kinds={kind: kinds[kind] for kind in FAILURES if kinds[kind]},
        example=next((text for found, text in failures if found == kind and text), ""),
    )


def _mostly(kinds: Mapping[str, int]) -> str:
    return max(FAILURES, key=lambda kind: kinds.get(kind, 0))


def all_tests(attempts: Collection[Attempt]) -> set[str]:
    """Return every test of which a trial's report says something: what is known of a suite without a ground truth."""
    return {result.id for one in attempts for result in one.reported.results}
