"""`job=reprice`: rank the cells of a sweep at other prices, from token counts. Changes no record and runs nothing."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pydantic import Field

from runner.jobs.prices import configured
from runner.sweeps.cells import Job, Sweep


class Reprice(Job):
    """Prices every call of a sweep by `pricing=`, and shows AMS, USD per pass and rank before and after."""

    reads_trials: ClassVar[bool] = True
    models: dict[str, str] = {}
    """Model of the sweep -> entry of the snapshot; a model that is left out has the entry of its litellm id or name."""
    cache_hits: float | None = Field(default=None, ge=0, le=1)
    """Share of every call's input that is assumed to be read from a cache, none being written; None: as counted."""
    scale: float = Field(default=1.0, gt=0)
    """Factor of AMS's budgets and thresholds at the new prices."""
    path: Path | None = None
    """CSV file to write; None means `repriced.csv` in the sweep's folder."""

    def run(self, sweep: Sweep) -> int:
        """Print the table, write it as CSV and return 0.

        Raises `ConfigError` if there is no such sweep, its trials have no token counts or a model has no price, and
        `TableError` when a scoring does not fit.
        """
        from runner.report.repriced_ranks import REPRICED, compare_prices  # noqa: PLC0415 - brings pandas
        from runner.report.repricing import Terms  # noqa: PLC0415

        settings = sweep.settings
        terms = Terms(
            pricing=settings.pricing, entries=self.models, ids=configured(), cache_hits=self.cache_hits
        )
        path = self.path or settings.folder / REPRICED
        print(compare_prices(settings.folder, terms, sweep.rescorings, self.scale, path))
        return 0
