"""From cells to trials: pure, before anything is started. `dry_run=full` prints what this module returns.

A trial's key is a digest of what defines it: the agent's, model's, budget's and sandbox's configuration, the task's
content and the recipes of its images, and the attempt. Names of folders, the sweep it belongs to and scoring are no
part of it, so moving `outputs/`, adding a cell or changing α never runs a trial twice.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict

from runner.records import PlannedRow, Record, Task
from runner.sweeps.cells import Cell, dataset_key

if TYPE_CHECKING:
    from runner.protocols import Configured, SandboxProvider

SEMANTICS = 1
"""Raised when the meaning of running a trial changes so much that old records must not be taken for new ones."""


class PlannedTrial(Record):
    """One (cell, task, attempt) with its key."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    key: str
    cell: Cell
    task: Task
    attempt: int
    memory_mb: int | None = None
    """MiB that its rollout's sandbox may use; None: there is no limit."""
    memory_raised: bool = False
    """Whether its agent needs more memory than its task allows, so that it has more than other agents may have."""

    @property
    def name(self) -> str:
        """For people: what runs on what."""
        attempt = f" #{self.attempt}" if self.cell.attempts > 1 else ""
        return f"{self.cell.agent.name} · {self.cell.model.name} · {self.task.name}{attempt}"

    @property
    def seconds(self) -> float | None:
        """Longest rollout: the smaller of the task's own limit and the budget's; None without either.

        An agent without a model has the task's own limit: it measures the task, and spends no budget.
        """
        own, budget = self.task.agent_timeout_seconds, self.cell.budget.wall_seconds
        if _keeps_its_limit(self.cell, self.task):
            return own
        return min((limit for limit in (own, budget) if limit is not None), default=None)

    @property
    def is_cut(self) -> bool:
        """Whether its budget gives the rollout less time than the task does."""
        own, seconds = self.task.agent_timeout_seconds, self.seconds
        return own is not None and seconds is not None and seconds < own

    @property
    def most_usd(self) -> float | None:
        """What one try may cost at most, its judge included; None when its budget has no limit in USD.

        A model that is free, scripted or replayed costs nothing, whatever the budget allows.
        """
        judge = self.cell.dataset.verifier.judge
        own = self._model_usd if self.cell.model.backend == "provider" else 0.0
        return None if own is None else own + (judge.usd if judge and not judge.model.prices.free else 0.0)

    @property
    def nominal_usd(self) -> float | None:
        """What the script or the recording that stands for its model may charge nobody; None without a limit."""
        return self._model_usd if self.cell.model.backend in ("scripted", "cassette") else 0.0

    @property
    def _model_usd(self) -> float | None:
        return 0.0 if self.cell.model.prices.free else self.cell.budget.usd

    def row(self) -> PlannedRow:
        """This trial as a line of `sweep.json`."""
        return PlannedRow(
            key=self.key,
            agent=self.cell.agent.name,
            model=self.cell.model.name,
            dataset=self.cell.dataset.name,
            budget=self.cell.budget.name,
            task=self.task.name,
            attempt=self.attempt,
            tier=self.task.tier,
            category=self.task.category,
            language=self.task.language,
            scripted=self.cell.model.scripted,
            replayed=self.cell.model.replayed,
            refused=self.task.refused,
        )


