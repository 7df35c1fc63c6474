"""Several attempts at one task: pass@k, and what the best of k is worth at the price of k."""

from __future__ import annotations

import re
from itertools import combinations
from math import comb

import numpy as np
import pandas as pd

from metrics.errors import TableError

SUMMED = ("cost_usd", "tokens", "turns")
"""What several attempts made for one answer spend together."""
MOST_CHOICES = 5000
"""Of k attempts among n that `best_of` goes through per task; C(15, 6) is 5005."""


def tries(attempts: str) -> int:
    """The k of `pass@k`. Raises `ValueError` for any other rule."""
    if found := re.fullmatch(r"pass@([1-9]\d*)", attempts):
        return int(found[1])
    raise ValueError(
        f"{attempts!r} is no rule for attempts; there are latest_completed, mean and pass@1, pass@2, ..."
    )


def refusal(attempts: str, planned: int) -> str:
    """Why `pass@k` cannot be asked of so many attempts at each task, for people; empty where it can.

    With fewer than k all that pass@k says is a lower bound, and nobody plans that.
    """
    k = tries(attempts)
    if k > planned:
        return f"{attempts} needs attempts={k} or more, and {planned} are planned"
    if comb(planned, k) > MOST_CHOICES:
        return f"{attempts} of {planned} attempts has more than {MOST_CHOICES} choices a task"
    return ""


def best_of(rows: pd.DataFrame, k: int) -> pd.DataFrame:
    """Every choice of k among the valid attempts of one (cell, task) as one row, all equally weighted.

    A row is k attempts made for one answer: `passed` if any passed, the greatest `reward`, the sum of `cost_usd`,
    `tokens` and `turns`. So `passed` × weight sums to the unbiased estimator of pass@k, 1 − C(n − c, k)/C(n, k) for c
    passes in n attempts, and pass@1 is `mean`. With fewer than k valid attempts those that there are count together:
    the missing ones contribute nothing, and the figure is a lower bound. Raises `TableError` beyond `MOST_CHOICES`.
    """
    rows = rows.sort_values(["cell", "task", "attempt"])
    sizes = rows.groupby(["cell", "task"])["task"].transform("size").to_numpy(int)
    parts = [_choices(rows[sizes == size], size, min(k, size)) for size in np.unique(sizes).tolist()]
    return pd.concat(parts) if parts else rows.assign(weight=1.0)


def _choices(rows: pd.DataFrame, size: int, k: int) -> pd.DataFrame:
    """`best_of` for tasks that have exactly `size` valid attempts each, k of them or more, in the rows' order."""
    if comb(size, k) > MOST_CHOICES:
        raise TableError(
            {f"pass@{k} of {size} attempts has more than {MOST_CHOICES} choices a task": rows.index}
        )
    chosen = np.array(list(combinations(range(size), k)))
    drawn = {
        name: rows[name].to_numpy(float).reshape(-1, size)[:, chosen].reshape(-1, k)
        for name in ("passed", "reward", *SUMMED)
    }
    return rows.iloc[np.repeat(np.arange(0, len(rows), size), len(chosen))].assign(
        passed=drawn["passed"].max(axis=1) > 0,
        reward=drawn["reward"].max(axis=1),
        **{name: drawn[name].sum(axis=1) for name in SUMMED},
        weight=1 / len(chosen),
    )


def pass_at_k(attempts: np.ndarray, passes: np.ndarray, k: int) -> np.ndarray:
    """1 − C(n − c, k)/C(n, k) from n `attempts` and c `passes`, element by element: the unbiased estimator of pass@k.

    The chance that k of the n, drawn without replacement, hold a pass. Where n < k all n are drawn, as in `best_of`.
    """
    n, c = np.asarray(attempts, float)[..., None], np.asarray(passes, float)[..., None]
    step = np.arange(k)
    # Those below 0 come after one that is 0.
    missed = np.where(step < n, (n - c - step) / np.maximum(n - step, 1), 1)
    return np.asarray(1 - missed.prod(axis=-1))
