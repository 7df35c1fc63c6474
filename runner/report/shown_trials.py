"""The trials that a page lists one by one: all of a small sweep, and a part of a large one.

A page has an element for each trial that it lists, so its size and the time to write it would grow with the sweep.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from runner.report.findings import Findings
from runner.report.verdict_conditions import passes

MOST: Final = 5000
"""Most trials that one page lists."""
_CELLS: Final = 24
"""Cells of a large sweep that are listed. More columns are hard to read, and leave room for few tasks."""


class Shown(NamedTuple):
    """Trials that are listed, as whole boxes of a task and a cell."""

    trials: pd.DataFrame
    cells: tuple[str, ...]
    """The cells that are listed, best first."""
    about: str
    """Sentence about the trials that are left out and where all of them are; empty if none is left out."""


def shown_trials(found: Findings, most: int, columns: int = _CELLS) -> Shown:
    """Return at most `most` trials of a dataset, or those of one task if these are more.

    Of a larger sweep the best cells are chosen, at most so many `columns`, and the tasks on which cells differ most:
    those that about half of all cells solved.
    """
    trials, ranked = found.trials, tuple(map(str, found.cells.index))
    if len(trials) <= most:
        return Shown(trials, ranked, "")
    cells = ranked[:columns]
    rows = trials[trials["cell"].isin(cells)]
    tasks, sizes = _most_telling(trials), rows["task"].value_counts()
    taken = int((sizes.reindex(tasks, fill_value=0).cumsum() <= most).sum())
    chosen = tasks[: max(taken, 1)]
    about = (
        f"These are {len(chosen):,} of {len(tasks):,} tasks, those on which cells differ most, and the first "
        f"{len(cells)} of {len(ranked):,} cells in the order of the leaderboard. All {len(trials):,} trials are in "
        "trials.csv and trials.parquet in the folder of the sweep, with the key by which the page of a trial is named."
    )
    return Shown(rows[rows["task"].isin(chosen)], cells, about)


def _most_telling(trials: pd.DataFrame) -> list[str]:
    """Return all tasks, first those that about half of all cells solved; ties go by name."""
    tasks, cells = (pd.Categorical(trials[name]) for name in ("task", "cell"))
    solved = np.zeros((len(tasks.categories), len(cells.categories)), dtype=bool)
    passed = passes(trials).to_numpy(bool)
    solved[tasks.codes[passed], cells.codes[passed]] = True
    order = np.argsort(np.abs(solved.mean(axis=1) - 0.5), kind="stable")
    return [str(name) for name in tasks.categories[order]]
