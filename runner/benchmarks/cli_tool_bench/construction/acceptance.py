"""Accept a finished task: the reference itself must score 1 on it, and an empty workspace 0 (section 2.1.3)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from runner.benchmarks.sources.rejections import breaking, rejected
from runner.protocols import Submission
from runner.records import Record, SandboxSpec

if TYPE_CHECKING:
    from runner.benchmarks.cli_tool_bench.construction.steps import Steps
    from runner.benchmarks.cli_tool_bench.dataset import CliToolBench
    from runner.protocols import SandboxProvider
    from runner.records import Task, Verdict


class Bounds(Record):
    """Rewards of the two submissions whose rewards are known in advance: the reference and an empty workspace."""

    oracle: float
    nop: float


def accept(folder: Path, steps: Steps, dataset: CliToolBench, sandboxes: SandboxProvider) -> Bounds:
    """Return the rewards of the reference and of an empty workspace, judged like any submission.

    Raises `RejectedError` unless they are 1 and 0, and `EngineError`.
    """
    (task,) = dataset.model_copy(update={"root": folder.parent, "include": (folder.name,)}).tasks()
    if task.refused:
        raise rejected("acceptance", task.refused)
    return steps.get(
        "accepted", [task.digest, task.environment.digest], Bounds, lambda: _bounds(task, dataset, sandboxes)
    )


def _bounds(task: Task, dataset: CliToolBench, sandboxes: SandboxProvider) -> Bounds:
    source = task.solution / "source" if task.solution else None
    with breaking("acceptance"):
        oracle = _judge(task, source, dataset, sandboxes)
        nop = _judge(task, None, dataset, sandboxes)
    if oracle.reward != 1 or nop.reward != 0:
        shown = oracle.output if oracle.reward != 1 else nop.output
        rewards = f"the reference's reward is {oracle.reward} and that of an empty workspace {nop.reward}"
        reason = f"{rewards}: {shown[-1500:]}"
        raise rejected("acceptance", reason)
    return Bounds(oracle=oracle.reward, nop=nop.reward)


def _judge(task: Task, workspace: Path | None, dataset: CliToolBench, sandboxes: SandboxProvider) -> Verdict:
    """Return the verdict on a workspace; `workspace` is None for an empty one."""
    image = sandboxes.image(task.environment)
    spec = SandboxSpec(name=f"{task.name}-accept", image=image, environment=task.environment)
    with tempfile.TemporaryDirectory() as folder, sandboxes.open(spec) as sandbox:
        if workspace is not None:
            sandbox.put(workspace, sandbox.workdir)
        sandbox.kill()
        return dataset.verifier.verify(Submission(task, sandbox, sandboxes, Path(folder)))
