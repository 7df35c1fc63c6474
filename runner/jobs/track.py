"""`job=track`: rebuild the tables and tracked runs of a sweep from its records. Runs nothing."""

from __future__ import annotations

from runner.jobs.report import Report
from runner.sweeps.cells import Sweep


class Track(Report):
    """Rebuilds tables and tracked runs from a sweep's plan, scoring and records.

    A typed scoring becomes the sweep's own; a typed key changes that key alone. Without either, the sweep keeps the
    scoring that it had.
    """

    def run(self, sweep: Sweep) -> int:
        """Write tables and tracked runs and return 0.

        Raises `ConfigError` if there is no such sweep, and `TrackingError` if the store fails.
        """
        super().run(sweep)
        print(sweep.settings.tracker.log(sweep.settings.folder))
        return 0
