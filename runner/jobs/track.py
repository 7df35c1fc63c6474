"""`job=track`: rebuild the tables and tracked runs of a sweep from its records. Runs nothing."""

from __future__ import annotations

from runner.sweeps.cells import Job, Sweep


class Track(Job):
    """Rebuilds tables and tracked runs from a sweep's plan, scoring and records.

    A typed scoring becomes the sweep's own; a typed key changes that key alone. Without either, the sweep keeps the
    scoring that it had.
    """

    def run(self, sweep: Sweep) -> int:
        """Write tables and tracked runs and return 0.

        Raises `ConfigError` if there is no such sweep, and `TrackingError` if the store fails.
        """
        from runner.report.projections import write_projections  # noqa: PLC0415 - brings pandas
        from runner.report.rescoring import rescore  # noqa: PLC0415

        folder = sweep.settings.folder
        if changed := rescore(folder, sweep.rescorings):
            print(changed)
        print(write_projections(folder, sweep.settings.outputs))
        print(sweep.settings.tracker.log(folder))
        return 0
