"""What one command asks for, as frozen objects: cells, what they share, and what to do with them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, SkipValidation, field_validator

from runner.protocols import CommandAgent, Dataset, DrivingAgent, Executor, SandboxProvider, Tracker
from runner.records import Budget, CallLimits, Model, Record, Scoring, SpendLimits
from runner.sweeps.job import Job
from runner.sweeps.pricing import Pricing

NO_MODEL = Model(name="none", backend="none")
"""What a cell of an agent without a model has in place of one."""

TAKEN = ("trials", "cache", "mlartifacts", "mlflow.db")
"""What lies in `outputs` beside the sweeps' folders."""
LONGEST_NAME = 120
"""Of a sweep."""
_NAME = re.compile(rf"[A-Za-z0-9][\w.+-]{{0,{LONGEST_NAME - 1}}}")


class Cell(Record):
    """One agent × model × dataset × budget."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    agent: Annotated[CommandAgent | DrivingAgent, SkipValidation]
    model: Model
    dataset: Annotated[Dataset, SkipValidation]
    budget: Budget
    attempts: int = Field(ge=1)
    """Independent trials per task."""
    prices: str = ""
    """Snapshot that priced the model, `name@digest`; empty when the model brought its own prices."""

    @property
    def name(self) -> str:
        """`agent·model·dataset·budget`; unique in a sweep."""
        return f"{self.agent.name}·{self.model.name}·{self.dataset.name}·{self.budget.name}"


class Settings(Record):
    """What all cells of a sweep share. No part of what a trial is, except the sandbox."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    name: str
    """Of the sweep; the same name resumes it."""
    outputs: Path
    """Absolute folder with the records."""
    record: Path | None
    """Folder for a cassette of the sweep's finished trials; None records none."""
    scoring: Scoring
    pricing: Pricing
    sandbox: Annotated[SandboxProvider, SkipValidation]
    executor: Annotated[Executor, SkipValidation]
    tracker: Annotated[Tracker, SkipValidation]
    job: Annotated[Job, SkipValidation]
    fresh: bool
    """Run finished trials again."""
    dry_run: bool | Literal["full"]
    """Print the plan and stop; full: with every trial."""
    gateway: CallLimits = CallLimits()
    sweep_budget: SpendLimits = SpendLimits()
    """Once this command has spent any of it, no new trial starts. Scripts and recordings spend nothing but time."""

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
    """Everything one command asks for."""

    cells: tuple[Cell, ...]
    settings: Settings
    composed: tuple[dict[str, Any], ...]
    """What Hydra composed, a mapping per job, interpolations unresolved: safe to store, equal on every machine."""
    scorings: tuple[Scoring, ...] = ()
    """Those that were asked for, in order; empty where the command line names none and `settings.scoring` is what the
    configuration says anyway. Cells that differ in scoring alone are one cell."""
    scoring_keys: tuple[str, ...] = ()
    """Keys of a scoring that were typed; empty where a whole scoring was."""
    named: bool = False
    """Whether somebody chose its name; else it is made of the cells' names."""

    def rescorings(self, own: Scoring) -> tuple[Scoring, ...]:
        """What was asked for of a sweep that is scored by `own`: a typed key changes that key alone."""
        if not self.scoring_keys:
            return self.scorings
        return tuple(own.taking(asked, self.scoring_keys) for asked in self.scorings)
