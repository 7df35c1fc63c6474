"""The verifier of dataset=execution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.records import Record, Task, Verdict

if TYPE_CHECKING:
    from pathlib import Path

    from runner.protocols import Ask, Sandbox, SandboxProvider


class ExecutionVerifier(Record):
    """Builds and runs what the agent delivers, and compares what its tests did with the truth."""

    @property
    def judge(self) -> None:
        """Tests decide, and no model."""

    @property
    def shaping(self) -> dict[str, str]:
        """What of it can change a reward."""

    def verify(
        self, task: Task, sandbox: Sandbox, sandboxes: SandboxProvider, into: Path, ask: Ask | None = None
    ) -> Verdict:
        """See `protocols.Verifier`."""
