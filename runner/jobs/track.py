"""`job=track`: rebuild the tables and tracked runs of a sweep from its records. Runs nothing."""

from __future__ import annotations

from runner.sweeps.cells import Job, Sweep


class Track(Job):
    """Projects again what is on disk: a sweep's plan, scoring and records.

    A scoring on the command line becomes the sweep's own, and a key of one changes that key alone; without either the
    sweep keeps what it was last scored with.
    """

    def run(self, sweep: Sweep) -> int:
        """Exit code 0. Raises `ConfigError` when there is no such sweep, `TrackingError` when the store fails."""
        from runner.report.projections import write_projections  # noqa: PLC0415 - brings pandas
        from runner.report.rescoring import rescore  # noqa: PLC0415

        folder = sweep.settings.folder
        if changed := rescore(folder, sweep.rescorings):
            print(changed)
        print(write_projections(folder, sweep.settings.outputs))
        print(sweep.settings.tracker.log(folder))
        return 0
