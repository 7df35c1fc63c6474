"""Uncertainty: Wilson intervals, and a percentile bootstrap over tasks (beyond the papers).

A benchmark is a sample of tasks, so tasks are resampled: inside each (dataset, tier), with all attempts of a task
together. Cells of one dataset get the same resampled tasks, so their draws compare pairwise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import Protocol
from zlib import crc32

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from metrics.ams import BOUNDS, PARTS, Scoring, mean_over_tiers, task_parts, tier_score, unscored
from metrics.table import per_task, valid

SPEND = ("tries_passed", "cost_usd", "tokens", "known_usd", "known_tokens")
"""Columns summed over all valid trials of a task: passes, USD, tokens, known USD and known tokens."""
COLUMNS = ("planned", *PARTS, *BOUNDS[:2], *SPEND)
"""Columns that are summed over tasks."""
BETTER = {"AMS": 1, "pass_rate": 1, "passes": 1, "mean_reward": 1, "usd_per_pass": -1, "tokens_per_pass": -1}
"""Statistic that is drawn -> 1 if more of it is better, -1 if less is. Of one that is not named, more is better."""
FEWEST_TASKS = 10
"""Number of tasks in a tier below which its intervals are too narrow and no lead is clear; for their coverage see
docs/metrics.md, How sure."""

_PAIRS_AT_ONCE = 256
"""Number of pairs of cells whose resamples are in memory at a time."""


class Resampling(Scoring, Protocol):
    """Scoring with the settings of the bootstrap."""

    @property
    def resamples(self) -> int:
        """Number of resamples."""

    @property
    def seed(self) -> int:
        """Seed of the random numbers, at least 0."""


@dataclass(frozen=True)
class Draws:
    """Bootstrap distributions of each statistic in `BETTER`; cells of one dataset were resampled together."""

    cells: tuple[str, ...]
    """Names of the cells, sorted."""
    datasets: tuple[str, ...]
    """Dataset of each cell, in the same order."""
    observed: Mapping[str, np.ndarray]
    """Statistic -> its value on the tasks as they are, shape (cells,). Beside `BETTER` there are `AMS_most`,
    `usd_per_pass_least` and `tokens_per_pass_least`, the other bounds if costs or counts are unknown."""
    drawn: Mapping[str, np.ndarray]
    """The same statistics on resamples, shape (resamples, cells); row i is the same resample for all cells. Prices per
    pass are infinite if the resampled tasks hold no pass."""


def wilson(passes: float, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the Wilson score interval of the rate `passes` / `n`, in [0, 1]; NaN for n = 0."""
    if n == 0:
        return float("nan"), float("nan")
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    rate = passes / n
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    return max(centre - half, 0.0), min(centre + half, 1.0)


def interval_1645_sd(values: ArrayLike) -> tuple[float, float]:
    """Return mean − 1.645·SD/√n and mean + 1.645·SD/√n, with SD over n − 1, as CLI-Tool-Bench prints.

    `values` has one score per task, shape (n,). Both ends are NaN for fewer than two scores or if one is NaN.
    """
    scores = np.asarray(values, float)
    if len(scores) < 2:  # noqa: PLR2004 - what SD needs
        return float("nan"), float("nan")
    half = 1.645 * scores.std(ddof=1) / sqrt(len(scores))
    return float(scores.mean() - half), float(scores.mean() + half)


def bootstrap(trials: pd.DataFrame, scoring: Resampling, parts: pd.DataFrame | None = None) -> Draws:
    """Draw every statistic of every cell on `scoring.resamples` resamples of its tasks, inside each (dataset, tier).

    The statistics are AMS (`metrics.ams`) and passes, pass_rate, mean_reward, usd_per_pass and tokens_per_pass as
    `metrics.table.summary` defines them. The resamples of a (dataset, tier) depend only on the seed, its name and its
    number of tasks; other cells or datasets in the table change nothing. One unknown cost makes a cell's USD per pass
    NaN throughout, and one unknown count makes its tokens per pass NaN. Without a valid trial both prices per pass are
    NaN; without any known cost AMS is NaN. `parts` are the `metrics.ams.task_parts` of the same trials; without them,
    they are computed here.
    """
    tasks = _tasks(trials, task_parts(trials, scoring) if parts is None else parts)
    datasets = tasks.groupby("cell")["dataset"].first()
    statistics = _statistics(resampled_sums(tasks, COLUMNS, scoring), scoring)
    for name, silent in _unknown(tasks, scoring).items():
        statistics[name][:, silent] = np.nan
    return Draws(
        tuple(datasets.index),
        tuple(datasets),
        {name: values[0] for name, values in statistics.items()},
        {name: values[1:] for name, values in statistics.items()},
    )


