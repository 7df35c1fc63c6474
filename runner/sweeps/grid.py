"""The planned trials of a sweep as cells × tasks × attempts, which is how `sweep.json` holds them.

A list of 100,000 trials is 35 MB of text that repeats itself. Here each cell and each task is listed once, and the
trials with their keys are derived from them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Self

from pydantic import Field, model_validator

from runner.records import CELL_SEPARATOR, PlannedRow, Record
from runner.sweeps.keys import TaskDigests, trial_keys

if TYPE_CHECKING:
    from runner.sweeps.cells import Cell
    from runner.sweeps.plan import Plan, PlannedTrial


class GridTask(TaskDigests):
    """A task of a sweep."""

    dataset: str
    name: str
    tier: str
    category: str
    language: str
    source: str = Field(default="unknown", exclude_if=lambda source: source == "unknown")
    """Source of the task. An unknown one is not written, so that earlier files remain valid."""


class GridCell(Record):
    """A cell of a sweep and the trials that it plans. Tasks are given by their number in the grid, from 0."""

    agent: str
    model: str
    dataset: str
    budget: str
    scripted: bool
    replayed: bool
    attempts: int = Field(ge=1)
    digest: str
    """Digest of what the cell's trials share (`plan.cell_digest`)."""
    tasks: tuple[tuple[int, int], ...]
    """Tasks of the cell, as the first and last number of each unbroken run."""
    own_limit: tuple[int, ...] = ()
    """Tasks that keep their own time limit although the budget's is shorter."""
    memory_mb: dict[int, int] = {}
    """Task -> MiB that the agent gets in place of the task's lower limit."""
    refused: dict[int, int] = {}
    """Task -> number of the reason why it cannot be run, in the grid's `refusals`."""
    context_window: int | None = Field(default=None, exclude_if=lambda window: window is None)
    """Context window of its model, in tokens. An unknown one is not written, so that earlier files remain valid."""

    @property
    def name(self) -> str:
        """Name of the cell: `agent·model·dataset·budget`."""
        return CELL_SEPARATOR.join((self.agent, self.model, self.dataset, self.budget))


class Grid(Record):
    """The planned trials of a sweep."""

    tasks: tuple[GridTask, ...]
    """All tasks, each once, in the plan's order. Tasks with the same name and other content count separately."""
    refusals: tuple[str, ...] = ()
    """All reasons why trials are refused, each once."""
    cells: tuple[GridCell, ...]

    @model_validator(mode="after")
    def _has_what_cells_name(self) -> Self:
        for cell in self.cells:
            if any(not 0 <= first <= last < len(self.tasks) for first, last in cell.tasks):
                raise ValueError(f"{cell.name} has tasks that the grid lacks")
            if any(not 0 <= refusal < len(self.refusals) for refusal in cell.refused.values()):
                raise ValueError(f"{cell.name} has refusals that the grid lacks")
        return self

    def rows(self) -> Iterator[PlannedRow]:
        """Yield every planned trial, in the plan's order: by attempt, task and cell."""
        places: dict[tuple[str, str], int] = {}
        order = [places.setdefault((task.dataset, task.name), len(places)) for task in self.tasks]
        pairs = [(cell, number) for cell in self.cells for number in _unfolded(cell.tasks)]
        pairs.sort(key=lambda pair: order[pair[1]])
        keys = [_keys(cell, number, self.tasks[number]) for cell, number in pairs]
        for attempt in range(1, max((cell.attempts for cell in self.cells), default=0) + 1):
            for (cell, number), own in zip(pairs, keys, strict=True):
                if attempt <= cell.attempts:
                    yield self._row(cell, number, attempt, own[attempt - 1])

    def _row(self, cell: GridCell, number: int, attempt: int, key: str) -> PlannedRow:
        task, refusal = self.tasks[number], cell.refused.get(number)
        return PlannedRow(
            key=key,
            agent=cell.agent,
            model=cell.model,
            dataset=cell.dataset,
            budget=cell.budget,
            task=task.name,
            attempt=attempt,
            tier=task.tier,
            category=task.category,
            language=task.language,
            source=task.source,
            scripted=cell.scripted,
            replayed=cell.replayed,
            refused=None if refusal is None else self.refusals[refusal],
            context_window=cell.context_window,
        )


