"""Messages between the driver and the crews on other nodes. Everything here is pickled by Ray."""

from __future__ import annotations

from typing import Any, NamedTuple

from runner.records import Record, TrialRecord
from runner.sweeps.plan import PlannedTrial


class Message(NamedTuple):
    """A message of a crew to its desk."""

    number: int
    """Number of the message, by which it is answered."""
    kind: str
    """Name of the window's method that serves it."""
    content: tuple[Any, ...]


class Answer(NamedTuple):
    """The desk's answer to a message."""

    number: int
    value: Any
    failure: str = ""
    """Fault of `outputs/` that keeps the desk from doing what was asked; empty if there is none."""


class Address(NamedTuple):
    """The name of a trial, from which a crew makes the trial anew."""

    cell: str
    task: str
    attempt: int
    key: str
    flags: tuple[str, ...] = ()
    """Flags of the task, those included that the desk has added."""


class Ended(NamedTuple):
    """The end of a trial on a crew: a record, or exactly one of the four reasons why there is none."""

    record: TrialRecord | None = None
    parcel: Any = None
    """The trial's files (`Parcel`), or a list with the reference to them; None if the desk has written the record."""
    after: int = -1
    """Number of the crew's last message before the end, which the desk takes before the record."""
    refused: str = ""
    """Reason why the crew did not start it."""
    broken: str = ""
    """Reason why the crew could go on neither with it nor with other trials."""
    failure: str = ""
    """Defect of `outputs/`, for the user."""
    unstarted: bool = False
    """True if no place was free for it in time, or the sweep was stopped before it started."""


class Secrets(dict[str, str]):
    """Values of environment variables, which no log and no traceback shows."""

    def __repr__(self) -> str:
        return f"<{len(self)} variables>"

    __str__ = __repr__


class Kit(Record):
    """Everything that a crew needs to compose the sweep's configuration."""

    version: str
    """Version of Assay."""
    composed: tuple[dict[str, Any], ...]
    """See `Sweep.composed`."""
    sweep: str
    """Name of the sweep."""
    folder: str
    """Folder in which the sweep was typed."""
    width: int
    """Trials at a time."""
    retries: int
    samples: tuple[Address, ...]
    """A trial of each cell, whose key is compared before anything is started."""
    trials: tuple[tuple[str, str], ...]
    """Each cell and task of the trials left to do, by which a crew knows what to install."""


def address_of(trial: PlannedTrial) -> Address:
    """Return the address of a trial."""
    return Address(trial.cell.name, trial.task.name, trial.attempt, trial.key, trial.task.flags)
