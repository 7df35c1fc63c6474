"""Calibration: the effort of a task, its tier, and the budgets of each tier (AgentMeter eq. 1, section 4.2).

Labels do not depend on cost, AMS or the identity of the model; budgets are quantiles of cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from metrics.checks import check
from metrics.errors import TableError, listed
from metrics.table import valid

TIERS = ("easy", "medium", "hard")
"""Names of the tiers, by rising effort."""
WEIGHTS = {"tokens": 25.0, "turns": 10.0, "interactions": 10.0}
"""Points of eq. 1 for the percentile rank of each median."""


@dataclass(frozen=True)
class Calibration:
    """Tiers of tasks with their budgets and tau, which scoring then takes as fixed."""

    labels: Mapping[str, str]
    """Task -> tier."""
    budgets: Mapping[str, tuple[float, ...]]
    """Tier -> B_g, USD per trial, ascending."""
    tau: Mapping[str, float]
    """Tier -> USD per trial above which a failure is expensive."""
    quantiles: tuple[float, ...]
    """Quantiles of cost, over a tier's valid trials, that are its budgets."""
    tau_quantile: float
    """Quantile of cost, over a tier's failed valid trials, that is its tau."""
    measures: tuple[str, ...]
    """Measures of `WEIGHTS` that effort rests on, beside success."""
    unpriced: int
    """Number of valid trials whose cost is unknown; they count for labels, but not for budgets or tau."""


def effort(trials: pd.DataFrame, measures: Sequence[str] = tuple(WEIGHTS)) -> pd.DataFrame:
    """Return the effort of each task (eq. 1), over the **valid** trials of all cells; index `task`, sorted by name.

    Columns: `trials` (valid ones: the denominator), p (pass rate), r (mean reward), s = 0.7p + 0.3r; medians
    `tokens`, `turns`, `interactions`; their percentile ranks over the tasks `q_tokens`, `q_turns`,
    `q_interactions` in [0, 1]; and `E = 55(1 - s) + 25 q_tokens + 10 q_turns + 10 q_interactions` in [0, 100].
    `measures` are those of the three that E rests on; the points of the others are shared among them in proportion,
    or go to 1 - s if `measures` is empty.

    Raises `TableError` if the table cannot be scored (`check`) or has several datasets, if no trial has one of the
    measures, and if a task has no valid trial or no known value of a measure.
    """
    if nowhere := [name for name in measures if name not in trials or trials[name].isna().all()]:
        rest = ",".join(name for name in measures if name not in nowhere)
        raise TableError({f"No trial has {' or '.join(nowhere)}; measures=[{rest}] leaves that out": ()})
    trials = check(trials, one_dataset=True, columns=measures)
    rows = trials[valid(trials)]
    names = pd.Index(sorted(trials["task"].unique()), name="task")
    by_task = rows[["passed", "reward", *measures]].astype(float).groupby(rows["task"])
    medians = by_task[list(measures)].median().reindex(names)
    unknown = list(names[medians.isna().any(axis=1) | ~names.isin(rows["task"])])
    if unknown:
        at_fault = trials.index[trials["task"].isin(unknown)]
        having = f" with {listed(measures)}" if measures else ""
        raise TableError({f"No valid trial{having} of task {listed(unknown)}": at_fault})
    tasks = by_task[["passed", "reward"]].mean().set_axis(["p", "r"], axis=1)
    tasks.insert(0, "trials", by_task.size())
    tasks["s"] = 0.7 * tasks["p"] + 0.3 * tasks["r"]
    ranks = medians.transform(np.log1p).transform(percentile_rank)
    share = sum(WEIGHTS.values()) / max(sum(WEIGHTS[name] for name in measures), 1.0)
    of_success = 100.0 - (sum(WEIGHTS.values()) if measures else 0.0)
    points = of_success * (1 - tasks["s"]) + sum(share * WEIGHTS[name] * ranks[name] for name in measures)
    points = points.round(12)  # the same terms summed in another order must tie
    return tasks.join(medians).join(ranks.add_prefix("q_")).assign(E=points)


def percentile_rank(values: pd.Series[float]) -> pd.Series[float]:
    """Return `(rank - 1)/(n - 1)`, in [0, 1]; equal values share their mean rank, and a single value has 0."""
    return (values.rank(method="average") - 1) / max(len(values) - 1, 1)


def thirds(tasks: pd.DataFrame) -> pd.Series[str]:
    """Return the tier of each task: equal thirds of the tasks by rising `E`, the remainder in the middle third.

    `tasks` is the result of `effort`; ties are broken by name. Raises `TableError` for fewer than three tasks.
    """
    if len(tasks) < len(TIERS):
        raise TableError({f"{len(tasks)} tasks cannot fill three tiers": tasks.index})
    order = tasks["E"].sort_index().sort_values(kind="stable").index
    third = len(tasks) // 3
    sizes = (third, len(tasks) - 2 * third, third)
    return pd.Series(np.repeat(TIERS, sizes), index=order, name="tier").sort_index()


def budget_grid(costs: pd.Series[float], quantiles: Sequence[float]) -> tuple[float, ...]:
    """Return the quantiles of the known costs, in USD, rounded to cents; ascending if `quantiles` are.

    An amount that would round to 0 keeps two significant digits instead. At least one cost must be known.
    """
    amounts = np.quantile(costs.dropna().to_numpy(float), quantiles)
    return tuple(float(round(amount, 2)) or float(f"{amount:.1e}") for amount in amounts)


def calibrate(
    trials: pd.DataFrame,
    quantiles: Sequence[float] = (0.1, 0.3, 0.5, 0.7, 0.9),
    tau_quantile: float = 0.9,
    measures: Sequence[str] = tuple(WEIGHTS),
) -> Calibration:
    """Return labels by `thirds` of `effort`, and each tier's budgets (`budget_grid`) and tau.

    Budgets are over the tier's valid trials; tau is over its failed valid trials and is not rounded. The paper does
    not name its quantiles, so they are configured. Raises `TableError` as `effort` and `thirds` do, and for a tier
    without a failed trial of known cost.
    """
    labels = thirds(effort(trials, measures))
    trials = check(trials)
    rows = trials[valid(trials)]
    cost, tier = rows["cost_usd"], rows["task"].map(labels)
    failed = ~rows["passed"].astype(bool)
    budgets, tau = {}, {}
    for name in TIERS:
        of = tier == name
        if not (of & failed & cost.notna()).any():
            raise TableError(
                {f"Tier {name} has no failed trial with a known cost, so no tau": rows.index[of]}
            )
        budgets[name] = budget_grid(cost[of], quantiles)
        tau[name] = float(cost[of & failed].quantile(tau_quantile))
    unpriced = int(cost.isna().sum())
    return Calibration(dict(labels), budgets, tau, tuple(quantiles), tau_quantile, tuple(measures), unpriced)
