"""How sure: Wilson intervals, and a percentile bootstrap over tasks (beyond the papers).

Tasks are what a benchmark sampled, so tasks are resampled: inside each (dataset, tier), with all attempts of
a task together. Cells of one dataset see the same resampled tasks, so their draws compare pairwise.
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
"""Of a task, over all its valid trials: passes among them, USD, tokens, and what is known of either."""
COLUMNS = ("planned", *PARTS, *BOUNDS[:2], *SPEND)
"""What is summed over tasks."""
BETTER = {"AMS": 1, "pass_rate": 1, "passes": 1, "usd_per_pass": -1, "tokens_per_pass": -1}
"""Statistics that are drawn, and whether more of them is better or worse."""
FEWEST_TASKS = 10
"""Of a tier, below which its intervals are too narrow and no lead is clear; coverage: docs/metrics.md, How sure."""


_PAIRS_AT_ONCE = 256
"""Of which all resamples are in memory."""


class Resampling(Scoring, Protocol):
    """Scoring with the bootstrap's own settings."""

    @property
    def resamples(self) -> int:
        """How many."""

    @property
    def seed(self) -> int:
        """Non-negative."""


@dataclass(frozen=True)
class Draws:
    """Bootstrap distributions of every statistic in `BETTER`. Cells of one dataset were resampled together."""

    cells: tuple[str, ...]
    """Sorted."""
    datasets: tuple[str, ...]
    """Of each cell."""
    observed: Mapping[str, np.ndarray]
    """Statistic -> its value on the tasks as they are, shape (cells,); and `AMS_most`, `usd_per_pass_least` and
    `tokens_per_pass_least`, its other end where costs or counts are unknown."""
    drawn: Mapping[str, np.ndarray]
    """Statistic -> its values, shape (resamples, cells); row i is the same resample for all cells. Prices per pass are
    infinite where the resampled tasks hold no pass."""


