"""What an agent's two scripts do from scratch: an image of its Dockerfile, the project as published, and a watched run."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from runner.environments import Rerun
    from runner.protocols import SandboxProvider
    from runner.records import Task


class Deliverables(NamedTuple):
    """What lies in a workspace; None for what is not there, no regular file, no text, or too large."""

    dockerfile: str | None = None
    script: str | None = None
    results: str | None = None

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the files that are not there."""


def deliverables(workspace: Path) -> Deliverables:
    """What a workspace's tar holds (`Sandbox.get` of it), a link counting as nothing."""


def rerun(
    task: Task,
    delivered: Deliverables,
    sandboxes: SandboxProvider,
    seconds: float | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Rerun:
    """Build and run; whatever the scripts do is a value. `seconds` for all of it, where less than the task's limits are
    left. Raises `EngineError`.
    """
