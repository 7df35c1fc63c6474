"""Plan a sweep: from cells to trials, without starting anything. `dry_run=full` prints the plan.

A trial's key is a digest of what defines it: the configuration of its agent, model, budget and sandbox, the content
of its task, the recipes of its images, and the attempt. Folders, the sweep and the scoring are not in the key, so that
moving `outputs/`, adding a cell or changing α never runs a trial twice.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.protocols import helper_of
from runner.records import PlannedRow, Record, Task
from runner.sweeps.cells import Cell, dataset_key
from runner.sweeps.keys import TaskDigests, digest_of, trial_keys

if TYPE_CHECKING:
    from runner.protocols import Configured, SandboxProvider

SEMANTICS = 1
"""Version of the meaning of a trial, raised when old records must not be taken for new ones."""


class PlannedTrial(Record):
    """One planned attempt of a cell at a task, with its key."""

    key: str
    cell: Cell
    task: Task
    attempt: int
    configured: str = ""
    """Digest of its cell (`cell_digest`), which is part of the key."""
    memory_mb: int | None = None
    """MiB that the rollout's sandbox may use; None for no limit."""
    memory_raised: bool = False
    """True if the agent needs, and gets, more memory than its task allows."""

    @property
    def name(self) -> str:
        """Readable name, made of agent, model, task and attempt."""
        attempt = f" #{self.attempt}" if self.cell.attempts > 1 else ""
        return f"{self.cell.agent.name} · {self.cell.model.name} · {self.task.name}{attempt}"

    @property
    def keeps_its_limit(self) -> bool:
        """Return whether the task's time limit holds although the budget's is shorter."""
        return _keeps_its_limit(self.cell, self.task)

    @property
    def seconds(self) -> float | None:
        """Time limit of the rollout in seconds: the smaller of the task's and the budget's; None if both set none.

        An agent without a model has the task's limit, because it measures the task and spends no budget.
        """
        own, budget = self.task.agent_timeout_seconds, self.cell.budget.wall_seconds
        if self.keeps_its_limit:
            return own
        return min((limit for limit in (own, budget) if limit is not None), default=None)

    @property
    def is_cut(self) -> bool:
        """Return whether the budget gives the rollout less time than the task does."""
        own, seconds = self.task.agent_timeout_seconds, self.seconds
        return own is not None and seconds is not None and seconds < own

    @property
    def most_usd(self) -> float | None:
        """Highest cost of one try in USD, its judge included; None if the budget has no limit in USD.

        A free, scripted or replayed model costs nothing, whatever the budget allows.
        """
        judge = self.cell.dataset.verifier.judge
        own = self._model_usd if self.cell.model.backend == "provider" else 0.0
        return None if own is None else own + (judge.usd if judge and not judge.model.prices.free else 0.0)

    @property
    def nominal_usd(self) -> float | None:
        """Highest nominal cost in USD of a scripted or replayed model, which nobody pays; None without a limit."""
        return self._model_usd if self.cell.model.backend in ("scripted", "cassette") else 0.0

    @property
    def _model_usd(self) -> float | None:
        helper = helper_of(self.cell.agent)
        free = self.cell.model.prices.free and (helper is None or helper.prices.free)
        return 0.0 if free else self.cell.budget.usd

    def row(self) -> PlannedRow:
        """Return this trial as a row of `sweep.json`."""
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
            source=self.task.source,
            scripted=self.cell.model.scripted,
            replayed=self.cell.model.replayed,
            refused=self.task.refused,
            context_window=self.cell.model.context_window,
        )


class Plan(Record):
    """All trials of a sweep, and those that remain to be run."""

    trials: tuple[PlannedTrial, ...]
    """All planned trials: the denominator of every figure."""
    todo: tuple[PlannedTrial, ...]
    """Trials that are neither refused nor finished."""

    @property
    def refused(self) -> tuple[Task, ...]:
        """Tasks that cannot run here, each once per reason. Some are refused to certain agents only."""
        refused = (trial.task for trial, _ in counted(self.trials) if trial.task.refused)
        return tuple({(task.dataset, task.name, task.refused): task for task in refused}.values())

    def most_usd(self, *, nominal: bool) -> float | None:
        """Return the most that one try at every trial left to do can cost, in USD; None if a budget has no limit in
        USD.

        A retry after an infrastructure failure may spend its trial's budget once more. With `nominal`, the sum is over
        what scripts and recordings would charge, instead of over what is paid.
        """
        limits = [
            (trial.nominal_usd if nominal else trial.most_usd, number) for trial, number in counted(self.todo)
        ]
        if any(limit is None for limit, _ in limits):
            return None
        return sum(limit * number for limit, number in limits if limit is not None)


