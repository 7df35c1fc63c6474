"""What two runs of a project's tests say together."""

from __future__ import annotations

import pytest

from runner.benchmarks.project_setup.deliverables import Ended, Outcomes, Reading, Rerun
from runner.benchmarks.project_setup.ground_truth import agreed
from runner.errors import TaskError

TESTS: dict[str, Ended] = {"a": "passed", "b": "failed"}


def run(*tests: dict[str, Ended], failed: int = 1) -> Rerun:
    """Return a run of TAP with a reading for each of `tests`, which has two tests whether it names them or not."""
    outcomes = Outcomes(passed=2 - failed, failed=failed)
    readings = [Reading(framework="tap", outcomes=outcomes, tests=names, way="output") for names in tests]
    return Rerun(built=True, readings=tuple(readings))


def test_two_equal_runs_are_a_truth_with_names() -> None:
    truth = agreed(run(TESTS), run(TESTS))
    assert (truth.outcomes, truth.unnamed) == (Outcomes(passed=1, failed=1), "")
    assert truth.tests == {"tap a": "passed", "tap b": "failed"}


@pytest.mark.parametrize(
    ("first", "again", "why"),
    [
        (run({}), run({}), "tap printed no name of its own for each test"),
        (run(TESTS, {}), run(TESTS, {}), "tap printed no name of its own for each test"),
        (run(TESTS, TESTS), run(TESTS, TESTS), "tests of several runs have the same names"),
        (
            run({"a": "passed", "in /tmp/x1": "failed"}),
            run({"a": "passed", "in /tmp/x2": "failed"}),
            "1 names change from run to run, such as 'tap in /tmp/x1'",
        ),
    ],
    ids=["no names", "names of one run only", "names of two runs", "names that change"],
)
def test_a_truth_without_names_says_why(first: Rerun, again: Rerun, why: str) -> None:
    truth = agreed(first, again)
    assert (truth.tests, truth.unnamed) == ({}, why)
    assert truth.outcomes == first.outcomes


def test_other_numbers_or_other_ends_are_no_truth() -> None:
    with pytest.raises(TaskError, match="first tap 1 passed 1 failed 0 skipped, then tap 2 passed 0 failed"):
        agreed(run(TESTS), run({"a": "passed", "b": "passed"}, failed=0))
    with pytest.raises(TaskError, match="not reproducible: 2 ended in two ways, such as 'tap a'"):
        agreed(run(TESTS), run({"a": "failed", "b": "passed"}))
