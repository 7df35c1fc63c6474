"""What agents that work in the runner's own process, and ask their model through `Bench.ask`, have in common."""

from __future__ import annotations

from runner.records import ApiName


class InProcess:
    """Answers to the part of `protocols.Agent` that concerns programs in a sandbox."""

    @property
    def api(self) -> ApiName:
        """The API that `Bench.ask` speaks."""
        return "chat"

    @property
    def memory_mb(self) -> None:
        """No limit of its own: it works outside of the sandbox."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Nothing beyond a model's words."""
        return ()
