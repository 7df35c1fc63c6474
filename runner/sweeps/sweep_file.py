"""Read and write `sweep.json`, which holds the plan, the scoring, the prices and the versions of a sweep."""

from __future__ import annotations

import json
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from runner.errors import ConfigError
from runner.files import write_atomically
from runner.records import PlannedRow, Prices, Record, Scoring
from runner.records.base import first_fault
from runner.sweeps.grid import Grid, Held, check_held, reasons_of
from runner.terminal.suggestions import suggest

NAME = "sweep.json"
GRIDS = 2
"""Version of the file whose plan is a grid."""
IMPORTED = "imported.parquet"
"""File in the folder of an imported sweep: its trials table, in place of records."""


class Imported(Record):
    """Origin of a sweep whose trials were not run here."""

    file: str
    """Name of the file that was read."""
    digest: str
    """SHA-256 of the file's content."""
    mapping: dict[str, Any]
    """Meaning of the file's columns, words and units, as `report.foreign_trials.Mapping` has it."""
    rows: int
    """Number of trials in the file."""
    unpriced: int
    """Number of trials in the file whose cost is unknown."""

    @property
    def text(self) -> str:
        """The origin in words, for people."""
        return (
            f"{self.rows} trials from {self.file} (SHA-256 {self.digest[:12]}), not run here; "
            f"the cost of {self.unpriced} is unknown"
        )


class SweepFile(Record):
    """Content of `sweep.json`."""

    schema_version: Literal[1, 2] = 1
    """2 for a sweep that was run here, whose plan is a `grid`; 1 for imports, and for earlier sweeps."""
    name: str
    created: datetime
    """Time at which the plan was last written."""
    listed: tuple[PlannedRow, ...] = Field(default=(), alias="planned")
    """All planned trials, in a file of version 1. Empty for an import, whose table holds its plan."""
    grid: Grid | None = None
    """The planned trials as cells, tasks and attempts, in a file of version 2."""
    scoring: Scoring
    """Scoring that was asked for last."""
    prices: dict[str, Prices] = {}
    """Model -> rates that its tokens are charged at. Models without prices are left out."""
    reasons: dict[str, str] = Field(default={}, alias="not_started")
    """Key of a trial -> why it was not started, in a file of version 1."""
    held: tuple[Held, ...] = ()
    """Trials that were not started, in a file of version 2."""
    versions: dict[str, str]
    """Package -> version: of Assay, of Python, and of what can change a result."""
    imported: Imported | None = None
    """Origin of imported trials; None if the trials were run here and have records."""

    @model_validator(mode="after")
    def _plans_something(self) -> Self:
        if not (self.listed or (self.grid and self.grid.cells) or self.imported):
            raise ValueError("it plans no trial")
        if (self.grid is not None) != (self.schema_version == GRIDS):
            raise ValueError("a plan is a grid from version 2 on")
        if self.held and self.grid:
            check_held(self.grid, self.held)
        return self

    @cached_property
    def planned(self) -> tuple[PlannedRow, ...]:
        """Every planned trial, the denominator of every figure. Empty for an import, whose table holds its plan."""
        return tuple(self.grid.rows()) if self.grid else self.listed

    @cached_property
    def not_started(self) -> dict[str, str]:
        """Key of a trial -> why it was not started: its model's provider refused the trials before it."""
        return (
            reasons_of(((row.key, row.cell) for row in self.planned), self.held)
            if self.held
            else self.reasons
        )

    @property
    def cells(self) -> frozenset[str]:
        """Names of the planned cells."""
        if self.grid:
            return frozenset(cell.name for cell in self.grid.cells)
        return frozenset(row.cell for row in self.listed)

    def as_json(self) -> dict[str, Any]:
        """Return the content of the file."""
        absent = {"listed", "reasons"} if self.grid else {"grid", "held"}
        if not self.imported:
            absent.add("imported")
        return self.model_dump(mode="json", exclude=absent, by_alias=True)


def exists(folder: Path) -> bool:
    """Return whether a folder is that of a sweep."""
    return (folder / NAME).is_file()


def read(folder: Path) -> SweepFile:
    """Return the plan in a sweep's folder.

    Raises `ConfigError` if there is none, naming the sweeps beside it, and if it is not one of this version.
    """
    path = folder / NAME
    try:
        return SweepFile.model_validate_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError) as error:
        known = [sweep.parent.name for sweep in folder.parent.glob(f"*/{NAME}")]
        raise ConfigError(
            f"{folder.parent} has no sweep named {folder.name}. {suggest(folder.name, known)}"
        ) from error
    except ValidationError as error:
        fault = first_fault(error, "the whole")
        raise ConfigError(f"{path} cannot be read ({fault}). Run the sweep again.") from error


def write(folder: Path, file: SweepFile) -> None:
    """Replace the plan in a sweep's folder. Raises `OutputsError`."""
    write_atomically(folder / NAME, json.dumps(file.as_json(), indent=1, ensure_ascii=False).encode())
