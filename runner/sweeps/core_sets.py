"""Core-set files: the tasks of a dataset that `job=core_set` chose, which `dataset.core_set=` then takes."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from runner.records import Record
from runner.sweeps.yaml_files import read_yaml


class AgreementFigures(Record):
    """`metrics.ranking.Agreement` on disk; None where there is no such number, and `why` says why."""

    cells: int
    spearman: float | None
    kendall: float | None
    top1: bool | None
    topk: bool | None
    overlap: float | None
    mae: float | None
    why: str


class CoreSetFile(Record):
    """A choice of tasks, and how far their ranking can be trusted."""

    schema_version: Literal[1] = 1
    dataset: str
    """That it was chosen from."""
    source: str
    digest: str
    """Of the trials that it was chosen with."""
    scoring: str
    seed: int
    tasks: dict[str, tuple[str, ...]]
    """Tier -> tasks."""
    chosen_with: tuple[str, ...]
    held_out: tuple[str, ...]
    """Cells that took no part in the choice."""
    fitted: AgreementFigures
    """With the full set, on the cells it was chosen with: too good to be true."""
    agreement: AgreementFigures
    """With the full set, on the held-out cells."""
    random_spearman: float | None
    """Mean Spearman of random sets of the same size on the held-out cells: what the choice has to beat."""
    cost_usd: float
    full_cost_usd: float
    unpriced: int
    """Valid trials whose cost is unknown and in neither."""

    @property
    def names(self) -> frozenset[str]:
        """Of all its tasks."""
        return frozenset(task for tasks in self.tasks.values() for task in tasks)


def read_core_set(path: Path, where: str) -> CoreSetFile:
    """The core set in a file that the key `where` names. Raises `ConfigError`."""
    return read_yaml(path, CoreSetFile, where)
