"""The bounds of every dataset: one agent applies the task's solution, the other does nothing."""

from __future__ import annotations

from runner.agents.in_process import InProcess
from runner.errors import TaskError
from runner.protocols import Sandbox
from runner.records import BundleRecipe, Endpoint, ExecResult, ExecSpec, Record, Task

SOLUTION_DIR = "/solution"


class Bound(InProcess, Record):
    """An agent that calls no model. Its reward tests the task and the verifier."""

    version: str = "1"
    uses_model: bool = False
    bundle: BundleRecipe | None = None

    @property
    def tools(self) -> dict[str, tuple[str, ...]]:
        """Return no tools, because the agent calls no model."""
        return {}

    def reported(self, sandbox: Sandbox, result: ExecResult) -> None:
        """Return None: the agent uses no tokens. See `protocols.Agent`."""


class Oracle(Bound):
    """The agent that applies the task's own solution. A reward below 1 means a broken task or verifier."""

    name: str = "oracle"

    def command(self, task: Task, endpoint: Endpoint | None) -> ExecSpec:  # noqa: ARG002 - see protocols.Agent
        """Return the command that runs the solution, which only this agent gets. Raises `TaskError` without one."""
        if task.solution is None:
            raise TaskError(f"{task.name} has no solution folder: agent=oracle cannot run it.")
        if task.solution_refused:
            raise TaskError(f"{task.name}: its solution cannot be applied. {task.solution_refused}")
        return ExecSpec(
            argv=("bash", f"{SOLUTION_DIR}/solve.sh"),
            env={"DEBIAN_FRONTEND": "noninteractive", **task.solution_env},
            uploads={SOLUTION_DIR: task.solution},
        )


class Nop(Bound):
    """The agent that does nothing. A reward above 0 means that the task rewards an untouched workspace."""

    name: str = "nop"

    def command(self, task: Task, endpoint: Endpoint | None) -> ExecSpec:  # noqa: ARG002 - see protocols.Agent
        """Return a command that ends at once."""
        return ExecSpec(argv=("true",))
