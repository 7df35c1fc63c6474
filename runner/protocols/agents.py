"""Protocols of agents, and of the bench for those that run in our process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from runner.protocols.base import Configured

if TYPE_CHECKING:
    from runner.protocols.machines import Machine, Sandbox, SandboxProvider
    from runner.records import (
        ApiName,
        BundleRecipe,
        Endpoint,
        ExecResult,
        ExecSpec,
        Left,
        Model,
        ModelReply,
        OwnUsage,
        Task,
        Usage,
    )


class Agent(Configured, Protocol):
    """A worker on tasks: a `CommandAgent` or a `DrivingAgent`."""

    @property
    def name(self) -> str:
        """Name on leaderboards."""

    @property
    def version(self) -> str:
        """Version of the program that is driven."""

    @property
    def uses_model(self) -> bool:
        """Return whether the agent asks a model. An agent that does not (oracle, nop) has one cell for all models."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Fields of `records.Model` that the agent needs. A model that lacks one of them is refused."""

    @property
    def api(self) -> ApiName:
        """API through which the agent asks its model. The check before the first trial uses the same API."""

    @property
    def memory_mb(self) -> int | None:
        """MiB that the agent needs in its sandbox. A task's lower limit is raised to this; None raises no limit."""

    @property
    def skills(self) -> tuple[str, ...]:
        """Folders of the sandbox in which the agent looks for skills; empty if it reads none.

        See `agents.cli.CliAgent.skills` for their form.
        """

    @property
    def tools(self) -> Mapping[Any, tuple[str, ...]]:
        """Kind of tool -> names under which the agent's tools of that kind appear in its calls."""

    @property
    def bundle(self) -> BundleRecipe | None:
        """Installation of the agent, mounted read-only at `/opt/assay/<bundle.name>`; None needs no installation."""

    def reported(self, sandbox: Sandbox, result: ExecResult) -> OwnUsage | None:
        """Return the agent's own count of its tokens, after the rollout that ended as `result`; None if it has none.

        Called before the sandbox's processes are ended. Raises `ValueError` when the count cannot be read, and
        `EngineError` when the sandbox cannot be reached.
        """


class CommandAgent(Agent, Protocol):
    """A coding CLI or loop that runs in the sandbox: a pure function from task and endpoint to one command."""

    def command(self, task: Task, endpoint: Endpoint | None) -> ExecSpec:
        """Return what to run in the task's sandbox. `endpoint` is None exactly when `uses_model` is False."""


@runtime_checkable
class DrivingAgent(Agent, Protocol):
    """An agent that runs in our process and drives the sandbox from there."""

    def refusal(self, task: Task) -> str | None:
        """Return why the agent cannot work on this task, in a sentence that says what to do; None if it can.

        Called before anything is started or fetched, also in a dry run.
        """

    def run(self, task: Task, bench: Bench) -> int:
        """Work until the task is done or given up. Return the exit code: 0 when the agent considers the task done.

        `Stopped` and `ModelFailed`, which the bench raises, pass through. Raises `EngineError` when a sandbox cannot be
        reached.
        """


@runtime_checkable
class EstimatingAgent(Protocol):
    """An agent that knows what a trial takes if it uses up all that the agent allows itself. The plan prices it."""

    @property
    def expected_usage(self) -> Usage:
        """Tokens of such a trial."""


@runtime_checkable
class SettableAgent(Protocol):
    """An agent that works in one of several ways, such as a paper's or ours. The record says which."""

    @property
    def setting(self) -> str:
        """Way in which the agent works, in a few words."""


def helper_of(agent: Agent) -> Model | None:
    """Return the second model that an agent in our process asks (`Bench.helper`), by its field `helper_model`.

    None: the agent has none, and the trial's model helps itself.
    """
    helper: Model | None = getattr(agent, "helper_model", None)
    return helper


class CacheEntry(Protocol):
    """A file of the cache that all trials of all sweeps share, held against all other trials, on any machine."""

    @property
    def content(self) -> bytes | None:
        """Content of the file; None if there is no such file."""

    def keep(self, content: bytes) -> None:
        """Write the file. Raises `OutputsError`."""


class Bench(Protocol):
    """Everything that a `DrivingAgent` gets for one rollout, valid only during that rollout. For use by one thread."""

    @property
    def sandbox(self) -> Machine:
        """Machine of the task, in which the agent's commands run.

        `exec` raises `Stopped` when the rollout ends during a command: by the deadline, by the user, or because the
        command killed the machine.
        """

    @property
    def sandboxes(self) -> SandboxProvider:
        """Source of further machines, for work that has to start from scratch."""

    @property
    def key(self) -> str:
        """Key of the trial, which pays for questions whose answers are cached for other trials."""

    def cached(self, name: str) -> AbstractContextManager[CacheEntry]:
        """Wait for the file of this name, relative to the cache, and hold it. Raises as `check` does."""

    @property
    def model(self) -> Model:
        """Model that `ask` asks. Its answers can be cached for other trials with the same model."""

    @property
    def helper(self) -> Bench:
        """This bench with the agent's helper model in the place of `model`; the same bench if the agent has none.

        Both models' calls are on the trial's ledger, and the budget caps them together.
        """

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the deadline, 0 once it has passed; None without a deadline."""

    @property
    def is_over(self) -> bool:
        """Return whether the deadline has passed or the user has stopped the run. Any thread may read this."""

    def check(self) -> None:
        """Raise `Stopped` when the rollout is over (`is_over`)."""

    def ask(self, messages: Sequence[dict[str, str]]) -> str:
        """Ask the trial's model and return its words. Each message has a role and a content.

        The call is metered, capped and on the ledger like every agent's. Raises `Stopped` when the budget, the deadline
        or the user allow no more calls, and `ModelFailed` when the model gave no answer.
        """

    def converse(self, messages: Sequence[Mapping[str, Any]], fields: Mapping[str, Any]) -> ModelReply:
        """Ask like `ask` and return the whole answer. `fields` are further fields of a chat request, such as `tools`.

        The content of a message is a text or a list of parts. Raises what `ask` raises, and `RequestRefused`, a
        `ModelFailed`, when the provider refuses this very request.
        """

    @property
    def left(self) -> Left:
        """Remainder of the rollout's budget and time."""

    def calls(self, question: str) -> tuple[str, ...]:
        """Return the lines of the trial's ledger of conversations that began with this question."""

    def share(self, calls: Sequence[str]) -> None:
        """Note for replays that these calls of another trial, lines of its ledger, answered a question of this one."""

    def use(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Record that the model's last answer calls this tool. Call this before the tool runs."""

    def returned(self, result: str) -> None:
        """Record the result of the last tool. Call this before the model is asked again."""

    def log(self, text: str) -> None:
        """Add a line to the trial's `agent.stdout`, which people can read while the rollout runs."""