def _unknown(tasks: pd.DataFrame, scoring: Scoring) -> dict[str, np.ndarray]:
    """Return statistic -> whether nothing is known of it, by cell."""
    of = tasks.groupby("cell")
    idle = ~of["valid"].any().to_numpy(bool)
    counted = tasks["tier"].isin([name for name, tier in scoring.tiers.items() if tier.weight])
    sums = tasks.loc[counted, ["valid", "unpriced"]].groupby(tasks["cell"]).sum().reindex(list(of.groups))
    no_ams = unscored(sums["valid"].fillna(0), sums["unpriced"].fillna(0))
    no_usd, no_tokens = (idle | ~of[f"{kind}_known"].any().to_numpy(bool) for kind in ("usd", "tokens"))
    return {
        "AMS": no_ams,
        "AMS_most": no_ams,
        "usd_per_pass": idle,
        "tokens_per_pass": idle,
        "usd_per_pass_least": no_usd,
        "tokens_per_pass_least": no_tokens,
    }


def resampled_sums(tasks: pd.DataFrame, columns: Sequence[str], scoring: Resampling) -> dict[str, np.ndarray]:
    """Return tier -> sums of `columns` over resamples of its tasks, shape (1 + resamples, columns, cells).

    `tasks` has a row per planned (cell, task), with its `dataset` and `tier`. Cells are sorted. The first row has the
    sums over the tasks as they are. Cells that planned the same tasks of a tier are resampled together, others
    separately. One NaN among a cell's tasks makes its sums NaN.
    """
    cells = sorted(tasks["cell"].unique())
    totals: dict[str, np.ndarray] = {}
    for dataset, tier, names, stratum in _strata(tasks):
        own = pd.Index(stratum["cell"].unique())
        values = np.zeros((len(names), len(columns), len(own)))
        rows = pd.Index(list(names)).get_indexer(pd.Index(stratum["task"]))
        values[rows, :, own.get_indexer(pd.Index(stratum["cell"]))] = stratum[list(columns)]
        rng = np.random.default_rng([scoring.seed, crc32(f"{dataset}\n{tier}".encode())])
        drawn = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=scoring.resamples)
        times = np.vstack([np.ones(len(names)), drawn])  # the first is the sample itself
        sums = (times @ values.reshape(len(names), -1)).reshape(len(times), len(columns), len(own))
        total = totals.setdefault(tier, np.zeros((len(times), len(columns), len(cells))))
        total[:, :, pd.Index(cells).get_indexer(own)] += sums
    return totals


def _strata(tasks: pd.DataFrame) -> Iterator[tuple[str, str, tuple[str, ...], pd.DataFrame]]:
    """Yield dataset, tier, names of tasks, and the rows of the cells that planned exactly these tasks of the tier."""
    for (dataset, tier), rows in tasks.groupby(["dataset", "tier"]):
        sharing: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
        for cell, of in rows.groupby("cell")["task"]:
            sharing[tuple(sorted(of))].append(str(cell))
        for names, cells in sharing.items():
            yield str(dataset), str(tier), names, rows[rows["cell"].isin(cells)]


def _statistics(totals: Mapping[str, np.ndarray], scoring: Resampling) -> dict[str, np.ndarray]:
    """Return statistic -> values, shape (resamples, cells), from tier -> sums, shape (resamples, COLUMNS, cells)."""
    everything = np.sum(list(totals.values()), axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):  # a tier without tasks has a NaN score, as intended
        scores: dict[str, dict[str, np.ndarray]] = {"AMS": {}, "AMS_most": {}}
        for name in scoring.tiers:
            tier = totals.get(name, np.zeros_like(everything))
            planned, reward, _, *ends = np.moveaxis(tier[:, : len(COLUMNS) - len(SPEND)], 1, 0)
            for end, (budgeted, expensive) in zip(scores, (ends[:2], ends[2:]), strict=True):
                scores[end][name] = tier_score(
                    reward / planned, budgeted / planned, expensive / planned, scoring.alpha
                )
        planned, reward, passes, *_ = np.moveaxis(everything, 1, 0)
        tries_passed, *spent = np.moveaxis(everything[:, -len(SPEND) :], 1, 0)
        prices = ("usd_per_pass", "tokens_per_pass", "usd_per_pass_least", "tokens_per_pass_least")
        return {
            **{end: mean_over_tiers(of, scoring.tiers) for end, of in scores.items()},
            "pass_rate": passes / planned,
            "passes": passes,
            "mean_reward": reward / planned,
            **{
                name: np.where(tries_passed > 0, of / tries_passed, np.inf)
                for name, of in zip(prices, spent, strict=True)
            },
        }


