"""Find the mode in which a Harbor task can be judged: run its solution twice and nothing once, mode after mode.

The modes are tried from the strictest to the weakest, and the first one in which the solution passes twice and an
untouched machine fails is the task's. Each run is a whole trial of `oracle` or `nop`.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runner.agents.bounds import Nop, Oracle
from runner.benchmarks.harbor.truth import HarborTruth, ModeName, Tried, in_mode
from runner.benchmarks.harbor.verifier import LIVE_FRESH
from runner.errors import TaskError
from runner.gateway import Gateway
from runner.records import Budget, Status, TrialRecord
from runner.sweeps.cells import NO_MODEL, Cell
from runner.sweeps.plan import PlannedTrial
from runner.sweeps.store import Store
from runner.terminal.escaping import one_line
from runner.trials.context import TrialContext
from runner.trials.run import run_trial

if TYPE_CHECKING:
    from runner.protocols import CommandAgent, Dataset, SandboxProvider
    from runner.records import Task
    from runner.terminal.escaping import Say

MODES: tuple[ModeName, ...] = ("shared", "beside", "live")
"""Modes of a task that is judged in the agent's machine, the strictest first."""
REASON_CHARACTERS = 400


@dataclass(frozen=True)
class Trials:
    """The means to run trials of one task."""

    dataset: Dataset
    sandboxes: SandboxProvider
    folder: Path
    """Host folder for the records."""

    def run(
        self, agent: CommandAgent, task: Task, mode: ModeName, ports: tuple[int, ...] | None = None
    ) -> TrialRecord:
        """Run one trial, judged in this mode. Raises `TaskError` if it came to nothing for want of an image, say."""
        judged = task.model_copy(
            update={
                "verifier": in_mode(task.verifier, mode, ports),
                "fresh_dirs": LIVE_FRESH if mode == "live" else (),
            }
        )
        cell = Cell(agent=agent, model=NO_MODEL, dataset=self.dataset, budget=Budget(), attempts=1)
        place = Path(tempfile.mkdtemp(dir=self.folder))
        trial = PlannedTrial(key="truth", cell=cell, task=judged, attempt=1)
        context = TrialContext(self.sandboxes, Gateway(place), Store(place / "outputs"), "truth", {})
        record = run_trial(trial, context, lambda: False)
        if record.status is Status.INFRA_INVALID:
            raise TaskError(f"It could not be tried: {_reason(record)}")
        return record

    def passes(self, record: TrialRecord) -> bool:
        """Return whether a trial passed."""
        return record.reward is not None and record.reward >= self.dataset.pass_threshold


def find_mode(dataset: Dataset, task: Task, sandboxes: SandboxProvider, digest: str, say: Say) -> HarborTruth:
    """Return the first mode in which the task can be judged, with the rewards in it and in those before it.

    Raises `TaskError` if a trial fails on our side: that says nothing about the task, and is not a finding.
    """
    tried: dict[ModeName, Tried] = {}
    with tempfile.TemporaryDirectory() as folder:
        trials = Trials(dataset, sandboxes, Path(folder))
        for mode in ("separate",) if task.verifier.mode == "separate" else MODES:
            say(f"{one_line(task.name)}: trying mode {mode}")
            tried[mode], ports = _try(trials, task, mode)
            if tried[mode].nothing and not tried[mode].reason:
                return HarborTruth(digest=digest, mode=mode, ports=ports, tried=tried)
    return HarborTruth(digest=digest, mode=None, tried=tried)


def _try(trials: Trials, task: Task, mode: ModeName) -> tuple[Tried, tuple[int, ...] | None]:
    """Return the rewards in one mode, and the ports of the solution's services if it is beside.

    The second run has only the ports that the first one used, and so on: a port that is drawn at random stays out.
    """
    ports: tuple[int, ...] | None = None
    rewards: list[float | None] = []
    for _ in range(2):
        record = trials.run(Oracle(), task, mode, ports)
        rewards.append(record.reward)
        if not trials.passes(record):
            return Tried(solution=tuple(rewards), reason=_reason(record)), None
        if record.verdict and record.verdict.ports:
            ports = record.verdict.ports.lent
    record = trials.run(Nop(), task, mode, ports)
    reason = _reason(record) if trials.passes(record) or record.reward is None else ""
    return Tried(solution=tuple(rewards), nothing=(record.reward,), reason=reason), ports


def _reason(record: TrialRecord) -> str:
    """Return why a trial went as it did: its error, or the end of what the tests printed."""
    error = record.error or (record.verdict.error if record.verdict else None)
    output = record.verdict.output if record.verdict else ""
    text = error.message if error else output.strip()
    return one_line(text)[-REASON_CHARACTERS:] or f"the tests gave {record.reward}"
