"""Several attempts at one task: pass@k, and what the best of k is worth at the price of k."""

from __future__ import annotations

import re
from itertools import combinations
from math import comb

import numpy as np
import pandas as pd

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


def best_of(rows: pd.DataFrame, k: int) -> pd.DataFrame:
    """Every choice of k among the valid attempts of one (cell, task) as one row, all equally weighted.

    A row is k attempts made for one answer: `passed` if any passed, the greatest `reward`, the sum of `cost_usd`,
    `tokens` and `turns`. So `passed` × weight sums to the unbiased estimator of pass@k, 1 − C(n − c, k)/C(n, k) for c
    passes in n attempts, and pass@1 is `mean`. With fewer than k valid attempts those that there are count together:
    the missing ones contribute nothing, and the figure is a lower bound. Raises `ValueError` beyond `MOST_CHOICES`.
    """
    rows = rows.sort_values(["cell", "task", "attempt"])
    sizes = rows.groupby(["cell", "task"])["task"].transform("size")
    parts = []
    for size, of in rows.groupby(sizes):
        drawn = min(k, int(size))
        if comb(int(size), drawn) > MOST_CHOICES:
            raise ValueError(f"pass@{k} of {size} attempts: more than {MOST_CHOICES} choices a task")
        chosen = np.array(list(combinations(range(int(size)), drawn)))
        first = of.iloc[:: int(size)]
        values = {
            name: of[name].to_numpy(float).reshape(-1, int(size))[:, chosen]
            for name in ("passed", "reward", *SUMMED)
        }
        repeated = first.loc[first.index.repeat(len(chosen))].assign(
            passed=values["passed"].max(axis=2).ravel() > 0,
            reward=values["reward"].max(axis=2).ravel(),
            **{name: values[name].sum(axis=2).ravel() for name in SUMMED},
            weight=1 / len(chosen),
        )
        parts.append(repeated)
    return pd.concat(parts) if parts else rows.assign(weight=1.0)


def pass_at_k(attempts: np.ndarray, passes: np.ndarray, k: int) -> np.ndarray:
    """Unbiased estimator 1 − C(n − c, k)/C(n, k) from n `attempts` and c `passes`, element by element.

    The chance that k attempts drawn without replacement hold a pass. NaN where n < k.
    """
    n, c = np.asarray(attempts, float)[..., None], np.asarray(passes, float)[..., None]
    steps = np.arange(k)
    with np.errstate(divide="ignore", invalid="ignore"):
        missed = np.clip((n - c - steps) / (n - steps), 0, None).prod(axis=-1)
    return np.where(n[..., 0] >= k, 1 - missed, np.nan)
