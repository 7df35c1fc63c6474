"""AgentMeter Score (AMS): success, what it cost, and expensive failure, tier by tier (AgentMeter eqs. 3-8).

Every mean is over the **planned** tasks of a tier. A task without a valid trial contributes zero to all of
them. A cost that is NaN is over every budget and is no expensive failure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import pandas as pd

from metrics.table import per_task, select

PARTS = ("reward", "passed", "budgeted", "expensive")
"""What a task contributes to its tier: R, y, R averaged over the budgets that its cost fits, [y = 0 and C >
tau]."""


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
    """`PARTS` of each planned (cell, task), attempts already folded; NaN parts where scoring knows no such
    tier.
    """
    rows = select(trials, scoring.attempts).assign(budgeted=np.nan, expensive=np.nan)
    for name, tier in scoring.tiers.items():
        of = rows["tier"] == name
        cost = rows.loc[of, "cost_usd"].to_numpy(float)
        within = cost[:, None] <= np.asarray(tier.budgets)  # NaN fits no budget
        rows.loc[of, "budgeted"] = rows.loc[of, "reward"] * within.mean(axis=1)
        rows.loc[of, "expensive"] = (~rows.loc[of, "passed"] & (cost > tier.tau)).astype(float)
    return per_task(trials, rows, PARTS)


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

    `tasks` is the number planned, `valid` those with a valid trial, `passes` those passed. Without tasks:
    NaN.
    """
    grouped = task_parts(trials, scoring).groupby(["cell", "tier"])
    index = pd.MultiIndex.from_product(
        [sorted(trials["cell"].unique()), scoring.tiers], names=["cell", "tier"]
    )
    sums = grouped[["valid", *PARTS]].sum(skipna=False).reindex(index)
    tasks = grouped.size().reindex(index)
    scores = pd.DataFrame(
        {
            "tasks": tasks.fillna(0).astype(int),
            "valid": sums["valid"].fillna(0).astype(int),
            "passes": sums["passed"].fillna(0.0),
            "SR": sums["reward"] / tasks,
            "CostAUBQC": sums["budgeted"] / tasks,
            "EFR": sums["expensive"] / tasks,
        }
    )
    scores["TierScore"] = tier_score(
        scores["SR"].to_numpy(), scores["CostAUBQC"].to_numpy(), scores["EFR"].to_numpy(), scoring.alpha
    )
    return scores


def ams(scores: pd.DataFrame, scoring: Scoring) -> pd.DataFrame:
    """AMS of each cell from `tier_scores`; columns `AMS` and `why`, the reason where AMS is NaN.

    Raises `ValueError` when every tier has weight 0.
    """
    cells = scores.index.unique("cell")
    by_tier = {name: scores["TierScore"].xs(name, level="tier").to_numpy() for name in scoring.tiers}
    counted = [name for name, tier in scoring.tiers.items() if tier.weight]
    empty = [[name for name in counted if not scores.loc[(cell, name), "tasks"]] for cell in cells]
    why = [f"no task of tier {', '.join(names)}" if names else "" for names in empty]
    return pd.DataFrame({"AMS": mean_over_tiers(by_tier, scoring.tiers), "why": why}, index=cells)