def counted(trials: Iterable[PlannedTrial]) -> list[tuple[PlannedTrial, int]]:
    """Return one trial of each cell at each task, in their order, and how many of `trials` are such attempts."""
    first: dict[tuple[int, int], PlannedTrial] = {}
    counts: Counter[tuple[int, int]] = Counter()
    for trial in trials:
        pair = id(trial.cell), id(trial.task)  # attempts share both objects
        first.setdefault(pair, trial)
        counts[pair] += 1
    return [(trial, counts[pair]) for pair, trial in first.items()]


def make_plan(
    cells: Iterable[Cell], sandbox: SandboxProvider, finished: Callable[[Sequence[str]], Collection[str]]
) -> Plan:
    """Plan cells × tasks × attempts, interleaved by task so that cells advance together and share image builds.

    `finished` returns which of the keys belong to trials that need not run again.
    """
    tasks: dict[str, tuple[Task, ...]] = {}
    order: dict[tuple[str, str], int] = {}
    pairs: list[tuple[int, list[PlannedTrial]]] = []
    for cell in cells:
        dataset = dataset_key(cell.dataset)
        if dataset not in tasks:
            tasks[dataset] = tuple(cell.dataset.tasks())
        configured = cell_digest(cell, sandbox)
        for task in tasks[dataset]:
            place = order.setdefault((task.dataset, task.name), len(order))
            limit = sandbox.memory_of(task.environment)
            pairs.append((place, _attempts(cell, task, range(1, cell.attempts + 1), configured, limit)))
    pairs.sort(key=itemgetter(0))
    most = max((len(attempts) for _, attempts in pairs), default=0)
    trials = tuple(
        attempts[number] for number in range(most) for _, attempts in pairs if number < len(attempts)
    )
    done = set(finished([trial.key for trial in trials]))
    return Plan(trials=trials, todo=tuple(t for t in trials if not t.task.refused and t.key not in done))


def plan_trial(cell: Cell, task: Task, attempt: int, configured: str, limit: int | None) -> PlannedTrial:
    """Plan one trial. `configured` is the cell's digest, `limit` the MiB that its task allows.

    Memory that the agent needs beyond this limit is given to the rollout alone. The verdict keeps the task's limit.
    """
    return _attempts(cell, task, [attempt], configured, limit)[0]


def _attempts(
    cell: Cell, task: Task, numbers: Sequence[int], configured: str, limit: int | None
) -> list[PlannedTrial]:
    """Plan the attempts of a cell at a task. Values that they share are computed once."""
    need = cell.agent.memory_mb
    raised = need if need is not None and limit is not None and need > limit else None
    own_limit = _keeps_its_limit(cell, task)
    keys = trial_keys(configured, TaskDigests.of(task), numbers, own_limit=own_limit, raised_memory_mb=raised)
    return [
        PlannedTrial(
            key=key,
            cell=cell,
            task=task,
            attempt=number,
            configured=configured,
            memory_mb=raised or limit,
            memory_raised=raised is not None,
        )
        for key, number in zip(keys, numbers, strict=True)
    ]


def cell_digest(cell: Cell, sandbox: Configured) -> str:
    """Return the digest of everything that a cell's trials share: agent, model, budget, sandbox, and pass threshold."""
    parts = [identity(part) for part in (cell.agent, cell.model, cell.budget, sandbox)]
    return digest_of([SEMANTICS, *parts, cell.dataset.pass_threshold])


def _keeps_its_limit(cell: Cell, task: Task) -> bool:
    """Return whether the task's time limit holds although the budget's is shorter."""
    own, budget = task.agent_timeout_seconds, cell.budget.wall_seconds
    return not cell.agent.uses_model and own is not None and budget is not None and own > budget


def identity(configured: Configured) -> str:
    """Return the digest of a configured object: its class, its fields, and the *content* of every file it names.

    The path itself is left out: the same lock file or policy elsewhere is the same identity. A class of ours that has
    moved keeps its identity by its own `key_name`, the full name that it had before. A user's class has no such name:
    otherwise a changed copy of our class would pass for the original and be given its finished trials.
    """
    kind = type(configured)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if kind.__module__.startswith("runner."):
        name = vars(kind).get("key_name", name)
    return digest_of({"class": name, "fields": _by_content(configured.model_dump())})


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
