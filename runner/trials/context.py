"""Where the trials of a sweep are run."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from runner.gateway import Gateway
    from runner.protocols import SandboxProvider
    from runner.records import InstalledBundle
    from runner.sweeps.store import Store


class Watcher(Protocol):
    """Who is told what trials are at; called from many threads."""

    def entered(self, key: str, phase: str) -> None:
        """The trial of this key enters a phase, which is called as in `PhaseSeconds`."""

    def making(self, key: str, how: str, image: str) -> AbstractContextManager[None]:
        """An image of the trial is being made within the context; `how` is "building" or "pulling"."""


class Unwatched:
    """Nobody is told."""

    def entered(self, key: str, phase: str) -> None:
        """See `Watcher`."""

    def making(self, key: str, how: str, image: str) -> AbstractContextManager[None]:  # noqa: ARG002 - the protocol's
        """See `Watcher`."""
        return nullcontext()


@dataclass(frozen=True)
class Lab:
    """What every trial of a sweep shares."""

    sandboxes: SandboxProvider
    gateway: Gateway
    store: Store
    sweep: str
    bundles: dict[str, InstalledBundle]
    """By name, the runtime `python` included."""
    watcher: Watcher = field(default_factory=Unwatched)
