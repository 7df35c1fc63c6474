"""The trials table: which of its rows count, how much, and what is said of a cell without any tier.

One row per *planned* trial, run or not, so that every denominator is the plan's. Columns read here: `cell`,
`dataset`, `tier`, `task`, `attempt`, `status`, `finished_at`, `reward` (in [0, 1]), `passed`, `tokens`,
`cost_usd` (USD), `turns`. Missing is NaN (or NA), never 0. A CSV made elsewhere does as well as the runner's
own table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd

from metrics.attempts import best_of, tries

FINISHED = ("completed", "agent_error", "timeout", "budget_exceeded")
"""Statuses that are the cell's own doing; `infra_invalid` and `cancelled` say nothing about it."""

SELECTED = (
    *("cell", "dataset", "tier", "task", "attempt", "finished_at"),
    *("reward", "passed", "tokens", "cost_usd", "turns"),
)
"""Columns that scores are made of."""


def valid(trials: pd.DataFrame) -> pd.Series[bool]:
    """Whether each trial counts: it ended by the cell's own doing and was judged (AgentMeter section 3.5)."""
    return trials["status"].isin(FINISHED) & trials["reward"].notna() & trials["passed"].notna()


def select(trials: pd.DataFrame, attempts: str) -> pd.DataFrame:
    """The valid trials that count: `SELECTED` and a column `weight` that sums to 1 over each (cell, task) that has any.

    latest_completed: only the one with the greatest `finished_at`, ties by attempt number (AgentMeter section
    3.5). mean: all of them, equally. pass@k: see `best_of`. `passed` comes back as bool,
    `cost_usd` to 12 decimals.
    """
    rows = trials.loc[valid(trials), list(SELECTED)]
    if attempts == "latest_completed":
        rows = rows.iloc[_latest(rows)].assign(weight=1.0)
    elif attempts == "mean":
        rows = rows.assign(weight=1 / rows.groupby(["cell", "task"])["task"].transform("size").astype(float))
    else:
        rows = best_of(rows, tries(attempts))
    return rows.assign(
        passed=rows["passed"].astype(bool),
        reward=rows["reward"].astype(float),
        cost_usd=rows["cost_usd"].astype(float).round(12),  # 0.1 + 0.2 fits a budget of 0.3
    )


def _latest(rows: pd.DataFrame) -> np.ndarray:
    """Position of the latest row of each (cell, task); no time at all is before any."""
    groups = rows.groupby(["cell", "task"], sort=False).ngroup().to_numpy()
    times = moments(rows["finished_at"]).to_numpy("datetime64[us]").astype("int64")
    order = np.lexsort((rows["attempt"].to_numpy(float), times))
    latest = np.zeros(groups.max(initial=-1) + 1, dtype=int)
    latest[groups[order]] = order  # of several, numpy keeps the last
    return np.sort(latest)


def other_tasks(trials: pd.DataFrame) -> frozenset[str]:
    """Cells that planned other tasks than most cells of their dataset, so that they compare with none of them.

    Of several sets of tasks that equally many cells planned, the largest is most cells'. Needs `cell`, `dataset` and
    `task`.
    """
    odd: set[str] = set()
    for _, rows in trials.groupby("dataset"):
        planned = {str(cell): tuple(sorted(set(tasks))) for cell, tasks in rows.groupby("cell")["task"]}
        usual = max((count, len(tasks), tasks) for tasks, count in Counter(planned.values()).items())[2]
        odd.update(cell for cell, tasks in planned.items() if tasks != usual)
    return frozenset(odd)


def moments(values: pd.Series) -> pd.Series:
    """As UTC timestamps; text is read as ISO 8601, in one form or several, and what is not is NaT."""
    if values.dtype.kind == "M":
        return pd.to_datetime(values, utc=True)
    return pd.to_datetime(values.astype("str"), utc=True, format="ISO8601", errors="coerce")


def per_task(trials: pd.DataFrame, rows: pd.DataFrame, values: Sequence[str]) -> pd.DataFrame:
    """Sums of `values` × `weight` over `rows`, one line per planned (cell, task), 0 where `rows` has none.

    Columns: cell, dataset, tier, task, `valid` (whether `rows` has any) and `values`. One NaN makes its sum
    NaN.
    """
    weighted = rows[list(values)].astype(float).mul(rows["weight"], axis=0)
    sums = weighted.groupby([rows["cell"], rows["task"]]).sum(skipna=False).assign(valid=True)
    planned = trials[["cell", "dataset", "tier", "task"]].drop_duplicates(["cell", "task"])
    tasks = planned.merge(sums.reset_index(), on=["cell", "task"], how="left")
    tasks["valid"] = tasks["valid"].notna()
    tasks.loc[~tasks["valid"], list(values)] = 0.0
    return tasks.sort_values(["cell", "tier", "task"], ignore_index=True)


def per_pass(total: pd.Series[float], passes: pd.Series[float]) -> pd.Series[float]:
    """`total / passes`; no pass is infinitely dear, whatever was spent."""
    return (total / passes.replace(0, np.nan)).where(passes > 0, np.inf)


def summary(trials: pd.DataFrame, attempts: str) -> pd.DataFrame:
    """What is said of each cell beside AMS; index `cell`.

    * planned, valid: tasks, and those with a valid trial; coverage = valid / planned.
    * passes, pass_rate, mean_reward: over **planned** tasks, of the selected attempts; a task without a valid
      trial contributes zero. `passes` may be fractional when attempts are averaged.
    * tokens_per_pass, usd_per_pass: totals over all **valid trials** (every attempt, failures included:
      AgentMeter section 3.5) divided by the passes among those same trials, so that they do not depend on the
      selection. No pass is infinity; one unknown cost makes USD per pass NaN, and one unknown count tokens per pass; no
      valid trial makes both NaN.
    * tokens_per_pass_least, usd_per_pass_least: the same of what is known alone, which is the least that they can be;
      NaN where nothing is.
    * turns: mean over valid trials; NaN if there is none.
    """
    tasks = per_task(trials, select(trials, attempts), ["reward", "passed"]).groupby("cell")
    cells = pd.DataFrame({"planned": tasks.size(), "valid": tasks["valid"].sum()})
    cells["coverage"] = cells["valid"] / cells["planned"]
    sums = tasks[["passed", "reward"]].sum().round(12)  # in another order they are as much
    cells["passes"] = sums["passed"]
    cells["pass_rate"] = sums["passed"] / cells["planned"]
    cells["mean_reward"] = sums["reward"] / cells["planned"]

    rows = trials.loc[valid(trials), ["cell", "tokens", "cost_usd", "passed", "turns"]]
    ended = rows.set_index("cell").astype(float).groupby("cell")
    totals = ended.sum(skipna=False).round(12).reindex(cells.index)
    passes = totals["passed"].fillna(0.0)
    tried = cells["valid"] > 0
    cells["tokens_per_pass"] = per_pass(totals["tokens"], passes).where(tried)
    cells["usd_per_pass"] = per_pass(totals["cost_usd"], passes).where(tried)
    known = ended.sum(min_count=1).round(12).reindex(cells.index)
    for name, spent in (("tokens_per_pass_least", "tokens"), ("usd_per_pass_least", "cost_usd")):
        cells[name] = per_pass(known[spent], passes).where(tried & known[spent].notna())
    cells["turns"] = ended["turns"].mean()
    return cells
