"""AgentMeter Score (AMS): success, its cost, and expensive failures, tier by tier (AgentMeter eqs. 3-8).

Every mean is over the **planned** tasks of a tier; a task without a valid trial contributes zero to each of them.
A cost of NaN is unknown. AMS treats an unknown cost as above every budget and every threshold, and is then a lower
bound. Columns that end in `_most` or `_least` treat it as 0, so `AMS_most` is the upper bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from metrics.table import contribution, per_task, select

PARTS = ("reward", "passed", "budgeted", "expensive")
"""Contributions of a task to its tier: R; y; `contribution` times the share of budgets that C fits; and [y = 0 and C >
tau]."""
BOUNDS = ("budgeted_most", "expensive_least", "unpriced")
"""Further contributions of a task: the last two of `PARTS` with an unknown cost taken as 0, and [C is unknown]."""
_ROUNDING = 1e-9
"""Tolerance for sums of weights that are 1 in theory."""


class Tier(Protocol):
    """Settings of one tier that AMS reads (AgentMeter Table 1)."""

    @property
    def budgets(self) -> tuple[float, ...]:
        """Budgets B_g, in USD per trial."""

    @property
    def tau(self) -> float:
        """USD per trial above which a failure is expensive."""

    @property
    def weight(self) -> float:
        """Weight in AMS, relative to that of the other tiers; 0 leaves the tier out."""


class Scoring(Protocol):
    """Settings that turn trials into AMS; `runner.records.Scoring` implements them."""

    @property
    def alpha(self) -> float:
        """Share of plain success, in [0, 1]; the rest is success within budgets."""

    @property
    def tiers(self) -> Mapping[str, Tier]:
        """Tiers by name; tasks of any other tier are not scored."""

    @property
    def attempts(self) -> str:
        """Rule for the attempts of one (cell, task) that count: latest_completed, mean or pass@k."""

    @property
    def cbq(self) -> str:
        """Contribution of a trial to CBQ. `quality`: its reward; `passes`: its reward if it passed, else 0."""


def task_parts(trials: pd.DataFrame, scoring: Scoring) -> pd.DataFrame:
    """Return `PARTS` and `BOUNDS` of each planned (cell, task), its attempts combined by `scoring.attempts`.

    The columns are those of `metrics.table.per_task`. In tiers that `scoring` does not have, the values that depend
    on budgets or tau are NaN.
    """
    rows = select(trials, scoring.attempts)
    known = rows["cost_usd"].notna()
    rows = rows.assign(unpriced=(~known).astype(float))
    quality = contribution(rows, scoring.cbq)
    ends = {"": rows["cost_usd"].fillna(np.inf), "bound": rows["cost_usd"].fillna(0.0)}
    for end, (budgeted, expensive) in zip(ends, (PARTS[2:], BOUNDS[:2]), strict=True):
        rows[[budgeted, expensive]] = np.nan
        for name, tier in scoring.tiers.items():
            of = rows["tier"] == name
            cost = ends[end][of].to_numpy(float)
            within = cost[:, None] <= np.asarray(tier.budgets)
            rows.loc[of, budgeted] = quality[of] * within.mean(axis=1)
            rows.loc[of, expensive] = (~rows.loc[of, "passed"] & (cost > tier.tau)).astype(float)
    return per_task(trials, rows, (*PARTS, *BOUNDS))


def tier_score(
    success_rate: np.ndarray, cost_aubqc: np.ndarray, expensive_failures: np.ndarray, alpha: float
) -> np.ndarray:
    """Return TierScore (eq. 7), `(α·SR + (1 - α)·CostAUBQC)·(1 - EFR)`, element by element."""
    return np.asarray((alpha * success_rate + (1 - alpha) * cost_aubqc) * (1 - expensive_failures))


def mean_over_tiers(scores: Mapping[str, np.ndarray], tiers: Mapping[str, Tier]) -> np.ndarray:
    """Return the weighted mean of the tiers' scores (eq. 8), element by element, rounded to 12 decimals.

    It is NaN where a tier with weight has no score. Raises `ValueError` if every tier has weight 0.
    """
    counted = {name: tier.weight for name, tier in tiers.items() if tier.weight}
    if not counted:
        raise ValueError("Every tier has weight 0, so there is no AgentMeter Score; give one a weight.")
    total = sum(weight * scores[name] for name, weight in counted.items())
    mean = total / sum(counted.values())
    return np.asarray(mean).round(12)  # the same terms summed in another order must tie


def tier_scores(trials: pd.DataFrame, scoring: Scoring, parts: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return SR (eq. 6), CostAUBQC (eqs. 3, 4), EFR (eq. 5) and TierScore (eq. 7) of each cell and tier.

    The index is (cell, tier), for all tiers of `scoring`. The scores are shares of the planned `tasks`; without any
    they are NaN. `valid` counts the tasks with a valid trial, `unpriced` those among them whose cost is unknown, and
    `passes` those that passed. CostAUBQC_most, EFR_least and TierScore_most are the values with unknown costs as 0.
    `parts` are the `task_parts` of the same trials; without them, they are computed here.
    """
    tasks_of = task_parts(trials, scoring) if parts is None else parts
    grouped = tasks_of.groupby(["cell", "tier"])
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
    for name, of in ends.items():
        budgeted, expensive = (scores[part].to_numpy() for part in of)
        scores[name] = tier_score(scores["SR"].to_numpy(), budgeted, expensive, scoring.alpha)
    return scores


def unscored(valid: ArrayLike, unpriced: ArrayLike) -> np.ndarray:
    """Return whether AMS is undefined: there is no `valid` task, or the cost of each of them is unknown.

    `valid` and `unpriced` are numbers of tasks in tiers with weight, as in `tier_scores`; element by element.
    """
    return np.asarray(unpriced, float) >= np.asarray(valid, float) - _ROUNDING


def ams(scores: pd.DataFrame, scoring: Scoring) -> pd.DataFrame:
    """Return the AMS of each cell from its `tier_scores`; index cell, columns `AMS`, `AMS_most` and `why`.

    If some costs are unknown, `AMS` is the lower bound and `AMS_most` the upper one; otherwise the two are equal. Both
    are NaN if a tier with weight has no task, or if the cell has no valid trial or no known cost; `why` then gives the
    reason. Raises `ValueError` if every tier has weight 0.
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
    planned = scores["tasks"].to_dict()
    empty = [[name for name in counted if not planned[cell, name]] for cell in cells]
    none = np.where(sums["valid"] > 0, "no trial has a known cost", "no valid trial")
    silent = unscored(sums["valid"], sums["unpriced"])
    why = [
        f"no task of tier {', '.join(names)}" if names else str(reason) if nothing else ""
        for names, reason, nothing in zip(empty, none, silent, strict=True)
    ]
    return pd.DataFrame(
        {**{name: np.where(silent, np.nan, end) for name, end in ends.items()}, "why": why}, cells
    )
