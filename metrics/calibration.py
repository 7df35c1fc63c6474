"""How much effort a task takes, its tier, and the tier's budgets (AgentMeter eq. 1, section 4.2).

Cost, AMS and the model's identity take no part in the labels; the budgets are quantiles of cost.
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
"""By rising effort."""
WEIGHTS = {"tokens": 25.0, "turns": 10.0, "interactions": 10.0}
"""Points of eq. 1 for the percentile rank of each median."""


@dataclass(frozen=True)
class Calibration:
    """Tiers, as scoring takes them for fixed."""

    labels: Mapping[str, str]
    """Task -> tier."""
    budgets: Mapping[str, tuple[float, ...]]
    """Tier -> B_g, USD per trial, ascending."""
    tau: Mapping[str, float]
    """Tier -> USD above which a failure is an expensive one."""
    quantiles: tuple[float, ...]
    """Of cost over a tier's valid trials: what the budgets are."""
    tau_quantile: float
    """Of cost over a tier's failed trials: what tau is."""
    measures: tuple[str, ...]
    """Of `WEIGHTS`: what effort rests on beside success."""
    unpriced: int
    """Valid trials whose cost is unknown; they take part in the labels and not in budgets or tau."""


def effort(trials: pd.DataFrame, measures: Sequence[str] = tuple(WEIGHTS)) -> pd.DataFrame:
    """Eq. 1 for each task over all **valid** trials of all cells in `trials`; index `task`, sorted by name.

    Columns: `trials` (valid ones: the denominator), p (pass rate), r (mean reward), s = 0.7p + 0.3r; medians
    `tokens`, `turns`, `interactions`; their percentile ranks over the tasks `q_tokens`, `q_turns`,
    `q_interactions` in [0, 1]; and `E = 55(1 - s) + 25 q_tokens + 10 q_turns + 10 q_interactions` in [0, 100].
    `measures` are those of the three that it rests on; the points of the others go to them in proportion, or to 1 - s.

    Raises `TableError` for trials of several datasets, for a measure that no trial has, and for a task without a valid
    trial or without any known value of a measure.
    """
    if nowhere := [name for name in measures if name not in trials or trials[name].isna().all()]:
        rest = ",".join(name for name in measures if name not in nowhere)
        raise TableError({f"No trial says {' or '.join(nowhere)}; measures=[{rest}] leaves that out": ()})
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
    points = points.round(12)  # sums of the same in another order are a tie
    return tasks.join(medians).join(ranks.add_prefix("q_")).assign(E=points)


def percentile_rank(values: pd.Series[float]) -> pd.Series[float]:
    """`(rank - 1)/(n - 1)` in [0, 1], equal values sharing the mean of their ranks; one value alone has 0."""
    return (values.rank(method="average") - 1) / max(len(values) - 1, 1)


def thirds(tasks: pd.DataFrame) -> pd.Series[str]:
    """Task -> tier: tasks by rising `E` (ties by name) in equal thirds, the remainder in the middle.

    `tasks` is what `effort` returns. Raises `TableError` for fewer than three tasks: a tier would be empty.
    """
    if len(tasks) < len(TIERS):
        raise TableError({f"{len(tasks)} tasks cannot fill three tiers": tasks.index})
    order = tasks["E"].sort_index().sort_values(kind="stable").index
    third = len(tasks) // 3
    sizes = (third, len(tasks) - 2 * third, third)
    return pd.Series(np.repeat(TIERS, sizes), index=order, name="tier").sort_index()


def budget_grid(costs: pd.Series[float], quantiles: Sequence[float]) -> tuple[float, ...]:
    """Quantiles of the known costs, USD, rounded to cents; ascending if `quantiles` are.

    An amount that cents would round to nothing keeps two significant digits. Needs one known cost.
    """
    amounts = np.quantile(costs.dropna().to_numpy(float), quantiles)
    return tuple(float(round(amount, 2)) or float(f"{amount:.1e}") for amount in amounts)


def calibrate(
    trials: pd.DataFrame,
    quantiles: Sequence[float] = (0.1, 0.3, 0.5, 0.7, 0.9),
    tau_quantile: float = 0.9,
    measures: Sequence[str] = tuple(WEIGHTS),
) -> Calibration:
    """Labels by `thirds` of `effort`, and per tier the budget grid over its valid trials and tau over its failed
    ones.

    tau is not rounded. The paper does not name its quantiles; these are configuration. Raises `TableError` as
    `effort` and `thirds` do, and for a tier in which no trial, or no failed trial, has a known cost.
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
