"""Where the trials of a sweep are run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runner.gateway import Gateway
    from runner.protocols import SandboxProvider
    from runner.records import InstalledBundle
    from runner.store import Store


@dataclass(frozen=True)
class Lab:
    """What every trial of a sweep shares."""

    sandboxes: SandboxProvider
    gateway: Gateway
    store: Store
    sweep: str
    bundles: dict[str, InstalledBundle]
    """By name, the runtime `python` included."""
