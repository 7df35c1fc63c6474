"""How sure: Wilson intervals, and a percentile bootstrap over tasks (beyond the papers).

Tasks are what a benchmark sampled, so tasks are resampled: inside each (dataset, tier), with all attempts of
a task together. Cells of one dataset see the same resampled tasks, so their draws compare pairwise.
"""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist
from typing import NamedTuple, Protocol
from zlib import crc32

import numpy as np
import pandas as pd

from metrics.ams import PARTS, Scoring, mean_over_tiers, task_parts, tier_score
from metrics.table import per_task, valid

SPEND = ("tries_passed", "cost_usd")
"""Of a task, over all its valid trials: passes among them, and USD."""


class Resampling(Scoring, Protocol):
    """Scoring with the bootstrap's own settings."""

    @property
    def resamples(self) -> int:
        """How many."""

    @property
    def seed(self) -> int:
        """Non-negative."""


class Draws(NamedTuple):
    """Bootstrap distributions, each of shape (resamples, cells); row i is the same resample for all cells."""

    cells: tuple[str, ...]
    ams: np.ndarray
    pass_rate: np.ndarray
    usd_per_pass: np.ndarray
    """Infinity where the resampled tasks hold no pass."""


def wilson(passes: float, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson score interval of a pass rate of `passes` in `n`; NaN for n = 0."""
    if n == 0:
        return float("nan"), float("nan")
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    rate = passes / n
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    return max(centre - half, 0.0), min(centre + half, 1.0)


def bootstrap(trials: pd.DataFrame, scoring: Resampling) -> Draws:
    """AMS, pass rate (passes / planned tasks) and USD per pass of every cell on `scoring.resamples`
    resamples.

    A stratum's resamples depend on the seed, its name and its number of tasks only: other cells or datasets
    in the table change nothing. One unknown cost makes a cell's USD per pass NaN throughout.
    """
    cells, strata = _strata(trials, scoring)
    columns = ("planned", *PARTS, *SPEND)
    totals: dict[str, np.ndarray] = {}
    for (dataset, tier), values in strata.items():
        tasks = len(values)
        rng = np.random.default_rng([scoring.seed, crc32(f"{dataset}\n{tier}".encode())])
        times = rng.multinomial(tasks, np.full(tasks, 1 / tasks), size=scoring.resamples).astype(float)
        sums = (times @ values.reshape(tasks, -1)).reshape(scoring.resamples, len(columns), len(cells))
        totals[tier] = totals.get(tier, 0.0) + sums

    with np.errstate(
        divide="ignore", invalid="ignore"
    ):  # cells without tasks of a tier: NaN, as they should be
        scores = {}
        empty = np.zeros((scoring.resamples, len(columns), len(cells)))
        for name in scoring.tiers:
            planned, reward, _, budgeted, expensive, *_ = np.moveaxis(totals.get(name, empty), 1, 0)
            scores[name] = tier_score(
                reward / planned, budgeted / planned, expensive / planned, scoring.alpha
            )
        planned, _, passed, _, _, tries_passed, cost = np.moveaxis(sum(totals.values(), start=empty), 1, 0)
        usd = np.where(tries_passed > 0, cost / tries_passed, np.inf)
        return Draws(cells, mean_over_tiers(scores, scoring.tiers), passed / planned, usd)


def intervals(draws: Draws, confidence: float = 0.95) -> pd.DataFrame:
    """Percentile intervals; index cell, columns `<statistic>_low` and `<statistic>_high`.

    Ends are values that were drawn, never interpolated, so that an infinite USD per pass stays one.
    """
    ends = [(1 - confidence) / 2, (1 + confidence) / 2]
    named = {"AMS": draws.ams, "pass_rate": draws.pass_rate, "usd_per_pass": draws.usd_per_pass}
    columns = {}
    for name, drawn in named.items():
        columns[f"{name}_low"], columns[f"{name}_high"] = np.quantile(
            drawn, ends, axis=0, method="inverted_cdf"
        )
    return pd.DataFrame(columns, index=pd.Index(draws.cells, name="cell"))


def _strata(
    trials: pd.DataFrame, scoring: Resampling
) -> tuple[tuple[str, ...], dict[tuple[str, str], np.ndarray]]:
    """Cells, and per (dataset, tier) an array (tasks, columns, cells); 0 where a cell plans no such task."""
    tries = trials[valid(trials)].assign(weight=1.0)
    tries = tries.assign(tries_passed=tries["passed"].astype(bool))
    tasks = task_parts(trials, scoring).assign(planned=1.0)
    tasks = tasks.merge(per_task(trials, tries, SPEND)[["cell", "task", *SPEND]], on=["cell", "task"])
    cells = tuple(sorted(tasks["cell"].unique()))
    strata = {}
    for (dataset, tier), stratum in tasks.groupby(["dataset", "tier"]):
        names = sorted(stratum["task"].unique())
        values = np.zeros((len(names), 1 + len(PARTS) + len(SPEND), len(cells)))
        rows = pd.Index(names).get_indexer(stratum["task"])
        values[rows, :, pd.Index(cells).get_indexer(stratum["cell"])] = stratum[["planned", *PARTS, *SPEND]]
        strata[str(dataset), str(tier)] = values
    return cells, strata
