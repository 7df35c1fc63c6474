"""AgentMeter Score (AMS): success, what it cost, and expensive failure, tier by tier (AgentMeter eqs. 3-8).

Every mean is over the **planned** tasks of a tier. A task without a valid trial contributes zero to all of
them. A cost that is NaN may be any: AMS and its parts take it as over every budget and every threshold, which is the
least that they can be, and `_most` figures take it as 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from metrics.table import per_task, select

PARTS = ("reward", "passed", "budgeted", "expensive")
"""What a task contributes to its tier: R, y, R averaged over the budgets that its cost fits, [y = 0 and C >
tau]."""
BOUNDS = ("budgeted_most", "expensive_least", "unpriced")
"""Of a task too: the same two where an unknown cost was 0, and whether its cost is unknown."""


_ROUNDING = 1e-9
"""Of sums of weights that are one in theory."""


class Tier(Protocol):
    """What AMS needs of a tier (AgentMeter Table 1)."""

    @property
    def budgets(self) -> tuple[float, ...]:
        """B_g: USD per trial."""

    @property
    def tau(self) -> float:
        """USD above which a failure is an expensive one."""

    @property
    def weight(self) -> float:
        """In AMS, relative to the other tiers'; 0 leaves the tier out."""


class Scoring(Protocol):
    """How trials become AMS; `runner.records.Scoring` is one."""

    @property
    def alpha(self) -> float:
        """Share of plain success, in [0, 1]; the rest is success within budgets."""

    @property
    def tiers(self) -> Mapping[str, Tier]:
        """By name; tasks of other tiers take no part."""

    @property
    def attempts(self) -> str:
        """Which attempts of one (cell, task) count: latest_completed, mean, pass@k."""


def task_parts(trials: pd.DataFrame, scoring: Scoring) -> pd.DataFrame:
    """`PARTS` and `BOUNDS` of each planned (cell, task), attempts already folded; NaN where scoring knows no such
    tier.
    """
    rows = select(trials, scoring.attempts)
    known = rows["cost_usd"].notna()
    rows = rows.assign(unpriced=(~known).astype(float))
    ends = {"": rows["cost_usd"].fillna(np.inf), "bound": rows["cost_usd"].fillna(0.0)}
    for end, (budgeted, expensive) in zip(ends, (PARTS[2:], BOUNDS[:2]), strict=True):
        rows[[budgeted, expensive]] = np.nan
        for name, tier in scoring.tiers.items():
            of = rows["tier"] == name
            cost = ends[end][of].to_numpy(float)
            within = cost[:, None] <= np.asarray(tier.budgets)
            rows.loc[of, budgeted] = rows.loc[of, "reward"] * within.mean(axis=1)
            rows.loc[of, expensive] = (~rows.loc[of, "passed"] & (cost > tier.tau)).astype(float)
    return per_task(trials, rows, (*PARTS, *BOUNDS))


def tier_score(
    success_rate: np.ndarray, cost_aubqc: np.ndarray, expensive_failures: np.ndarray, alpha: float
) -> np.ndarray:
    """Eq. 7: `(α·SR + (1 - α)·CostAUBQC)·(1 - EFR)`, element by element."""
    return np.asarray((alpha * success_rate + (1 - alpha) * cost_aubqc) * (1 - expensive_failures))


def mean_over_tiers(scores: Mapping[str, np.ndarray], tiers: Mapping[str, Tier]) -> np.ndarray:
    """Eq. 8 with weights, element by element, to 12 decimals; NaN where a tier that has weight has no score."""
    counted = {name: tier.weight for name, tier in tiers.items() if tier.weight}
    if not counted:
        raise ValueError("Every tier has weight 0, so there is no AgentMeter Score; give one a weight.")
    total = sum(weight * scores[name] for name, weight in counted.items())
    mean = total / sum(counted.values())
    return np.asarray(mean).round(12)  # sums of the same in another order are a tie, and not another score


def tier_scores(trials: pd.DataFrame, scoring: Scoring) -> pd.DataFrame:
    """SR (eq. 6), CostAUBQC (eqs. 3, 4), EFR (eq. 5) and TierScore (eq. 7); index (cell, tier) of scoring's
    tiers.

    `tasks` is the number planned, `valid` those with a valid trial, `unpriced` those of them of unknown cost, `passes`
    those passed. CostAUBQC_most, EFR_least and TierScore_most are what they would be if each unknown cost were 0.
    Without tasks: NaN.
    """
    grouped = task_parts(trials, scoring).groupby(["cell", "tier"])
    index = pd.MultiIndex.from_product(
        [sorted(trials["cell"].unique()), scoring.tiers], names=["cell", "tier"]
    )
    sums = grouped[["valid", *PARTS, *BOUNDS]].sum(skipna=False).reindex(index)
    tasks = grouped.size().reindex(index)
    scores = pd.DataFrame(
        {
            "tasks": tasks.fillna(0).astype(int),
            "valid": sums["valid"].fillna(0).astype(int),
            "unpriced": sums["unpriced"].fillna(0.0),
            "passes": sums["passed"].fillna(0.0),
            "SR": sums["reward"] / tasks,
            "CostAUBQC": sums["budgeted"] / tasks,
            "EFR": sums["expensive"] / tasks,
            "CostAUBQC_most": sums["budgeted_most"] / tasks,
            "EFR_least": sums["expensive_least"] / tasks,
        }
    )
    ends = {"TierScore": ("CostAUBQC", "EFR"), "TierScore_most": ("CostAUBQC_most", "EFR_least")}
    for name, parts in ends.items():
        budgeted, expensive = (scores[part].to_numpy() for part in parts)
        scores[name] = tier_score(scores["SR"].to_numpy(), budgeted, expensive, scoring.alpha)
    return scores


def unscored(valid: ArrayLike, unpriced: ArrayLike) -> np.ndarray:
    """Whether so many tasks with a valid trial, in tiers that count, of which so many have no known cost, give no AMS:
    nothing is known of what any of them cost, or there are none.
    """
    return np.asarray(unpriced, float) >= np.asarray(valid, float) - _ROUNDING


def ams(scores: pd.DataFrame, scoring: Scoring) -> pd.DataFrame:
    """AMS of each cell from `tier_scores`; columns `AMS`, `AMS_most` and `why`, the reason where they are NaN.

    Where costs are unknown AMS is the least that it can be and `AMS_most` the most; else they are equal. A tier without
    tasks, no valid trial, or no known cost leaves no AMS. Raises `ValueError` when every tier has weight 0.
    """
    cells = scores.index.unique("cell")
    ends = {
        name: mean_over_tiers(
            {tier: scores[score].xs(tier, level="tier").to_numpy() for tier in scoring.tiers}, scoring.tiers
        )
        for name, score in (("AMS", "TierScore"), ("AMS_most", "TierScore_most"))
    }
    counted = [name for name, tier in scoring.tiers.items() if tier.weight]
    of = scores.loc[scores.index.get_level_values("tier").isin(counted)].groupby("cell")
    sums = of[["valid", "unpriced"]].sum().reindex(cells)
    empty = [[name for name in counted if not scores.loc[(cell, name), "tasks"]] for cell in cells]
    none = np.where(sums["valid"] > 0, "no trial has a known cost", "no valid trial")
    silent = unscored(sums["valid"], sums["unpriced"])
    why = [
        f"no task of tier {', '.join(names)}" if names else str(reason) if nothing else ""
        for names, reason, nothing in zip(empty, none, silent, strict=True)
    ]
    return pd.DataFrame(
        {**{name: np.where(silent, np.nan, end) for name, end in ends.items()}, "why": why}, cells
    )
