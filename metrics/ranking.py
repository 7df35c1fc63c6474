"""Rankings: agreement of two scorings, and the best cell by each criterion (AgentMeter sections 4.1, 5.1 to 5.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from metrics.errors import TableError, listed
from metrics.uncertainty import BETTER, Draws, ends, lead, percentiles

FEWEST = 3
"""Smallest number of cells for a rank correlation."""
CRITERIA = ("passes", "tokens_per_pass", "usd_per_pass", "AMS")
"""Criteria for the best cell, in the paper's order; each is a column of the cells and a statistic of `Draws`."""

Fixed = Literal["model", "agent"]
"""Part of a pair that stays the same while the other one is varied."""
VARIED: Mapping[Fixed, Fixed] = {"model": "agent", "agent": "model"}
"""Part that stays the same -> part that is varied."""


class Agreement(NamedTuple):
    """Agreement of two scorings of the same cells (AgentMeter section 5.4); missing values are NaN or None."""

    cells: int
    """Number of cells compared: those with a score on both sides."""
    spearman: float
    """Spearman's rank correlation; equal scores share their mean rank."""
    kendall: float
    """Kendall's tau-b."""
    top1: bool | None
    """True if both sides have the same best cell, or the same set of cells with the best score."""
    topk: bool | None
    """True if the k best cells are the same set; None if there are at most k cells."""
    overlap: float
    """Share of the k best cells that both sides have in common; NaN if `topk` is None."""
    mae: float
    """Mean absolute difference of the scores, in their unit; NaN if one of them is infinite."""
    why: str
    """Reason for missing values, and notes on ties; empty if there are none."""


def agreement(left: pd.Series[float], right: pd.Series[float], k: int = 3) -> Agreement:
    """Return the agreement of two scorings, each a Series of scores by cell; greater is better (negate a price).

    Cells that are missing or NaN on one side are left out. If cells share place k, their names decide on both sides
    alike, and `why` notes this. With fewer than three common cells everything is missing. If all scores of one side
    are equal, there is no correlation. An infinite score (a price without a pass) has a rank but no difference.
    """
    both = pd.DataFrame({"left": left, "right": right}).astype(float).dropna().sort_index()
    cells = len(both)
    if cells < FEWEST:
        nan = float("nan")
        return Agreement(cells, nan, nan, None, None, nan, nan, f"{cells} common cells, {FEWEST} are needed")
    left, right = (both[side].sort_values(ascending=False, kind="stable") for side in both)
    common = set(left.index[:k]) & set(right.index[:k])
    spearman, kendall, why = _correlations(both)
    few, infinite = cells <= k, int(np.isinf(both).any(axis=1).sum())
    torn = not few and any(side.iloc[k - 1] == side.iloc[k] for side in (left, right))
    reasons = (
        why,
        f"cells share place {k}, so their names decide which are the {k} best" if torn else "",
        f"{cells} common cells are the {k} best on both sides" if few else "",
        f"{infinite} cells have an infinite score, so there is no mean difference" if infinite else "",
    )
    return Agreement(
        cells=cells,
        spearman=spearman,
        kendall=kendall,
        top1=set(left.index[left == left.max()]) == set(right.index[right == right.max()]),
        topk=None if few else len(common) == k,
        overlap=float("nan") if few else len(common) / k,
        mae=float("nan") if infinite else float((both["left"] - both["right"]).abs().mean()),
        why="; ".join(filter(None, reasons)),
    )


def _correlations(both: pd.DataFrame) -> tuple[float, float, str]:
    """Return Spearman's and Kendall's correlations, and the reason if there are none."""
    if both.nunique().min() == 1:
        return float("nan"), float("nan"), "all cells have the same score on one side"
    from scipy import stats  # noqa: PLC0415 - a second to load, and only comparisons need it

    ranks = both.rank()
    kendall = stats.kendalltau(both["left"], both["right"], variant="b").statistic
    return float(ranks["left"].corr(ranks["right"])), float(kendall), ""


def four_criteria(cells: pd.DataFrame, draws: Draws, confidence: float = 0.95) -> pd.DataFrame:
    """Return the best cell by each of `CRITERIA` and how certain that is (section 5.1); index `criterion`.

    `cells` has a row for each cell that competes, all of them in `draws`, with the columns `CRITERIA` and, for prices
    per pass, `<price>_least`. Columns of the result: `best`, `value`, `runner_up`, `runner_up_value`; `lead` ≥ 0, in
    the criterion's unit; `low` and `high`, the percentile interval of the lead, both cells on the same resampled tasks;
    `alike`, the cells that cannot be told apart from the best, because the interval of its lead over them is not all
    above 0 or does not hold the lead; `clear`, whether there are rivals and none is alike. Ties go to the first name.

    An unknown value never helps a cell. A price of which only a lower bound is known ranks after all known prices;
    `bounded` tells that even the best has only a bound. Intervals compare the best cell at its worst with the others
    at their best. A cell without any value does not compete. Without a runner-up, its figures are NaN and `clear` is
    False. Raises `TableError` for cells of several datasets, since their tasks were not resampled together.
    """
    where = dict(zip(draws.cells, draws.datasets, strict=True))
    names = sorted({where[cell] for cell in cells.index})
    if len(names) > 1:
        raise TableError({f"Cells of several datasets ({listed(names)}) where one is wanted": cells.index})
    rows = {name: _criterion(cells, draws, name, confidence) for name in CRITERIA}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("criterion")


