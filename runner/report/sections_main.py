"""The section with all scores of a cell in one row, laid out as AgentMeter's Table 2."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from metrics.ranking import gap_to_best
from runner.report.blocks import Column, Section, Table, Text, Value
from runner.report.conclusions import ams_text, bound_text
from runner.report.findings import Findings
from runner.report.leaderboard import lines, rate_span
from runner.report.sections_scores import AGENT, MODEL, about, figure, tier_part
from runner.report.wording import passes, short, span, usd

_BOUNDS = (">", "<", "~")
"""Signs before a figure that is only a bound, or not even a bound."""


class _Score(NamedTuple):
    """A column of scores."""

    column: Column
    best: Callable[[Sequence[float]], float] | None
    """Function that finds the best value, `max` or `min`; None where no value is the best."""
    values: Mapping[str, Value]
    """Cell -> its entry."""


def main_table(found: Findings) -> Section | None:
    """Show pass counts, prices of a pass, tier scores, AMS and Δbest of the cells that compete."""
    cells = found.contenders
    if cells["AMS"].isna().all():
        return None
    every = lines(cells)
    best_of = cells.groupby("model")["rank"].min()
    order = sorted(every, key=lambda at: (best_of[every[at]["model"]], every[at]["agent"], every[at]["rank"]))
    scores = [
        _with_best(score)
        for score in (*_passed(found, every), *_prices(every), *_tiers(found, every), *_whole(found, every))
    ]
    rows = [[*reversed(about(every[at], found)), *(score.values[at] for score in scores)] for at in order]
    caption = f"Main results of {len(cells)} cells, by model and agent (AgentMeter, Table 2)"
    table = Table(caption, [MODEL, AGENT, *(score.column for score in scores)], rows, grouped=True)
    note = Text(
        "Highlighted: the best value of a column, if no value in it is a bound. Whether its lead is clear stands under "
        "the four criteria."
    )
    return Section("main-table", "All scores in one table", [table, note])


def _passed(found: Findings, cells: Mapping[str, Mapping[str, Any]]) -> list[_Score]:
    """Return the columns of pass counts."""
    known = _known(found)
    tiers = lines(found.tiers)
    rates = {
        at: Value(f"{passes(cell['passes'])}/{cell['planned']}", float(cell["pass_rate"]), rate_span(cell))
        for at, cell in cells.items()
    }
    split = {at: "/".join(passes(tiers[at, tier]["passes"]) for tier in known) for at in cells}
    planned = "/".join(f"{tiers[next(iter(cells)), tier]['tasks']:g}" for tier in known)
    return [
        _Score(
            Column(
                "passed",
                "tasks passed / tasks planned; beneath it the rate's interval: Wilson's, or the bootstrap's "
                "where several attempts at a task count",
            ),
            max,
            rates,
        ),
        _Score(
            Column(f"P({'/'.join(known)})", f"tasks passed in each tier, of {planned} planned", text=True),
            None,
            {at: Value(text, text) for at, text in split.items()},
        ),
    ]


def _prices(cells: Mapping[str, Mapping[str, Any]]) -> list[_Score]:
    """Return the columns of tokens and USD per pass."""
    return [
        _Score(
            Column("tokens/pass", "tokens of all valid trials, divided by the passes among them"),
            min,
            {
                at: figure(cell["tokens_per_pass_least"], short)._replace(
                    text=bound_text(cell, "tokens_per_pass", short)
                )
                for at, cell in cells.items()
            },
        ),
        _Score(
            Column(
                "USD/pass", "USD of the same trials, divided by the same; beneath it the bootstrap interval"
            ),
            min,
            {
                at: figure(
                    cell["usd_per_pass_least"],
                    usd,
                    span(cell["usd_per_pass_low"], cell["usd_per_pass_high"], usd, " to "),
                )._replace(text=bound_text(cell, "usd_per_pass", usd))
                for at, cell in cells.items()
            },
        ),
    ]


def _tiers(found: Findings, cells: Mapping[str, Mapping[str, Any]]) -> list[_Score]:
    """Return a column for the score of each tier, which the paper calls SES, SMS and SHS."""
    tiers = lines(found.tiers)
    meaning = "TierScore, 0 to 1, over the tasks planned in the tier (eq. 7)"
    return [
        _Score(
            Column(f"score {tier}", "" if at else meaning),
            max,
            {cell: tier_part(tiers[cell, tier], "TierScore") for cell in cells},
        )
        for at, tier in enumerate(_known(found))
    ]


def _whole(found: Findings, cells: Mapping[str, Mapping[str, Any]]) -> list[_Score]:
    """Return the columns of AMS and Δbest."""
    gaps = gap_to_best(found.contenders)
    scores = {
        at: figure(cell["AMS"], beneath=span(cell["AMS_low"], cell["AMS_high"]))._replace(text=ams_text(cell))
        for at, cell in cells.items()
    }
    confidence = f"{found.scoring.confidence:.0%}"
    about_ams = (
        f"mean of the tier scores by their weights (eq. 8); beneath it the {confidence} bootstrap interval"
    )
    about_gap = (
        "AMS that the same model has with its best agent, less this; ~ where one of its scores is a bound"
    )
    bounded = {cells[at]["model"] for at, score in scores.items() if score.text.startswith(_BOUNDS)}
    distances = {
        at: value._replace(text=f"~{value.text}")
        if cells[at]["model"] in bounded and value.text != "-"
        else value
        for at, value in ((at, figure(float(gaps[at]))) for at in cells)
    }
    return [
        _Score(Column("AMS", about_ams), max, scores),
        _Score(Column("Δbest", about_gap), min, distances),
    ]


def _known(found: Findings) -> list[str]:
    """Return the tiers of the scoring that have planned tasks."""
    planned = found.tiers["tasks"].groupby("tier", sort=False).max()
    return [tier for tier in found.scoring.tiers if planned[tier]]


def _with_best(score: _Score) -> _Score:
    """Return the column with its best values marked, unless one of its values is a bound."""
    numbers = [each.order for each in score.values.values() if isinstance(each.order, float)]
    finite = [number for number in numbers if math.isfinite(number)]
    bounded = any(each.text.startswith(_BOUNDS) for each in score.values.values())
    if score.best is None or bounded or not finite:
        return score
    best = score.best(finite)
    marked = {
        at: each._replace(tone="best") if each.order == best else each for at, each in score.values.items()
    }
    return score._replace(values=marked)
