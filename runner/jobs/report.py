"""`job=report`: the tables and the report page of a sweep, from its records. Runs nothing."""

from __future__ import annotations

from runner.sweeps.cells import Job, Sweep


class Report(Job):
    """Written at any time, also while the sweep still runs: what is not judged yet is shown as not run."""

    def run(self, sweep: Sweep) -> int:
        """Exit code 0. Raises `ConfigError` when there is no such sweep, `OutputsError` when it cannot be written."""
        from runner.report.projections import write_projections  # noqa: PLC0415 - brings pandas and matplotlib
        from runner.report.rescoring import rescore  # noqa: PLC0415

        folder = sweep.settings.folder
        if changed := rescore(folder, sweep.rescorings):
            print(changed)
        print(write_projections(folder, sweep.settings.outputs))
        return 0
