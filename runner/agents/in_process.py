"""The common part of agents without a program of their own in the sandbox."""

from __future__ import annotations

from runner.records import ApiName


class InProcess:
    """The part of `protocols.Agent` that concerns a program in the sandbox, for agents that bring none."""

    @property
    def api(self) -> ApiName:
        """The API of `Bench.ask`."""
        return "chat"

    @property
    def memory_mb(self) -> None:
        """None: the agent needs no memory in the sandbox."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Empty: the agent needs nothing but a model's words."""
        return ()
