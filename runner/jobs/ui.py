"""`job=ui`: show what was logged in MLflow's user interface. Runs nothing."""

from __future__ import annotations

from pydantic import Field

from runner.sweeps.cells import Job, Sweep


class Ui(Job):
    """Serves the tracker's user interface until Ctrl-C."""

    port: int = Field(default=5000, ge=1, le=65535)
    """Port on the loopback address."""

    def run(self, sweep: Sweep) -> int:
        """Return 0 if a server runs already. Raises `ConfigError` if nothing was logged."""
        sweep.settings.tracker.open(sweep.settings.outputs, self.port)
        return 0
