"""Frozen objects for one command: its cells, the settings that they share, and the job to be done."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, SkipValidation, field_validator

from runner.protocols import CommandAgent, Dataset, DrivingAgent, Executor, SandboxProvider, Tracker
from runner.records import CELL_SEPARATOR, Budget, CallLimits, Model, Record, Scoring, SpendLimits
from runner.sweeps.pricing import Pricing
from runner.sweeps.store_address import StoreSettings

NO_MODEL = Model(name="none", backend="none")
"""Model of the cells whose agent uses no model."""

TAKEN = ("trials", "cache", "mlartifacts", "mlflow.db")
"""Names in `outputs` that no sweep may have."""
LONGEST_NAME = 120
"""Longest sweep name, in characters."""
_NAME = re.compile(rf"[A-Za-z0-9][\w.+-]{{0,{LONGEST_NAME - 1}}}")


class Job(Record):
    """Base of all jobs (`job=`). Most jobs only read what is on disk; one that does more sets the flags below."""

    needs_keys: ClassVar[bool] = False
    """True if the job calls models, so that their API keys must be set."""
    several_scorings: ClassVar[bool] = False
    """True if the job takes several scorings at once (`-m scoring.alpha=0.4,0.6`)."""
    reads_trials: ClassVar[bool] = False
    """True if the job reads the trials of sweeps, which are taken from the store first if `outputs` is an address."""
    shows_workspaces: ClassVar[bool] = False
    """True if the job reads the workspaces that agents left, which are then taken from the store as well."""
    plans: ClassVar[bool] = False
    """True if the job obeys `dry_run=true`. A job that does not is refused if that is set."""

    @abstractmethod
    def run(self, sweep: Sweep) -> int:
        """Do the job and return the exit code."""


class Cell(Record):
    """One combination of agent, model, dataset and budget."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    agent: Annotated[CommandAgent | DrivingAgent, SkipValidation]
    model: Model
    dataset: Annotated[Dataset, SkipValidation]
    budget: Budget
    attempts: int = Field(ge=1)
    """Number of independent trials per task."""
    prices: str = ""
    """Snapshot that priced the model, `name@digest`; empty when the model brought its own prices."""

    @property
    def name(self) -> str:
        """Name of the cell, unique in a sweep: `agent·model·dataset·budget`."""
        axes = (self.agent, self.model, self.dataset, self.budget)
        return CELL_SEPARATOR.join(axis.name for axis in axes)


def datasets_of(cells: Iterable[Cell]) -> list[Dataset]:
    """Return each dataset of these cells once. Datasets that differ only in their folder count as different."""
    known = {id(cell.dataset): cell.dataset for cell in cells}
    return list({dataset_key(dataset): dataset for dataset in known.values()}.values())


def dataset_key(dataset: Dataset) -> str:
    """Return a key that distinguishes the datasets of one command. Unlike `plan.identity`, it covers their folders."""
    return str(dataset.model_dump())


class Settings(Record):
    """Settings that all cells of a sweep share. Of these, only the sandbox can change the identity of a trial."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    name: str
    """Name of the sweep; the same name resumes it."""
    outputs: Path
    """Absolute folder with the records; this machine's copy if `outputs` was an address."""
    store: StoreSettings = StoreSettings()
    record: Path | None
    """Folder for a cassette of the sweep's finished trials; None records none."""
    scoring: Scoring
    pricing: Pricing
    sandbox: Annotated[SandboxProvider, SkipValidation]
    executor: Annotated[Executor, SkipValidation]
    tracker: Annotated[Tracker, SkipValidation]
    job: Annotated[Job, SkipValidation]
    fresh: bool
    """True to run finished trials again."""
    dry_run: bool | Literal["full"]
    """True to print the plan and stop; "full" also prints every trial."""
    gateway: CallLimits = CallLimits()
    sweep_budget: SpendLimits = SpendLimits()
    """Limits on the spend of this command. No new trial starts once one of them is reached. Scripts and recordings
    spend only time."""

    refresh_seconds: float | None = Field(default=180.0, gt=0)
    """Least time between two updates of the report and the tracked runs while trials run; None updates them only at the
    end. Twenty times the duration of the last update passes before the next."""

    @property
    def folder(self) -> Path:
        """Folder of the sweep."""
        return self.outputs / self.name

    @field_validator("name")
    @classmethod
    def _names_a_folder(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError(
                "it takes letters, digits and . _ + -, with a letter or a digit first, 120 at most"
            )
        if name.lower() in TAKEN:
            raise ValueError("outputs has something else of that name; choose another")
        return name


class Sweep(Record):
    """Cells, settings and scorings of one command."""

    cells: tuple[Cell, ...]
    settings: Settings
    composed: tuple[dict[str, Any], ...]
    """One mapping per job as Hydra composed it, with unresolved interpolations: safe to store, and equal on every
    machine."""
    scorings: tuple[Scoring, ...] = ()
    """Scorings that were asked for, in order; empty if none was typed, when `settings.scoring` is the configured one.
    Cells that differ only in their scoring are one cell."""
    scoring_keys: tuple[str, ...] = ()
    """Typed keys of a scoring; empty if a whole scoring was typed."""
    named: bool = False
    """True if the user chose the sweep's name; otherwise it is made from the names of the cells."""

    def rescorings(self, own: Scoring) -> tuple[Scoring, ...]:
        """Return the wanted scorings for a sweep that is scored by `own`. A typed key changes only that key."""
        if not self.scoring_keys:
            return self.scorings
        return tuple(own.taking(asked, self.scoring_keys) for asked in self.scorings)
