"""`job=sensitivity`: one sweep under several scorings. Reads records and runs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from runner.errors import ConfigError
from runner.job import Job

if TYPE_CHECKING:
    from runner.cells import Sweep


class Sensitivity(Job):
    """Ranks the cells of a sweep by AMS under each scoring that was asked for, beside the sweep's own."""

    several_scorings: ClassVar[bool] = True

    def run(self, sweep: Sweep) -> int:
        """Exit code 0. Raises `ConfigError` when there is no such sweep or no scoring was given, and `TableError` when
        a scoring does not fit the trials.
        """
        from runner.report.projections import write_projections  # noqa: PLC0415 - brings pandas and matplotlib
        from runner.report.rescoring import compare_scorings  # noqa: PLC0415

        if not sweep.scorings:
            raise ConfigError(
                "Which scorings? Add -m scoring.alpha=0.4,0.8, or take experiment=agentmeter_alpha."
            )
        settings = sweep.settings
        folder = settings.outputs / settings.name
        print(compare_scorings(folder, sweep.scorings))
        write_projections(folder, settings.outputs)  # its report shows it
        return 0
