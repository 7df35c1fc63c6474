"""The values that trials pass on while they run: one for all trials of a sweep, and one for each try at a trial."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from runner.trials.workspace import GivenWorkspaces

if TYPE_CHECKING:
    from pathlib import Path

    from runner.gateway import Gateway
    from runner.protocols import CacheEntry, SandboxProvider
    from runner.records import Activity, InstalledBundle, Retry, TrialRecord
    from runner.sweeps.plan import PlannedTrial
    from runner.trials.state import TrialState


class Watcher(Protocol):
    """An observer of trials. Its methods are called from many threads."""

    def entered(self, key: str, phase: str) -> None:
        """Note that the trial of this key enters a phase, named as in `PhaseSeconds`."""

    def acting(self, key: str, activity: Activity) -> None:
        """Note the present action of the agent in the trial of this key."""

    def making(self, key: str, how: str, image: str) -> AbstractContextManager[None]:
        """Return the context in which an image of the trial is obtained. See `protocols.ImageProgress` for `how`."""


class Unwatched:
    """A watcher that does nothing."""

    def entered(self, key: str, phase: str) -> None:
        """See `Watcher`."""

    def acting(self, key: str, activity: Activity) -> None:
        """See `Watcher`."""

    def making(self, key: str, how: str, image: str) -> AbstractContextManager[None]:  # noqa: ARG002 - the protocol's
        """See `Watcher`."""
        return nullcontext()


class TrialStore(Protocol):
    """The part of `sweeps.store.Store` that trials use."""

    def cached(self, name: str, check: Callable[[], None]) -> AbstractContextManager[CacheEntry]:
        """Wait for a file of the cache that all trials share, and hold it. `check` may end the wait by raising."""

    def folder(self, key: str) -> Path:
        """Return the folder of one trial, which may not exist yet."""

    def begin(self, key: str) -> tuple[Path, tuple[Retry, ...]]:
        """Make room for a new try. Return its empty folder and the tries before it. Raises `OutputsError`."""

    def write(self, record: TrialRecord) -> None:
        """Write one record, with its folder. Raises `OutputsError`."""


@dataclass(frozen=True)
class TrialContext:
    """Everything that the trials of a sweep share."""

    sandboxes: SandboxProvider
    gateway: Gateway
    store: TrialStore
    sweep: str
    """Name of the sweep."""
    bundles: dict[str, InstalledBundle]
    """Installed bundles by name, the runtime `python` included."""
    watcher: Watcher = field(default_factory=Unwatched)
    given: GivenWorkspaces = field(default_factory=GivenWorkspaces)


@dataclass(frozen=True)
class TrialRun:
    """One try at a trial: everything that its phases share."""

    trial: PlannedTrial
    context: TrialContext
    state: TrialState
    """Results of the phases so far."""
    stack: ExitStack
    """Stack that closes the session at the gateway, the sandbox and the proxy when the try ends."""
    cancelled: Callable[[], bool]
    """Function that returns whether the user has stopped the sweep."""
