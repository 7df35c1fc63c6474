"""Find the ground truth of a project: run its recorded scripts here, twice (section 3.1.2)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from runner.benchmarks.project_setup.dataset import SOLUTION, ProjectSetupBench
from runner.benchmarks.project_setup.deliverables import DOCKERFILE, SCRIPT, TRUTH, Rerun, Truth
from runner.benchmarks.project_setup.rerun import Deliverables, rerun
from runner.errors import TaskError
from runner.protocols import SandboxProvider
from runner.records import Task
from runner.sweeps.store import write_atomically

ORIGIN = "recorded scripts, run here twice"


def ground_truth(
    dataset: ProjectSetupBench,
    folder: Path,
    scripts: Path | None,
    sandboxes: SandboxProvider,
    say: Callable[[str], None],
) -> Truth:
    """Find a task's truth and write it beside its `task.yaml`.

    `scripts` is a folder with two scripts that become the recorded ones if they give a truth; None runs the recorded
    ones. Raises `TaskError` when there are no scripts, no test is executed or the two runs differ, `ConfigError` when
    something cannot be fetched, and `EngineError`.
    """
    delivered = _scripts(scripts or folder / SOLUTION)
    task = dataset.make(folder, None, say)
    first, again = (_once(task, delivered, sandboxes) for _ in range(2))
    if first.outcomes != again.outcomes:
        raise TaskError(
            f"The project's tests are not reproducible: first {_results(first)}, then {_results(again)}."
        )
    for name, text in ((DOCKERFILE, delivered.dockerfile), (SCRIPT, delivered.script)):
        if scripts and text is not None:
            write_atomically(folder / SOLUTION / name, text.encode())
    assert first.outcomes is not None  # noqa: S101 - `_once` raises without outcomes
    truth = Truth(outcomes=first.outcomes, origin=ORIGIN, digest=dataset.truth_digest(folder))
    write_atomically(folder / TRUTH, truth.model_dump_json(indent=1).encode() + b"\n")
    return truth


def _scripts(folder: Path) -> Deliverables:
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
