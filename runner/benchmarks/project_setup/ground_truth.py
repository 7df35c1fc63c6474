"""Find the ground truth of a project: run its recorded scripts here, twice (section 3.1.2)."""

from __future__ import annotations

from pathlib import Path

from runner.benchmarks.project_setup.deliverables import DOCKERFILE, SCRIPT, Outcomes, Rerun, Truth
from runner.benchmarks.project_setup.rerun import Deliverables, rerun
from runner.errors import TaskError
from runner.protocols import SandboxProvider
from runner.records import Task

ORIGIN = "recorded scripts, run here twice"
"""Value of `Truth.origin` for a truth that was found here."""


def found_twice(task: Task, delivered: Deliverables, sandboxes: SandboxProvider) -> Truth:
    """Return what the tests of a project do under these scripts, run twice, without a digest.

    Raises `TaskError` when no test is executed or the two runs differ, and `EngineError`.
    """
    first, again = (_once(task, delivered, sandboxes) for _ in range(2))
    return agreed(first, again)


def agreed(first: Rerun, again: Rerun) -> Truth:
    """Return the truth that two runs show, without a digest. Raises `TaskError` when they differ.

    A test's name may hold what changes with each run, such as a temporary folder. Then the truth has only numbers.
    """
    if first.outcomes != again.outcomes:
        raise _differ(f"first {_results(first)}, then {_results(again)}")
    if moved := [name for name, end in first.tests.items() if again.tests.get(name, end) != end]:
        raise _differ(f"{len(moved)} ended in two ways, such as {moved[0]!r}")
    unnamed = _why_unnamed(first, again)
    return Truth(
        outcomes=first.outcomes or Outcomes(),
        origin=ORIGIN,
        tests={} if unnamed else first.tests,
        unnamed=unnamed,
    )


def _why_unnamed(first: Rerun, again: Rerun) -> str:
    """Return why tests cannot be told apart by name; empty if they can."""
    if passing := sorted(first.tests.keys() - again.tests.keys()):
        return f"{len(passing)} names change from run to run, such as {passing[0]!r}"
    if first.tests:
        return ""
    silent = sorted({one.framework for one in first.readings if len(one.tests) != one.outcomes.total})
    return (
        f"{' and '.join(silent)} printed no name of its own for each test"
        if silent
        else "tests of several runs have the same names"
    )


def _differ(how: str) -> TaskError:
    return TaskError(f"The project's tests are not reproducible: {how}.")


def read_scripts(folder: Path) -> Deliverables:
    """Return the two scripts in a folder. Raises `TaskError` when one is missing or is not text."""
    try:
        texts = [(folder / name).read_text() for name in (DOCKERFILE, SCRIPT)]
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"{folder} needs a {DOCKERFILE} and a {SCRIPT}: {error}") from error
    return Deliverables(dockerfile=texts[0], script=texts[1])


def _once(task: Task, delivered: Deliverables, sandboxes: SandboxProvider) -> Rerun:
    run = rerun(task, delivered, sandboxes)
    if run.error or run.outcomes is None:
        why = run.error.message if run.error else "No test was executed."
        raise TaskError(f"The scripts give no result: {why}\n{run.output[-2000:]}")
    return run


def _results(run: Rerun) -> str:
    return ", ".join(
        f"{one.framework} {one.outcomes.passed} passed {one.outcomes.failed} failed {one.outcomes.skipped} skipped"
        for one in run.readings
    )
