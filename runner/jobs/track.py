"""`job=track`: rebuild the tables and tracked runs of a sweep from its records. Runs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.records import Record

if TYPE_CHECKING:
    from runner.config import Sweep


class Track(Record):
    """Projects again what is on disk: the plan and scoring that the sweep was last run with, and its records."""

    needs_keys: bool = False
    several_scorings: bool = False
    """It calls no model."""

    def run(self, sweep: Sweep) -> int:
        """Exit code 0. Raises `ConfigError` when there is no such sweep, `TrackingError` when the store fails."""
        from runner.report.projections import write_projections  # noqa: PLC0415 - brings pandas

        folder = sweep.settings.outputs / sweep.settings.name
        print(write_projections(folder, sweep.settings.outputs))
        print(sweep.settings.tracker.log(folder))
        return 0