def ends(values: Mapping[str, np.ndarray], statistic: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the worst and the best possible values of a statistic in `Draws.observed` or `Draws.drawn`.

    The two differ if costs or counts are unknown. A price per pass that is partly unknown is infinite at worst, and the
    price of the known part at best.
    """
    own = values[statistic]
    if statistic == "AMS":
        return own, values.get("AMS_most", own)
    least = values.get(f"{statistic}_least", own)
    return np.where(np.isnan(own) & ~np.isnan(least), np.inf, own), least


def percentiles(drawn: np.ndarray, confidence: float) -> np.ndarray:
    """Return the low and the high end of the percentile interval along the first axis of `drawn`, shape (2, ...).

    The ends are drawn values, not interpolated ones, so an infinite price per pass stays infinite.
    """
    ends = [(1 - confidence) / 2, (1 + confidence) / 2]
    return np.asarray(np.quantile(drawn, ends, axis=0, method="inverted_cdf"))


def intervals(draws: Draws, confidence: float = 0.95) -> pd.DataFrame:
    """Return percentile intervals; index cell, columns `<statistic>_low` and `<statistic>_high` for each in `BETTER`.

    If costs are unknown, the interval of AMS reaches from the low end of its lower bound to the high end of its upper
    bound.
    """
    columns = {}
    for name in BETTER:
        columns[f"{name}_low"], columns[f"{name}_high"] = percentiles(draws.drawn[name], confidence)
    columns["AMS_high"] = percentiles(ends(draws.drawn, "AMS")[1], confidence)[1]
    return pd.DataFrame(columns, index=pd.Index(draws.cells, name="cell"))


def lead(left: ArrayLike, right: ArrayLike, statistic: str) -> np.ndarray:
    """Return by how much `left` is better than `right`, element by element, in the statistic's unit.

    The lead of one infinite price per pass over another is 0.
    """
    with np.errstate(invalid="ignore"):
        difference = BETTER.get(statistic, 1) * (np.asarray(left) - np.asarray(right))
    return np.where(np.isinf(left) & np.isinf(right), 0.0, difference)


def pairwise(draws: Draws, statistic: str = "AMS", confidence: float = 0.95) -> pd.DataFrame:
    """Compare each two cells of one dataset on the same resampled tasks; one row per pair, the better cell first.

    Columns: `dataset`, `left`, `right`; `lead` ≥ 0 of left over right on the tasks as they are, in the statistic's
    unit; `low` and `high`, its percentile interval; `wins`, the share of resamples in which left is strictly better;
    `p`, two-sided: twice the smaller of the numbers of resamples, plus 1, with a lead ≤ 0 and ≥ 0, over resamples + 1,
    at most 1; `p_holm` and `p_joint`, corrected for all pairs of the dataset by `holm` and by `_joint`. They are NaN if
    a cell has no value; `p_joint` also if a lead is infinite. An unknown value never helps `left`: all columns but
    `lead` compare left at its worst with right at its best, and `high` does the reverse.
    """
    pairs = [_against_later(draws, statistic, one, confidence) for one in range(len(draws.cells))]
    table = pd.concat(pairs, ignore_index=True)
    table = table.assign(p_holm=table.groupby("dataset")["p"].transform(holm), p_joint=np.nan)
    for _, of in table.groupby("dataset"):
        table.loc[of.index, "p_joint"] = _joint(of, draws, statistic)
    return table


def _joint(pairs: pd.DataFrame, draws: Draws, statistic: str) -> pd.Series[float]:
    """Return step-down p values of `pairs`, rows of `pairwise` (Westfall and Young 1993, algorithm 4.1).

    Count the resamples in which any pair with no greater lead deviates from its own observed lead by at least this
    pair's lead. A pair's p is (count + 1) / (resamples + 1), and at least that of every pair with a greater lead.
    Unlike Holm's, the least p is 1 / (resamples + 1) for any number of pairs.
    """
    known = pairs[np.isfinite(pairs[["low", "high", "lead"]].to_numpy(float)).all(axis=1)]
    worst, best = ends(draws.observed, statistic)
    left, right = (pd.Index(draws.cells).get_indexer(known[side]) for side in ("left", "right"))
    rising = known.assign(least=lead(worst[left], best[right], statistic)).sort_values("least", kind="stable")
    left, right = (pd.Index(draws.cells).get_indexer(rising[side]) for side in ("left", "right"))
    leads, (worst, best) = rising["least"].to_numpy(float), ends(draws.drawn, statistic)
    largest, p = np.zeros((len(worst), 1)), []
    for start in range(0, len(rising), _PAIRS_AT_ONCE):
        some = slice(start, start + _PAIRS_AT_ONCE)
        deviation = np.abs(lead(worst[:, left[some]], best[:, right[some]], statistic) - leads[some])
        so_far = np.maximum.accumulate(np.hstack([largest, deviation]), axis=1)
        reached = so_far[:, 1:] >= leads[some] - 1e-12  # equal up to rounding must count
        p.append((reached.sum(axis=0) + 1) / (len(worst) + 1))
        largest = so_far[:, -1:]
    stepped = np.maximum.accumulate(np.concatenate([*p, []])[::-1])[::-1]
    return pd.Series(stepped, index=rising.index, dtype=float).reindex(pairs.index)


def _against_later(draws: Draws, statistic: str, one: int, confidence: float) -> pd.DataFrame:
    """Return the rows of `pairwise` for one cell and those after it in its dataset, without corrected p values."""
    dataset = draws.datasets[one]
    later = [n for n in range(one + 1, len(draws.cells)) if draws.datasets[n] == dataset]
    observed, (worst, best) = draws.observed[statistic], ends(draws.drawn, statistic)
    leads = lead(observed[one], observed[later], statistic)
    behind = leads < 0
    side = np.where(behind, -1, 1)
    against = lead(worst[:, [one]], best[:, later], statistic)
    favour = lead(best[:, [one]], worst[:, later], statistic)
    least, most = np.where(behind, -favour, against), np.where(behind, -against, favour)
    unknown = np.isnan(least).any(axis=0)
    tail = np.minimum((least <= 0).sum(axis=0), (most >= 0).sum(axis=0))
    low, high = percentiles(least, confidence)[0], percentiles(most, confidence)[1]
    names = np.array([draws.cells[n] for n in later], dtype=object)
    return pd.DataFrame(
        {
            "dataset": dataset,
            "left": np.where(behind, names, draws.cells[one]),
            "right": np.where(behind, draws.cells[one], names),
            "lead": side * leads,
            "low": low,
            "high": high,
            "wins": np.where(unknown, np.nan, (least > 0).mean(axis=0)),
            "p": np.where(unknown, np.nan, np.minimum(2 * (tail + 1) / (len(least) + 1), 1)),
        }
    )


def holm(p: pd.Series[float]) -> pd.Series[float]:
    """Return p values after Holm's step-down correction; NaN is not counted as a hypothesis and stays NaN."""
    known = p.dropna().sort_values()
    steps = known * np.arange(len(known), 0, -1)
    return steps.cummax().clip(upper=1.0).reindex(p.index)


def _tasks(trials: pd.DataFrame, parts: pd.DataFrame) -> pd.DataFrame:
    """Return `COLUMNS` of each planned (cell, task), and its number of trials with known USD and known tokens."""
    tries = trials.loc[valid(trials), ["cell", "task", "passed", "cost_usd", "tokens"]]
    tries = tries.rename(columns={"passed": "tries_passed"}).assign(weight=1.0)
    for kind, name in (("usd", "cost_usd"), ("tokens", "tokens")):
        amount = tries[name].astype(float)
        tries[f"known_{kind}"], tries[f"{kind}_known"] = amount.fillna(0.0), amount.notna()
    spent = [*SPEND, "usd_known", "tokens_known"]
    sums = per_task(trials, tries, spent)  # the rows of both are the planned (cell, task), in the same order
    return parts.assign(planned=1.0, **{name: sums[name] for name in spent})
