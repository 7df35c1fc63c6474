"""`job=sensitivity`: rank one sweep under several scorings. Reads records and runs nothing."""

from __future__ import annotations

from typing import ClassVar

from pydantic import PositiveFloat, field_validator

from runner.errors import ConfigError
from runner.sweeps import sweep_file
from runner.sweeps.cells import Job, Sweep


class Sensitivity(Job):
    """Ranks the cells of a sweep by AMS under its own scoring and under each that was asked for.

    If none was typed, these are the sweep's own scoring with each of `alphas` and of `scales`.
    """

    reads_trials: ClassVar[bool] = True
    several_scorings: ClassVar[bool] = True
    alphas: tuple[float, ...] = ()
    """Values of alpha; empty for the sweep's own."""
    scales: tuple[PositiveFloat, ...] = ()
    """Factors of the budgets and thresholds of the sweep's own tiers; empty for 1."""

    @field_validator("alphas")
    @classmethod
    def _are_shares(cls, alphas: tuple[float, ...]) -> tuple[float, ...]:
        if not all(0 <= alpha <= 1 for alpha in alphas):
            raise ValueError("alpha lies in [0, 1]")
        return alphas

    def run(self, sweep: Sweep) -> int:
        """Rank and return 0.

        Raises `ConfigError` if there is no such sweep or no scoring was given, and `TableError` if a scoring does not
        fit the trials.
        """
        from runner.report.projections import write_projections  # noqa: PLC0415 - brings pandas and matplotlib
        from runner.report.rescoring import compare_scorings  # noqa: PLC0415

        if not (sweep.scorings or self.alphas or self.scales):
            raise ConfigError(
                "Which scorings? Add -m scoring.alpha=0.4,0.8, or take experiment=agentmeter_alpha."
            )
        settings = sweep.settings
        folder = settings.folder
        own = sweep_file.read(folder).scoring
        grid = [
            own.scaled(alpha, by) for by in self.scales or (1.0,) for alpha in self.alphas or (own.alpha,)
        ]
        print(compare_scorings(folder, sweep.rescorings(own) or grid))
        write_projections(folder, settings.outputs)  # its report shows it
        return 0
