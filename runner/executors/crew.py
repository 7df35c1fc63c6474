"""A crew: a runner of trials with its own gateway, sandboxes, bundles and images."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from queue import Empty, SimpleQueue
from threading import Event
from typing import TYPE_CHECKING, Protocol

from pydantic import Field

from runner.errors import EngineError
from runner.records import Record, Status, TrialRecord
from runner.sweeps.cells import Settings, datasets_of

if TYPE_CHECKING:
    from runner.executors.desk import Desk
    from runner.records import InstalledBundle
    from runner.sweeps.plan import PlannedTrial
    from runner.terminal.escaping import Say

ENGINE_FAILURES = 3
"""Number of trials in a row that the Docker Engine may spoil before a crew gets no more trials."""


class CrewLost(Exception):  # noqa: N818 - says what happened
    """Raised when the machine of a crew is gone, frozen or cut off, and its trials with it. Ends at `run_trials`."""


class CrewFailed(CrewLost):
    """Raised when a crew has no room on its machine to end a trial. It gets no more trials. Ends at `run_trials`."""


class CrewRefused(Exception):  # noqa: N818 - says what happened
    """Raised when a crew did not start a trial, with the reason. Ends at `run_trials`."""


class NotBegun(Exception):  # noqa: N818 - says what happened
    """Raised when a crew had no place for a trial, or was lost before it began the trial. Ends at `run_trials`."""


class CrewSettings(Record):
    """Settings that all executors share."""

    workers: int | None = Field(default=None, ge=1)
    """Number of trials at a time in one crew; None for the number of cores, or for what its node offers."""
    retries: int = Field(default=2, ge=0)
    """Number of repetitions of a trial after infrastructure failures, and likewise after losses of its node."""

    @property
    def at_once(self) -> int:
        """Number of trials at a time in one crew, as far as it is known before there are nodes."""
        return self.workers or os.cpu_count() or 1


class Crew(Protocol):
    """A runner of trials on one machine."""

    @property
    def width(self) -> int:
        """Number of trials that the crew may have at a time, running and waiting ones together."""

    def start(self, trial: PlannedTrial) -> Future[TrialRecord]:
        """Start a trial. The future raises `CrewLost`, `CrewRefused`, `NotBegun` or what ends the sweep."""


class Team(Protocol):
    """The crews of a sweep, which may change while it runs."""

    @property
    def look_seconds(self) -> float | None:
        """Longest wait for a trial to end before crews are looked at again; None if they never change."""

    def crews(self) -> Sequence[Crew]:
        """Return the crews that may be given trials now. Raises `AssayError` if there will be none."""

    def dismiss(self, crew: Crew, why: EngineError | CrewRefused | CrewLost) -> None:
        """Give this crew no more trials. Raises `EngineError` if the sweep cannot go on without it."""


class EngineFaults:
    """Counts trials in a row that the Docker Engine of one crew has spoiled."""

    def __init__(self) -> None:
        self._tasks: list[tuple[str, str]] = []

    def after(self, record: TrialRecord) -> EngineError | None:
        """Return the error to raise once too many trials in a row failed at the engine; None before that.

        Failures of a single task are not enough: the task may be the cause, and others may work.
        """
        failed = record.status is Status.INFRA_INVALID and record.error
        if not failed or failed.type != EngineError.__name__:
            self._tasks.clear()
            return None
        self._tasks.append((record.dataset, record.task))
        if len(self._tasks) < ENGINE_FAILURES or len(set(self._tasks)) == 1:
            return None
        message = f"{len(self._tasks)} trials in a row failed at the Docker Engine: {failed.message}"
        return EngineError(f"{message} Mend it ('make docker'); the same command resumes.")


def run_trials(desk: Desk, team: Team, cancel: Event) -> Generator[TrialRecord]:
    """Hand out the desk's trials to a team and yield records as they end. See `protocols.Executor.run`.

    A trial is handed out only when a crew has room, so that a cancelled sweep starts nothing more.
    """
    running: dict[Future[TrialRecord], tuple[Crew, PlannedTrial]] = {}
    busy: Counter[Crew] = Counter()
    ended: SimpleQueue[Future[TrialRecord]] = SimpleQueue()
    faults: dict[Crew, EngineFaults] = {}
    with ExitStack() as failed:
        failed.callback(cancel.set)  # after an error or Ctrl-C, running trials see it and stop
        while True:
            for crew in team.crews():
                width = crew.width
                while busy[crew] < width and (trial := desk.next()):
                    desk.display.started(trial.key, trial.name)
                    future = crew.start(trial)
                    running[future] = crew, trial
                    busy[crew] += 1
                    future.add_done_callback(ended.put)
            if not running and desk.is_over:
                failed.pop_all()
                return
            for future in _next(ended, team.look_seconds):
                crew, trial = running.pop(future)
                busy[crew] -= 1
                desk.display.left(trial.key)
                if record := _ended(desk, team, crew, trial, future):
                    yield record
                    if error := faults.setdefault(crew, EngineFaults()).after(record):
                        team.dismiss(crew, error)


def _next(ended: SimpleQueue[Future[TrialRecord]], seconds: float | None) -> Iterator[Future[TrialRecord]]:
    """Wait for a trial to end, for so many seconds, and yield it with all others that have ended."""
    with suppress(Empty):
        yield ended.get(timeout=seconds)
        while True:
            yield ended.get_nowait()


def _ended(
    desk: Desk, team: Team, crew: Crew, trial: PlannedTrial, future: Future[TrialRecord]
) -> TrialRecord | None:
    """Return the record of a trial; None if it goes back to the desk. Raises what ended the sweep."""
    try:
        return future.result()
    except CrewRefused as refusal:
        team.dismiss(crew, refusal)
        desk.put_back(trial)
        return None
    except NotBegun:
        desk.put_back(trial)
        return None
    except CrewLost as loss:
        team.dismiss(crew, loss)
        return desk.lost(trial, str(loss))


def reap(settings: Settings, doing: Say, note: Say) -> None:
    """Remove the containers that dead runners left on this machine."""
    reaped = settings.sandbox.reap(doing)
    doing("")
    if reaped.removed:
        note(f"Removed {reaped.removed} containers that an earlier runner left.")
    if reaped.complaint:
        note(reaped.complaint)


def install(settings: Settings, trials: Sequence[PlannedTrial], note: Say) -> dict[str, InstalledBundle]:
    """Install the agents of these trials and fetch what their datasets need; return the bundles by name."""
    recipes = {t.cell.agent.bundle.name: t.cell.agent.bundle for t in trials if t.cell.agent.bundle}
    bundles = settings.sandbox.prepare(list(recipes.values()), note)
    for dataset in datasets_of(trial.cell for trial in trials):
        dataset.prepare(note)
    return bundles
