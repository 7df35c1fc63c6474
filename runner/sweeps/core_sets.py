"""Core-set files: the tasks of a dataset that `job=core_set` chose, which `dataset.core_set=` then takes."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from runner.records import Record
from runner.sweeps.yaml_files import read_yaml


class AgreementFigures(Record):
    """`metrics.ranking.Agreement` on disk. A missing figure is None, and `why` gives the reason."""

    cells: int
    spearman: float | None
    kendall: float | None
    top1: bool | None
    topk: bool | None
    overlap: float | None
    mae: float | None
    why: str


class CoreSetFile(Record):
    """Chosen tasks, and how far the ranking by them can be trusted."""

    schema_version: Literal[1] = 1
    dataset: str
    """Dataset that the tasks were chosen from."""
    source: str
    """Sweep or file with the trials that the core set was chosen with."""
    digest: str
    """Digest of the trials in `source`."""
    scoring: str
    seed: int
    tasks: dict[str, tuple[str, ...]]
    """Tier -> names of the chosen tasks."""
    chosen_with: tuple[str, ...]
    held_out: tuple[str, ...]
    """Cells that were not used for the choice."""
    fitted: AgreementFigures
    """Agreement with the full set on the cells it was chosen with, which is too optimistic."""
    agreement: AgreementFigures
    """Agreement with the full set on the held-out cells."""
    random_spearman: float | None
    """Mean Spearman of random sets of the same size on the held-out cells: the baseline of the choice."""
    cost_usd: float
    full_cost_usd: float
    unpriced: int
    """Number of valid trials whose cost is unknown, so that it is in neither sum."""

    @property
    def names(self) -> frozenset[str]:
        """Names of all its tasks."""
        return frozenset(task for tasks in self.tasks.values() for task in tasks)


def read_core_set(path: Path, where: str) -> CoreSetFile:
    """Return the core set in a file that the key `where` names. Raises `ConfigError`."""
    return read_yaml(path, CoreSetFile, where)
