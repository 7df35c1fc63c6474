"""What an agent that runs in our process, and not in a sandbox, is given for one rollout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from runner.protocols import Agent

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from runner.environments import Rerun
    from runner.protocols import Sandbox
    from runner.records import ExecResult, Model, Task, ToolCall


class Bench(Protocol):
    """One rollout's means. Nothing of it outlives the rollout."""

    @property
    def sandbox(self) -> Sandbox:
        """The task's machine; the agent's commands run there and nowhere else."""

    @property
    def folder(self) -> Path:
        """Of the trial's record: what is written there stays."""

    @property
    def cache(self) -> Path:
        """A folder that all trials of all sweeps share."""

    @property
    def model(self) -> Model:
        """The model that `ask` asks, so that what it said can be kept for others of the same."""

    def ask(self, messages: Sequence[dict[str, str]]) -> str:
        """Ask the trial's model (role and content each); returns its words.

        A call like every agent's: metered, capped and on the ledger. Raises `Stopped` when the budget, the deadline or
        the user allow no more, and `ModelFailed` when the model gave no answer.
        """

    def check(self) -> None:
        """Raises `Stopped` when the deadline has passed or the user has stopped the run."""

    def rerun(self) -> Rerun:
        """What the two scripts that lie in the workspace now do from scratch, in a new sandbox."""


class Driven(Protocol):
    """How a rollout in our process ended."""

    result: ExecResult
    tools: tuple[ToolCall, ...]


class DrivingAgent(Agent, Protocol):
    """An agent that runs in our process and drives the sandbox from there."""

    def run(self, task: Task, bench: Bench) -> Driven:
        """Work until it is done or gives up. Raises `EngineError` when the sandbox cannot be reached."""
