"""The trials table: which rows count, with what weight, and the figures of a cell that need no tiers.

The table has one row per *planned* trial, run or not, so that every denominator is the plan's. Columns read here:
`cell`, `dataset`, `tier`, `task`, `attempt`, `status`, `finished_at`, `reward` (in [0, 1]), `passed`, `tokens`,
`cost_usd` (USD), `turns`. A missing value is NaN (or NA), never 0. The table may come from the runner or from any CSV.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd

from metrics.attempts import best_of, tries

FINISHED = ("completed", "agent_error", "timeout", "budget_exceeded")
"""Statuses that the cell itself is responsible for; `infra_invalid` and `cancelled` do not count for or against it."""

SELECTED = (
    *("cell", "dataset", "tier", "task", "attempt", "finished_at"),
    *("reward", "passed", "tokens", "cost_usd", "turns"),
)
"""Columns that scores are computed from."""

GROUPED = ("cell", "task", "dataset", "tier")
"""Names by which trials are grouped again and again."""

CBQ = ("quality", "passes")
"""Readings of AgentMeter section 4.2: partial quality of a failed trial counts within its budget, or contributes 0."""


def valid(trials: pd.DataFrame) -> pd.Series[bool]:
    """Return whether each trial is valid: its status is in `FINISHED` and it was judged (AgentMeter section 3.5)."""
    return trials["status"].isin(FINISHED) & trials["reward"].notna() & trials["passed"].notna()


def select(trials: pd.DataFrame, attempts: str) -> pd.DataFrame:
    """Return the valid trials that count, with the columns `SELECTED` and `weight`.

    The weights of each (cell, task) sum to 1. `attempts` is latest_completed: the trial with the latest `finished_at`,
    ties going to the greater attempt number (AgentMeter section 3.5); mean: all valid trials, equally; or pass@k: see
    `best_of`. `passed` is returned as bool, `cost_usd` rounded to 12 decimals. Raises `ValueError` for any other rule.
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


def contribution(rows: pd.DataFrame, cbq: str) -> pd.Series[float]:
    """Return what each of the rows of `select` contributes to CBQ within its budget (AgentMeter eq. 3).

    quality: R, passed or not. passes: R if it passed, else 0. Raises `ValueError` for any other reading.
    """
    if cbq not in CBQ:
        raise ValueError(f"cbq must be {' or '.join(CBQ)}, not {cbq}.")
    return rows["reward"] if cbq == "quality" else rows["reward"].where(rows["passed"], 0.0)


def _latest(rows: pd.DataFrame) -> np.ndarray:
    """Return the position of the latest row of each (cell, task), ascending; a missing time is the earliest."""
    groups = rows.groupby(["cell", "task"], sort=False).ngroup().to_numpy()
    times = moments(rows["finished_at"]).to_numpy("datetime64[us]").astype("int64")
    order = np.lexsort((rows["attempt"].to_numpy(float), times))
    latest = np.zeros(groups.max(initial=-1) + 1, dtype=int)
    latest[groups[order]] = order  # of several, numpy keeps the last
    return np.sort(latest)


def other_tasks(trials: pd.DataFrame) -> frozenset[str]:
    """Return the cells that planned other tasks than most cells of their dataset, and so do not compare with them.

    If several sets of tasks were planned by equally many cells, the largest set is the usual one. Columns read: `cell`,
    `dataset`, `task`.
    """
    odd: set[str] = set()
    once = categorized(trials[["dataset", "cell", "task"]], GROUPED).drop_duplicates()
    for _, rows in once.groupby("dataset"):
        names = rows["task"].to_numpy(object)
        planned = {str(cell): tuple(sorted(names[at])) for cell, at in rows.groupby("cell").indices.items()}
        usual = max((count, len(tasks), tasks) for tasks, count in Counter(planned.values()).items())[2]
        odd.update(cell for cell, tasks in planned.items() if tasks != usual)
    return frozenset(odd)


def moments(values: pd.Series) -> pd.Series:
    """Return the values as UTC timestamps; text is read as ISO 8601, in any mix of its forms, other text as NaT."""
    if values.dtype.kind == "M":
        return pd.to_datetime(values, utc=True)
    codes, words = pd.factorize(values.astype("str"))  # times are often shared by many trials
    read = pd.to_datetime(pd.Series(words, dtype="str"), utc=True, format="ISO8601", errors="coerce")
    return read.reindex(codes).set_axis(
        values.index
    )  # the code of a missing value is -1, which is not in the index


def categorized(trials: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return the table with these columns as categories, as far as they exist. Grouping by them takes half the time."""
    return trials.assign(**{name: trials[name].astype("category") for name in names if name in trials})


def per_task(trials: pd.DataFrame, rows: pd.DataFrame, values: Sequence[str]) -> pd.DataFrame:
    """Return the sums of `values` × `weight` over `rows`, one row per planned (cell, task) of `trials`.

    Columns: cell, dataset, tier, task, `valid` (whether `rows` has any of this task) and `values`, which are 0 if
    `valid` is False. One NaN makes its sum NaN.
    """
    weighted = rows[list(values)].astype(float).mul(rows["weight"], axis=0)
    sums = weighted.groupby([rows["cell"], rows["task"]]).sum(skipna=False).assign(valid=True)
    planned = trials[["cell", "dataset", "tier", "task"]].drop_duplicates(["cell", "task"])
    tasks = planned.merge(sums.reset_index(), on=["cell", "task"], how="left")
    tasks["valid"] = tasks["valid"].notna()
    tasks.loc[~tasks["valid"], list(values)] = 0.0
    return tasks.sort_values(["cell", "tier", "task"], ignore_index=True)


def per_pass(total: pd.Series[float], passes: pd.Series[float]) -> pd.Series[float]:
    """Return `total / passes`, which is infinite without a pass, whatever was spent."""
    return (total / passes.replace(0, np.nan)).where(passes > 0, np.inf)


def summary(trials: pd.DataFrame, attempts: str, parts: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return the figures of each cell beside AMS; index `cell`.

    * planned, valid: number of tasks, and of those with a valid trial; coverage = valid / planned.
    * passes, pass_rate, mean_reward: over **planned** tasks, from the selected attempts; a task without a valid
      trial contributes zero. `passes` may be fractional if attempts are averaged.
    * tokens_per_pass, usd_per_pass: totals over all **valid trials** (every attempt, failures included:
      AgentMeter section 3.5) divided by the passes among those same trials, so they do not depend on the
      selection. They are infinite without a pass and NaN without a valid trial. One unknown cost makes USD per pass
      NaN, and one unknown count makes tokens per pass NaN.
    * tokens_per_pass_least, usd_per_pass_least: the same from the known values alone, which is a lower bound; NaN if
      none is known.
    * turns: mean over valid trials; NaN if there is none.

    `parts` has `reward` and `passed` of the same trials by `per_task`; without it, they are computed here.
    """
    if parts is None:
        parts = per_task(trials, select(trials, attempts), ["reward", "passed"])
    tasks = parts.groupby("cell")
    cells = pd.DataFrame({"planned": tasks.size(), "valid": tasks["valid"].sum()})
    cells["coverage"] = cells["valid"] / cells["planned"]
    sums = tasks[["passed", "reward"]].sum().round(12)  # the same terms summed in another order must tie
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