def _criterion(cells: pd.DataFrame, draws: Draws, name: str, confidence: float) -> dict[str, object]:
    """Return one row of `four_criteria`."""
    scores = _in_order(cells, name)
    at = pd.Index(draws.cells).get_indexer(scores.index)
    worst, best = ends(draws.drawn, name)
    value = scores["value"].to_numpy(float)
    leads = lead(value[:1], value[1:], name)
    low, _ = percentiles(lead(worst[:, at[:1]], best[:, at[1:]], name), confidence)
    _, high = percentiles(lead(best[:, at[:1]], worst[:, at[1:]], name), confidence)
    apart = (low > 0) & (low <= leads) & (leads <= high)
    known = not scores["bounded"].iloc[:1].any() and len(leads) > 0 and leads[0] >= 0
    names, values = [*scores.index[:2], np.nan, np.nan], [*value[:2], np.nan, np.nan]
    return {
        "best": names[0],
        "value": values[0],
        "bounded": bool(scores["bounded"].iloc[:1].any()),
        "runner_up": names[1],
        "runner_up_value": values[1],
        "lead": leads[0] if known else np.nan,
        "low": low[0] if len(low) else np.nan,
        "high": high[0] if len(high) else np.nan,
        "alike": tuple(scores.index[1:][~apart]),
        "clear": len(leads) > 0 and bool(apart.all()),
    }


def _in_order(cells: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the cells that have a `value`, best first, ties by name; values that are lower bounds come last."""
    values = cells[name].astype(float)
    least = cells.get(f"{name}_least", values).astype(float)
    scores = pd.DataFrame({"bounded": values.isna(), "value": values.fillna(least)}).dropna().sort_index()
    return scores.sort_values(["bounded", "value"], ascending=[True, BETTER[name] < 0], kind="stable")


def gap_to_best(cells: pd.DataFrame, fixed: Fixed = "model") -> pd.Series[float]:
    """Return Δbest of each cell: the best AMS of any cell with the same model (or agent, if `fixed`), less its own.

    Columns read: `fixed`, `AMS`; where `dataset` and `budget` exist, these must be the same too. Δbest is at least 0,
    and NaN for a cell without AMS.
    """
    best = cells.groupby(_unit(cells, fixed))["AMS"].transform("max")
    return (best - cells["AMS"]).rename("gap")


def delta_best(cells: pd.DataFrame, fixed: Fixed = "model") -> pd.DataFrame:
    """Return the best and the worst agent of each model by AMS, and the gap between them (AgentMeter Table 3).

    With `fixed="agent"` it is the best and the worst model of each agent (section 5.3). Columns read: `model`, `agent`,
    `AMS`, and `dataset` and `budget` where they exist. The index is what is fixed, with dataset and budget if read.
    Columns: `agents` (or `models`; how many), `best`, `best_AMS`, `worst`, `worst_AMS`, `gap`. Cells without AMS are
    left out; ties go to the first name.
    """
    varied = VARIED[fixed]
    known = cells.dropna(subset=["AMS"]).sort_values(varied)
    grouped = known.groupby(_unit(cells, fixed))["AMS"]
    best, worst = known.loc[grouped.idxmax()], known.loc[grouped.idxmin()]
    columns = {
        f"{varied}s": grouped.size().to_numpy(),
        "best": best[varied].to_numpy(),
        "best_AMS": best["AMS"].to_numpy(),
        "worst": worst[varied].to_numpy(),
        "worst_AMS": worst["AMS"].to_numpy(),
        "gap": (grouped.max() - grouped.min()).to_numpy(),
    }
    return pd.DataFrame(columns, index=grouped.size().index)


def pareto(rate: ArrayLike, usd: ArrayLike) -> np.ndarray:
    """Return which cells are on the Pareto front of pass rate and USD per pass, shape (cells,).

    A cell is on the front if no other one is at least as good in both and better in one. `rate` and `usd` have shape
    (cells,). A cell with a NaN or an infinite price is never on the front.
    """
    passes, price = np.asarray(rate, float), np.asarray(usd, float)
    known = np.isfinite(price) & ~np.isnan(passes)
    as_good = (passes[None, :] >= passes[:, None]) & (price[None, :] <= price[:, None])
    better = (passes[None, :] > passes[:, None]) | (price[None, :] < price[:, None])
    return np.asarray(known & ~(as_good & better & known[None, :]).any(axis=1))


def _unit(cells: pd.DataFrame, fixed: Fixed) -> list[str]:
    return [name for name in (fixed, "dataset", "budget") if name in cells]