def wilson(passes: float, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson score interval of a pass rate of `passes` in `n`; NaN for n = 0."""
    if n == 0:
        return float("nan"), float("nan")
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    rate = passes / n
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    return max(centre - half, 0.0), min(centre + half, 1.0)


def interval_1645_sd(values: ArrayLike) -> tuple[float, float]:
    """The interval named `1.645·SD/√n` (as CLI-Tool-Bench prints): mean ∓ 1.645·SD/√n, SD over n − 1.

    `values` has one score per task, shape (n,). Fewer than two, or a NaN among them: NaN.
    """
    scores = np.asarray(values, float)
    if len(scores) < 2:  # noqa: PLR2004 - what SD needs
        return float("nan"), float("nan")
    half = 1.645 * scores.std(ddof=1) / sqrt(len(scores))
    return float(scores.mean() - half), float(scores.mean() + half)


def bootstrap(trials: pd.DataFrame, scoring: Resampling) -> Draws:
    """Every statistic of every cell on `scoring.resamples` resamples of its tasks, inside each (dataset, tier).

    AMS; passes (tasks) and pass_rate (passes / planned tasks) of the selected attempts; usd_per_pass and
    tokens_per_pass (totals over all valid trials / passes among them), all as `metrics.table.summary` defines them.
    A stratum's resamples depend on the seed, its name and its number of tasks only: other cells, of whatever tasks, or
    datasets in the table change nothing. One unknown cost makes a cell's USD per pass NaN throughout, and one unknown
    count its tokens per pass; without any valid trial both prices per pass are, and without any known cost AMS is.
    """
    tasks = _tasks(trials, scoring)
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
    """Statistic -> whether nothing at all is known of it, by cell."""
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
    """Sums of `columns` over resamples of the tasks, by tier; shape (1 + resamples, columns, cells), cells sorted.

    `tasks` has a row per planned (cell, task), with their `dataset` and `tier`. The first sum is that of the tasks as
    they are. Cells that planned the same tasks of a tier are resampled together, others by themselves; one NaN among a
    cell's tasks makes its sums NaN.
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
    """Dataset, tier, the tasks of it that the same cells planned, and the rows of these cells."""
    for (dataset, tier), rows in tasks.groupby(["dataset", "tier"]):
        sharing: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
        for cell, of in rows.groupby("cell")["task"]:
            sharing[tuple(sorted(of))].append(str(cell))
        for names, cells in sharing.items():
            yield str(dataset), str(tier), names, rows[rows["cell"].isin(cells)]


def _statistics(totals: Mapping[str, np.ndarray], scoring: Resampling) -> dict[str, np.ndarray]:
    """From sums per tier, each of shape (resamples, COLUMNS, cells), to statistics of shape (resamples, cells)."""
    everything = np.sum(list(totals.values()), axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):  # no tasks of a tier: NaN, as it should be
        scores: dict[str, dict[str, np.ndarray]] = {"AMS": {}, "AMS_most": {}}
        for name in scoring.tiers:
            tier = totals.get(name, np.zeros_like(everything))
            planned, reward, _, *ends = np.moveaxis(tier[:, : len(COLUMNS) - len(SPEND)], 1, 0)
            for end, (budgeted, expensive) in zip(scores, (ends[:2], ends[2:]), strict=True):
                scores[end][name] = tier_score(
                    reward / planned, budgeted / planned, expensive / planned, scoring.alpha
                )
        planned, _, passes, *_ = np.moveaxis(everything, 1, 0)
        tries_passed, *spent = np.moveaxis(everything[:, -len(SPEND) :], 1, 0)
        prices = ("usd_per_pass", "tokens_per_pass", "usd_per_pass_least", "tokens_per_pass_least")
        return {
            **{end: mean_over_tiers(of, scoring.tiers) for end, of in scores.items()},
            "pass_rate": passes / planned,
            "passes": passes,
            **{
                name: np.where(tries_passed > 0, of / tries_passed, np.inf)
                for name, of in zip(prices, spent, strict=True)
            },
        }


def ends(values: Mapping[str, np.ndarray], statistic: str) -> tuple[np.ndarray, np.ndarray]:
    """A statistic of `Draws.observed` or `.drawn` at its worst and at its best, which differ where something that it
    rests on is unknown: a price per pass of which a part is may be any above that of the rest.
    """
    own = values[statistic]
    if statistic == "AMS":
        return own, values.get("AMS_most", own)
    least = values.get(f"{statistic}_least", own)
    return np.where(np.isnan(own) & ~np.isnan(least), np.inf, own), least


def percentiles(drawn: np.ndarray, confidence: float) -> np.ndarray:
    """Low and high end of the percentile interval, shape (2, ...), along the first axis of `drawn`.

    Ends are values that were drawn, never interpolated, so that an infinite USD per pass stays one.
    """
    ends = [(1 - confidence) / 2, (1 + confidence) / 2]
    return np.asarray(np.quantile(drawn, ends, axis=0, method="inverted_cdf"))


def intervals(draws: Draws, confidence: float = 0.95) -> pd.DataFrame:
    """Percentile intervals; index cell, columns `<statistic>_low` and `<statistic>_high` of all in `BETTER`.

    Where costs are unknown, that of AMS reaches from the low end of the least that it can be to the high end of the
    most.
    """
    columns = {}
    for name in BETTER:
        columns[f"{name}_low"], columns[f"{name}_high"] = percentiles(draws.drawn[name], confidence)
    columns["AMS_high"] = percentiles(ends(draws.drawn, "AMS")[1], confidence)[1]
    return pd.DataFrame(columns, index=pd.Index(draws.cells, name="cell"))


def lead(left: ArrayLike, right: ArrayLike, statistic: str) -> np.ndarray:
    """By how much `left` is better than `right`, element by element, whichever way the statistic is better.

    Two infinite prices per pass are equally dear.
    """
    with np.errstate(invalid="ignore"):
        difference = BETTER[statistic] * (np.asarray(left) - np.asarray(right))
    return np.where(np.isinf(left) & np.isinf(right), 0.0, difference)


def pairwise(draws: Draws, statistic: str = "AMS", confidence: float = 0.95) -> pd.DataFrame:
    """Every pair of cells of one dataset on the same resampled tasks; one row a pair, better cell first.

    Columns: `dataset`, `left`, `right`; `lead` of left over right on the tasks as they are, in the statistic's unit,
    >= 0; `low`, `high`: its percentile interval; `wins`: share of resamples in which left is strictly better; `p`:
    two-sided, twice the smaller share of resamples in which the lead is on either side of 0 or at it, of
    resamples + 1; `p_holm` and `p_joint`: corrected for all pairs of the dataset, by `holm` and by `_joint`. NaN where
    a cell has no value; `p_joint` also where a lead is infinite. What is unknown of either cell never helps `left`:
    all but `lead` are of left at its worst against right at its best, and `high` of the reverse.
    """
    pairs = [_against_later(draws, statistic, one, confidence) for one in range(len(draws.cells))]
    table = pd.concat(pairs, ignore_index=True)
    table = table.assign(p_holm=table.groupby("dataset")["p"].transform(holm), p_joint=np.nan)
    for _, of in table.groupby("dataset"):
        table.loc[of.index, "p_joint"] = _joint(of, draws, statistic)
    return table


def _joint(pairs: pd.DataFrame, draws: Draws, statistic: str) -> pd.Series[float]:
    """Step-down p of each pair against the largest deviation in a resample (Westfall and Young 1993, algorithm 4.1).

    A pair's p is the share of resamples, of resamples + 1, in which any pair with no greater lead deviates from its
    own observed lead by at least this pair's lead, and is no smaller than that of any pair with a greater lead. Unlike
    Holm's, the least p is 1 / (resamples + 1) however many pairs there are. `pairs` are rows of `pairwise`.
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
        reached = so_far[:, 1:] >= leads[some] - 1e-12  # sums of floats: what is as large must count
        p.append((reached.sum(axis=0) + 1) / (len(worst) + 1))
        largest = so_far[:, -1:]
    stepped = np.maximum.accumulate(np.concatenate([*p, []])[::-1])[::-1]
    return pd.Series(stepped, index=rising.index, dtype=float).reindex(pairs.index)


def _against_later(draws: Draws, statistic: str, one: int, confidence: float) -> pd.DataFrame:
    """`pairwise` of one cell with those after it in its dataset; arrays of (resamples, pairs)."""
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
    """Holm's step-down correction: as many hypotheses as there are values; NaN is none and stays NaN."""
    known = p.dropna().sort_values()
    steps = known * np.arange(len(known), 0, -1)
    return steps.cummax().clip(upper=1.0).reindex(p.index)


def _tasks(trials: pd.DataFrame, scoring: Resampling) -> pd.DataFrame:
    """`COLUMNS` of each planned (cell, task), and whether any of its USD and of its tokens is known."""
    tries = trials.loc[valid(trials), ["cell", "task", "passed", "cost_usd", "tokens"]]
    tries = tries.rename(columns={"passed": "tries_passed"}).assign(weight=1.0)
    for kind, name in (("usd", "cost_usd"), ("tokens", "tokens")):
        amount = tries[name].astype(float)
        tries[f"known_{kind}"], tries[f"{kind}_known"] = amount.fillna(0.0), amount.notna()
    spent = [*SPEND, "usd_known", "tokens_known"]
    tasks = task_parts(trials, scoring).assign(planned=1.0)
    return tasks.merge(per_task(trials, tries, spent)[["cell", "task", *spent]], on=["cell", "task"])
