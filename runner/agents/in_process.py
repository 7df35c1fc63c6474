"""The common part of agents without a program of their own in the sandbox."""

from __future__ import annotations

from runner.records import ApiName


class InProcess:
    """Base class for agents without a program in the sandbox. It answers for the parts of `protocols.Agent` about
    one.
    """

    @property
    def api(self) -> ApiName:
        """API that `Bench.ask` uses."""
        return "chat"

    @property
    def memory_mb(self) -> None:
        """Return None, because the agent needs no memory in the sandbox."""

    @property
    def skills(self) -> tuple[str, ...]:
        """Return no folders, because the agent reads no skills."""
        return ()

    @property
    def needs(self) -> tuple[str, ...]:
        """Return no fields, because any model that answers will do."""
        return ()
