"""Conclusions from a leaderboard in words: which attempts count, which figures are bounds, whose lead is clear."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from metrics.attempts import tries
from metrics.errors import listed
from metrics.table import valid
from metrics.uncertainty import FEWEST_TASKS
from runner.records import Scoring
from runner.report.four_criteria import Winner
from runner.report.wording import number

_EXACT = 1e-9
"""Largest difference of two equal values."""


def headline(cells: pd.DataFrame) -> str:
    """Return the statistic that ranks and pairs cells: AMS, or the pass rate where no cell has an AMS."""
    return "AMS" if cells["AMS"].notna().any() else "pass_rate"


def small_tiers(trials: pd.DataFrame, scoring: Scoring) -> dict[str, list[str]]:
    """Return the tiers of each dataset with too few tasks for a clear lead, each with their number.

    Only tiers with a weight count; where a dataset has none of these, all of its tiers do.
    """
    tasks = trials[["dataset", "task", "tier"]].drop_duplicates(["dataset", "task"])
    counted = {name for name, tier in scoring.tiers.items() if tier.weight}
    small = {}
    for dataset, tiers in tasks.groupby("dataset")["tier"]:
        counts = tiers.value_counts().sort_index()
        sizes = dict(zip(map(str, counts.index), counts.to_list(), strict=True))
        own = {tier: size for tier, size in sizes.items() if tier in counted} or sizes
        if few := [f"{tier} {size}" for tier, size in own.items() if size < FEWEST_TASKS]:
            small[str(dataset)] = few
    return small


def caveats(trials: pd.DataFrame, cells: pd.DataFrame, scoring: Scoring) -> Iterator[str]:
    """Yield a line for each reason why figures of these cells mean less than they seem to."""
    yield from _few_tasks(trials, scoring)
    yield from _missing_attempts_note(cells, scoring.attempts)
    yield from _unknown_costs_note(cells)


def _few_tasks(trials: pd.DataFrame, scoring: Scoring) -> Iterator[str]:
    """Yield a line if tiers that count have too few tasks for their intervals."""
    small = small_tiers(trials, scoring)
    if few := [f"{dataset} {tier}" for dataset, tiers in small.items() for tier in tiers]:
        yield (
            f"Tiers of fewer than {FEWEST_TASKS} tasks ({', '.join(few)}): intervals over tasks are too narrow, and no "
            "lead is clear."
        )


def what_counts(trials: pd.DataFrame, attempts: str) -> str:
    """Return which of several attempts at a task count, in words; empty if each task has one attempt."""
    most = int(trials.groupby(["cell", "task"]).size().max())
    if most < 2:  # noqa: PLR2004 - several
        return ""
    several = f"of up to {most} attempts at a task"
    if attempts == "mean":
        return f"{several}, the mean of the valid ones counts"
    if attempts != "latest_completed":
        return f"{several}, the best of any {tries(attempts)} counts, at the price of all {tries(attempts)}"
    counted = trials[valid(trials)]
    again = counted[counted.duplicated(["cell", "task"], keep=False)]
    timeless = int(again["finished_at"].isna().sum())
    by_number = (
        f" (by its number where times are missing, as they are of {timeless} trials)" if timeless else ""
    )
    return f"{several}, only the last valid one counts{by_number}"


def fewer_attempts(trials: pd.DataFrame, attempts: str) -> pd.Series[int]:
    """Return the number of tasks of each cell with fewer than k valid attempts for `pass@k`; 0 under another rule."""
    counts = valid(trials).groupby([trials["cell"], trials["task"]]).sum()
    k = tries(attempts) if attempts.startswith("pass@") else 0
    return (counts < k).astype(int).groupby("cell").sum()


def _missing_attempts_note(cells: pd.DataFrame, attempts: str) -> Iterator[str]:
    """Yield a line if some tasks have fewer than k valid attempts for pass@k."""
    if few := int(cells["fewer"].sum()):
        yield (
            f"{attempts}: {few} of {int(cells['planned'].sum())} tasks of cells have fewer valid attempts. There the "
            "pass rate is a lower bound, and AMS (~) is not a bound: missing attempts cost nothing."
        )


def _unknown_costs_note(cells: pd.DataFrame) -> Iterator[str]:
    """Yield a line if some figures are lower bounds because costs are unknown."""
    unknown = int((cells["usd_per_pass"].isna() & cells["usd_per_pass_least"].notna()).sum())
    if unknown:
        yield (
            f">=: in {unknown} of {len(cells)} cells the costs of some trials are unknown. AMS counts these trials as "
            "over every budget and threshold, and USD per pass counts the known costs only, so both are lower bounds."
        )


def ams_text(cell: Mapping[Any, Any]) -> str:
    """Return AMS, with `>=` where unknown costs make it a lower bound and `~` where attempts are missing."""
    mark = "~" if cell["fewer"] else ">=" if cell["AMS_most"] > cell["AMS"] + _EXACT else ""
    return f"{mark}{number(cell['AMS'], '.3f')}"


def bound_text(cell: Mapping[Any, Any], name: str, style: Any) -> str:
    """Return a price per pass, with `>=` where a part of it is unknown."""
    value, least = cell[name], cell[f"{name}_least"]
    return f">={number(least, style)}" if math.isnan(value) and math.isfinite(least) else number(value, style)


def lead_sentence(found: Sequence[Winner], names: Mapping[str, str], few: Sequence[str]) -> str:
    """Return a sentence on the lead of the best cell, by AMS or else by passes; empty without a rival."""
    by = {winner.criterion: winner for winner in found}
    winner = by.get("AMS") or by.get("passes")
    if winner is None or not winner.rivals:
        return ""
    best = [names[cell] for cell in winner.best]
    if len(best) > 1:
        return f"By {winner.criterion}, {listed(best)} are equally good."
    others = f"{winner.rivals} others" if winner.rivals > 1 else "the other"
    if few:
        return (
            f"By {winner.criterion}, {best[0]} is ahead, but these are too few tasks ({', '.join(few)}) to tell it "
            f"apart from {others}."
        )
    if not winner.alike:
        return f"By {winner.criterion}, {best[0]} is told apart from {'all ' if winner.rivals > 1 else ''}{others}."
    alike = listed(names[cell] for cell in winner.alike)
    return (
        f"By {winner.criterion}, {best[0]} is ahead, and these tasks do not tell it apart from {len(winner.alike)} of "
        f"{others}: {alike}."
    )