class Plan(Record):
    """Every trial of a sweep, and which of them there is left to do."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    trials: tuple[PlannedTrial, ...]
    """The denominator of every figure."""
    todo: tuple[PlannedTrial, ...]
    """Neither refused nor finished."""

    @property
    def refused(self) -> tuple[Task, ...]:
        """Each task that cannot be run here, once for each reason: one may be refused to some agents only."""
        refused = (trial.task for trial in self.trials if trial.task.refused)
        return tuple({(task.dataset, task.name, task.refused): task for task in refused}.values())

    def most_usd(self, *, nominal: bool) -> float | None:
        """Upper bound in USD of one try at every trial left to do; None when a budget has no limit in USD.

        An infrastructure retry may spend its trial's budget once more. `nominal` sums what scripts and recordings
        would charge, and not what somebody pays.
        """
        limits = [trial.nominal_usd if nominal else trial.most_usd for trial in self.todo]
        return None if None in limits else sum(limit for limit in limits if limit is not None)


def make_plan(
    cells: Iterable[Cell], sandbox: SandboxProvider, finished: Callable[[Sequence[str]], Collection[str]]
) -> Plan:
    """Cells × tasks × attempts, interleaved by task so that cells advance together and share image builds.

    `finished` picks, of all keys, those that need not run again.
    """
    read: dict[str, tuple[Task, ...]] = {}
    trials = []
    for cell in cells:
        dataset = dataset_key(cell.dataset)
        if dataset not in read:
            read[dataset] = tuple(cell.dataset.tasks())
        configured = cell_digest(cell, sandbox)
        trials += [
            _planned(cell, task, attempt, configured, sandbox.memory_of(task.environment))
            for task in read[dataset]
            for attempt in range(1, cell.attempts + 1)
        ]
    order = {name: n for n, name in enumerate(dict.fromkeys((t.task.dataset, t.task.name) for t in trials))}
    trials.sort(key=lambda t: (t.attempt, order[t.task.dataset, t.task.name]))
    done = set(finished([t.key for t in trials]))
    return Plan(
        trials=tuple(trials), todo=tuple(t for t in trials if not t.task.refused and t.key not in done)
    )


def _planned(cell: Cell, task: Task, attempt: int, configured: str, limit: int | None) -> PlannedTrial:
    """`configured` is the cell's digest, `limit` the MiB that its task allows. What its agent needs beyond that counts
    for the rollout alone: every agent's work is judged under the task's own limit.
    """
    need = cell.agent.memory_mb
    raised = need if need is not None and limit is not None and need > limit else None
    return PlannedTrial(
        key=trial_key(
            configured,
            task,
            attempt,
            own_limit=_keeps_its_limit(cell, task),
            raised_memory_mb=raised,
        ),
        cell=cell,
        task=task,
        attempt=attempt,
        memory_mb=raised or limit,
        memory_raised=raised is not None,
    )


def cell_digest(cell: Cell, sandbox: Configured) -> str:
    """Digest of what a cell's trials have in common: agent, model, budget, sandbox, and what counts as passed."""
    parts = [identity(part) for part in (cell.agent, cell.model, cell.budget, sandbox)]
    return _digest([SEMANTICS, *parts, cell.dataset.pass_threshold])


def trial_key(
    cell: str, task: Task, attempt: int, *, own_limit: bool = False, raised_memory_mb: int | None = None
) -> str:
    """Digest (32 hex digits) of everything that can change how this trial ends; `cell` is its `cell_digest`.

    `own_limit` says that the task's limit on time holds although the budget's is shorter. `raised_memory_mb` is what
    the agent gets beyond the task's limit on memory.
    """
    judge = task.verifier.environment.digest if task.verifier.environment else None
    parts: list[Any] = [cell, task.digest, task.environment.digest, judge, attempt]
    if own_limit:
        parts.append("own_limit")
    if raised_memory_mb is not None:
        parts.append({"memory_mb": raised_memory_mb})
    return _digest(parts)[:32]


def _keeps_its_limit(cell: Cell, task: Task) -> bool:
    """Whether the task's own limit on time holds although the budget's is shorter."""
    own, budget = task.agent_timeout_seconds, cell.budget.wall_seconds
    return not cell.agent.uses_model and own is not None and budget is not None and own > budget


def identity(configured: Configured) -> str:
    """Return the digest of a configured object: its class, its fields, and the *content* of every file it names.

    The path itself is left out: the same lock file or policy elsewhere is the same identity. A class that has moved to
    another module keeps its identity by its own `key_name`, the full name that it had before.
    """
    kind = type(configured)
    name = vars(kind).get("key_name") or f"{kind.__module__}.{kind.__qualname__}"
    return _digest({"class": name, "fields": _by_content(configured.model_dump())})


def _by_content(value: Any) -> Any:
    if isinstance(value, Path):
        return _file_digest(value, value.stat().st_mtime_ns) if value.is_file() else value.name
    if isinstance(value, dict):
        return {key: _by_content(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_by_content(item) for item in value]
    return value


@cache
def _file_digest(path: Path, _mtime: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()
