"""The two bounds of every dataset: an agent that applies the task's solution, and one that does nothing."""

from __future__ import annotations

from runner.errors import TaskError
from runner.protocols import Sandbox
from runner.records import ApiName, BundleRecipe, Endpoint, ExecResult, ExecSpec, Record, Task

SOLUTION_DIR = "/solution"


class Bound(Record):
    """An agent that calls no model: what it is worth says what the task is worth."""

    version: str = "1"
    uses_model: bool = False
    bundle: BundleRecipe | None = None

    @property
    def api(self) -> ApiName:
        """Any: it calls no model."""
        return "chat"

    @property
    def memory_mb(self) -> None:
        """Any limit will do."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Nothing: it calls no model."""
        return ()

    @property
    def tools(self) -> dict[str, tuple[str, ...]]:
        """None: it calls no model."""
        return {}

    def reported(self, sandbox: Sandbox, result: ExecResult) -> None:
        """See `protocols.Agent`: there are no tokens to speak of."""


class Oracle(Bound):
    """Applies the task's own solution: its reward must be 1 everywhere, or the task or its verifier is broken."""

    name: str = "oracle"

    def command(self, task: Task, endpoint: Endpoint | None) -> ExecSpec:  # noqa: ARG002 - see protocols.Agent
        """Upload the solution, which no other agent ever gets, and run it. Raises `TaskError` if there is none."""
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
    """Does nothing: a reward above 0 is given away by the task."""

    name: str = "nop"

    def command(self, task: Task, endpoint: Endpoint | None) -> ExecSpec:  # noqa: ARG002 - see protocols.Agent
        """End at once."""
        return ExecSpec(argv=("true",))
