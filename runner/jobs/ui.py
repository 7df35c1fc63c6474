"""`job=ui`: MLflow's user interface over what was logged. Runs nothing."""

from __future__ import annotations

from pydantic import Field

from runner.sweeps.cells import Job, Sweep


class Ui(Job):
    """Opens the tracker's store, until Ctrl-C."""

    port: int = Field(default=5000, ge=1, le=65535)
    """Of the loopback, where it answers."""

    def run(self, sweep: Sweep) -> int:
        """Exit code 0 where a server runs already. Raises `ConfigError` when nothing was logged."""
        sweep.settings.tracker.open(sweep.settings.outputs, self.port)
        return 0
