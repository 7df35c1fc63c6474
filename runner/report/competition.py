"""The rule by which cells compete, for criteria, pairs, pictures and jobs (docs/metrics.md, Which cells compare)."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from metrics.errors import listed
from metrics.table import other_tasks

BOUNDS = ("oracle", "nop")
"""Agents that are bounds of a dataset and do not compete."""


def without_bounds(trials: pd.DataFrame) -> pd.DataFrame:
    """Return the trials of all other agents; a table without a column `agent` has no bounds."""
    if "agent" not in trials:
        return trials
    bounds = trials["agent"].isin(BOUNDS)
    return trials[~bounds] if bounds.any() else trials


def contenders(trials: pd.DataFrame) -> pd.DataFrame:
    """Return the trials of the cells that are compared: no bounds, and no cell that planned other tasks."""
    rows = without_bounds(trials)
    return rows[~rows["cell"].isin(other_tasks(rows))]


def left_out(trials: pd.DataFrame) -> Iterator[str]:
    """Yield a line that names the cells that planned other tasks than the others, if there are any."""
    rows = without_bounds(trials)
    if odd := other_tasks(rows):
        yield (
            f"{len(odd)} of {rows['cell'].nunique()} cells planned other tasks than the others, so they have no rank "
            f"and are compared with nobody: {listed(sorted(odd))}."
        )
