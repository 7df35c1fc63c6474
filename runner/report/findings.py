"""The figures of a sweep, computed once for the terminal, the page and the tracked runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from metrics.ams import task_parts, tier_scores
from metrics.table import GROUPED, categorized
from metrics.uncertainty import Draws, bootstrap
from runner.records import Scoring
from runner.report.leaderboard import cell_scores, lines
from runner.report.wording import cell_name
from runner.sweeps.sweep_file import SweepFile

PICTURED = 40
"""Most cells that a picture with a line for each cell shows; of more, nothing can be read."""


class Findings(NamedTuple):
    """A sweep with its figures."""

    plan: SweepFile
    folder: Path
    """Folder of the sweep, where other jobs leave their results."""
    trials: pd.DataFrame
    cells: pd.DataFrame
    """Result of `cell_scores`: best first, those that do not compete last."""
    tiers: pd.DataFrame
    """Result of `metrics.ams.tier_scores`."""
    draws: Draws
    ran: Mapping[str, Any]
    """Content of `lock.json`: versions and digests."""

    @property
    def scoring(self) -> Scoring:
        """Scoring of the sweep."""
        return self.plan.scoring

    @property
    def contenders(self) -> pd.DataFrame:
        """Cells that compete, best first: no bounds and no cells of other tasks."""
        return self.cells[self.cells["rank"].notna()]

    @property
    def rival_trials(self) -> pd.DataFrame:
        """Trials of the contenders."""
        return self._trials_of(self.contenders.index)

    @property
    def rivals(self) -> Draws:
        """Draws of the contenders."""
        return part_of(self.draws, self.contenders.index)

    @property
    def pictured(self) -> Findings:
        """The same with only the first `PICTURED` contenders, best first."""
        return self._replace(cells=self.contenders.head(PICTURED))

    @property
    def pictured_note(self) -> str:
        """Sentence for a caption, with a space before it; empty if all contenders are pictured."""
        count = len(self.contenders)
        if count <= PICTURED:
            return ""
        return f" Shown are the first {PICTURED} of {count} cells in the order of the leaderboard."

    @property
    def dataset(self) -> str:
        """Name of the dataset, or of the first one of several."""
        return str(self.trials["dataset"].iloc[0])

    @property
    def several_budgets(self) -> bool:
        """Return whether a cell must be named with its budget."""
        return len(self.cells["budget"].unique()) > 1

    @property
    def names(self) -> dict[str, str]:
        """Cell -> its name for people, in the order of `cells`."""
        return {
            cell: cell_name(line, budget=self.several_budgets) for cell, line in lines(self.cells).items()
        }

    def by_dataset(self) -> list[tuple[str, Findings]]:
        """Return the findings of each dataset alone, by name: cells of different datasets are never compared."""
        return [(str(name), self._part(set(own.index))) for name, own in self.cells.groupby("dataset")]

    def _part(self, cells: set[str]) -> Findings:
        return self._replace(
            trials=self._trials_of(cells),
            cells=self.cells[self.cells.index.isin(cells)],
            tiers=self.tiers[self.tiers.index.get_level_values("cell").isin(cells)],
        )

    def _trials_of(self, cells: Iterable[str]) -> pd.DataFrame:
        """Return the trials of these cells; all of them uncopied, since a copy of a million trials is slow."""
        own = self.trials["cell"].isin(list(cells))
        return self.trials if own.all() else self.trials[own]


def part_of(draws: Draws, cells: Iterable[str]) -> Draws:
    """Return the part of draws that is of these cells, in the order of the draws."""
    own = set(cells)
    at = [place for place, cell in enumerate(draws.cells) if cell in own]
    return Draws(
        tuple(draws.cells[place] for place in at),
        tuple(draws.datasets[place] for place in at),
        {name: values[at] for name, values in draws.observed.items()},
        {name: values[:, at] for name, values in draws.drawn.items()},
    )


def find(plan: SweepFile, folder: Path, trials: pd.DataFrame, ran: Mapping[str, Any]) -> Findings:
    """Compute the findings of a sweep; `trials` is the result of `trials_table`."""
    grouped = categorized(trials, GROUPED)
    parts = task_parts(grouped, plan.scoring)
    draws = bootstrap(grouped, plan.scoring, parts)
    return Findings(
        plan,
        folder,
        trials,
        cell_scores(grouped, plan.scoring, draws, parts),
        tier_scores(grouped, plan.scoring, parts),
        draws,
        ran,
    )
