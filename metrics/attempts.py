"""Several attempts at one task: pass@k, with the best of k attempts at the price of all k."""

from __future__ import annotations

import re
from itertools import combinations
from math import comb

import numpy as np
import pandas as pd

from metrics.errors import TableError

SUMMED = ("cost_usd", "tokens", "turns")
"""Columns that are summed over the k attempts made for one answer."""
MOST_CHOICES = 5000
"""Limit on the choices of k among n attempts that `best_of` goes through per task; C(15, 6) is 5005."""


def tries(attempts: str) -> int:
    """Return the k of `pass@k`. Raises `ValueError` for any other rule."""
    if found := re.fullmatch(r"pass@([1-9]\d*)", attempts):
        return int(found[1])
    raise ValueError(
        f"{attempts!r} is not a rule for attempts; there are latest_completed, mean and pass@1, pass@2, ..."
    )


def refusal(attempts: str, planned: int) -> str:
    """Return why `pass@k` cannot be computed from `planned` attempts at each task; empty if it can.

    From fewer than k attempts pass@k would only be a lower bound, which is not worth planning. Raises `ValueError` if
    `attempts` is another rule.
    """
    k = tries(attempts)
    if k > planned:
        return f"{attempts} needs attempts={k} or more, and {planned} are planned"
    if comb(planned, k) > MOST_CHOICES:
        return f"{attempts} of {planned} attempts has more than {MOST_CHOICES} choices a task"
    return ""


def best_of(rows: pd.DataFrame, k: int) -> pd.DataFrame:
    """Return one row for every choice of k among the valid attempts of a (cell, task), all equally weighted.

    A row stands for k attempts made for one answer: it is `passed` if any of them passed, has their greatest `reward`,
    and the sums of their `cost_usd`, `tokens` and `turns`. So `passed` × `weight` sums to the unbiased estimator of
    pass@k, 1 − C(n − c, k)/C(n, k) for c passes in n attempts, and pass@1 equals `mean`. If a task has fewer than k
    valid attempts, they form one row; the figure is then a lower bound. Raises `TableError` if a task has more than
    `MOST_CHOICES` choices.
    """
    rows = rows.sort_values(["cell", "task", "attempt"])
    sizes = rows.groupby(["cell", "task"])["task"].transform("size").to_numpy(int)
    parts = [_choices(rows[sizes == size], size, min(k, size)) for size in np.unique(sizes).tolist()]
    return pd.concat(parts) if parts else rows.assign(weight=1.0)


def _choices(rows: pd.DataFrame, size: int, k: int) -> pd.DataFrame:
    """Apply `best_of` to tasks with exactly `size` ≥ k valid attempts each; the attempts of a task are adjacent."""
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
    """Return 1 − C(n − c, k)/C(n, k) for n `attempts` with c `passes`, element by element.

    This is the unbiased estimator of pass@k: the chance that k of the n attempts, drawn without replacement, hold a
    pass. If n < k, all n are drawn, as in `best_of`.
    """
    n, c = np.asarray(attempts, float)[..., None], np.asarray(passes, float)[..., None]
    step = np.arange(k)
    # A negative factor only follows a factor of 0.
    missed = np.where(step < n, (n - c - step) / np.maximum(n - step, 1), 1)
    return np.asarray(1 - missed.prod(axis=-1))