def _keys(cell: GridCell, number: int, task: TaskDigests) -> list[str]:
    return trial_keys(
        cell.digest,
        task,
        range(1, cell.attempts + 1),
        own_limit=number in cell.own_limit,
        raised_memory_mb=cell.memory_mb.get(number),
    )


def grid_of(plan: Plan, cells: Iterable[Cell]) -> Grid:
    """Return the grid of a plan of these cells, whose `rows` are those of the plan's trials."""
    tasks: dict[GridTask, int] = {}
    refusals: dict[str, int] = {}
    trials: dict[str, list[tuple[int, PlannedTrial]]] = defaultdict(list)
    for trial in (trial for trial in plan.trials if trial.attempt == 1):
        number = tasks.setdefault(_task(trial), len(tasks))
        trials[trial.cell.name].append((number, trial))
        if trial.task.refused:
            refusals.setdefault(trial.task.refused, len(refusals))
    return Grid(
        tasks=tuple(tasks),
        refusals=tuple(refusals),
        cells=tuple(_cell(trials[cell.name], refusals) for cell in cells if cell.name in trials),
    )


def _task(trial: PlannedTrial) -> GridTask:
    task = trial.task
    return GridTask(
        **dict(TaskDigests.of(task)),
        dataset=task.dataset,
        name=task.name,
        tier=task.tier,
        category=task.category,
        language=task.language,
        source=task.source,
    )


def _cell(trials: list[tuple[int, PlannedTrial]], refusals: dict[str, int]) -> GridCell:
    """Return a cell from the first attempt at each of its tasks."""
    first = trials[0][1]
    cell = first.cell
    return GridCell(
        agent=cell.agent.name,
        model=cell.model.name,
        dataset=cell.dataset.name,
        budget=cell.budget.name,
        scripted=cell.model.scripted,
        replayed=cell.model.replayed,
        attempts=cell.attempts,
        digest=first.configured,
        tasks=_folded(number for number, _ in trials),
        own_limit=tuple(number for number, trial in trials if trial.keeps_its_limit),
        memory_mb={
            number: trial.memory_mb for number, trial in trials if trial.memory_raised and trial.memory_mb
        },
        context_window=cell.model.context_window,
        refused={number: refusals[trial.task.refused] for number, trial in trials if trial.task.refused},
    )


class Held(Record):
    """Trials of a cell that were not started for the same reason."""

    reason: str
    cell: str
    trials: tuple[tuple[int, int], ...]
    """Numbers of the trials among the cell's trials, from 0 in the plan's order, as first and last of each unbroken
    run."""


def held_of(planned: Iterable[tuple[str, str]], reasons: Mapping[str, str]) -> tuple[Held, ...]:
    """Return the trials that were not started. `planned` has key and cell of every trial, in the plan's order."""
    if not reasons:
        return ()
    numbers: Counter[str] = Counter()
    held: dict[tuple[str, str], list[int]] = defaultdict(list)
    for key, cell in planned:
        if reason := reasons.get(key):
            held[reason, cell].append(numbers[cell])
        numbers[cell] += 1
    return tuple(Held(reason=reason, cell=cell, trials=_folded(own)) for (reason, cell), own in held.items())


def check_held(grid: Grid, held: Iterable[Held]) -> None:
    """Raise `ValueError` for trials that the grid does not plan."""
    trials = {
        cell.name: cell.attempts * sum(last - first + 1 for first, last in cell.tasks) for cell in grid.cells
    }
    for each in held:
        if any(not 0 <= first <= last < trials.get(each.cell, 0) for first, last in each.trials):
            raise ValueError(f"the grid has fewer trials of {each.cell} than were held")


def reasons_of(planned: Iterable[tuple[str, str]], held: Iterable[Held]) -> dict[str, str]:
    """Return the reason for the key of each trial that was not started; the reverse of `held_of`."""
    keys: dict[str, list[str]] = defaultdict(list)
    for key, cell in planned:
        keys[cell].append(key)
    return {keys[each.cell][number]: each.reason for each in held for number in _unfolded(each.trials)}


def _folded(numbers: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Return the first and last number of each unbroken run of numbers."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return tuple(runs)


def _unfolded(runs: Iterable[tuple[int, int]]) -> Iterator[int]:
    for first, last in runs:
        yield from range(first, last + 1)
