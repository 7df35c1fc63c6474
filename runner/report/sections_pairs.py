"""The section that compares every pair of cells, by each measure that ranks cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np

from metrics.uncertainty import FEWEST_TASKS, Draws, pairwise
from runner.records import Scoring
from runner.report.blocks import Block, Column, Section, Table, Text, Value
from runner.report.conclusions import headline, small_tiers
from runner.report.findings import Findings, part_of
from runner.report.sections_scores import figure
from runner.report.wording import counted, short, usd

_CELLS = 40
"""Most cells that are compared in pairs: 780 rows in each table."""


class Compared(NamedTuple):
    """A measure by which cells are compared in pairs."""

    statistic: str
    """Name of the statistic in `Draws`."""
    title: str
    style: str | Callable[[float], str] = ".3f"
    """Format of a lead."""


_MEASURES = (
    Compared("AMS", "AMS"),
    Compared("pass_rate", "pass rate"),
    Compared("mean_reward", "mean reward"),
    Compared("usd_per_pass", "USD/pass", usd),
    Compared("tokens_per_pass", "tokens/pass", short),
)


def pairs(found: Findings) -> Section | None:
    """Compare each pair of contenders on the same resampled tasks, by each measure that they have."""
    rivals, first = first_of(found, found.draws), headline(found.contenders)
    if len(rivals.cells) < 2:  # noqa: PLR2004 - a pair
        return None
    order = sorted(_MEASURES, key=lambda measure: measure.statistic != first)
    tables = [pair_table(rivals, measure, found) for measure in order if _says_something(rivals, measure)]
    count = len(rivals.cells) * (len(rivals.cells) - 1) // 2
    note = Text(
        f"No Holm p can be below {_least(found.scoring, count):.3g} with "
        f"{found.scoring.resamples} resamples, so the joint p decides: a step-down against the largest "
        "deviation of any pair in each resample (Westfall and Young). Each table is corrected for its own pairs alone: "
        "choose the measure before you look."
    )
    return Section("pairs", "Pair by pair", [*left_out(found), *tables, note])


def first_of(found: Findings, draws: Draws) -> Draws:
    """Return the part of these draws that is of the cells that are compared in pairs."""
    return part_of(draws, found.contenders.index[:_CELLS])


def left_out(found: Findings) -> list[Block]:
    """Return a sentence on the cells that are not compared in pairs, if there are any."""
    count = len(found.contenders)
    if count <= _CELLS:
        return []
    return [
        Text(
            f"Compared are the first {_CELLS} of {count} cells in the order of the leaderboard. The p values are "
            "corrected for the pairs of these, and not for their choice."
        )
    ]


def _says_something(draws: Draws, measure: Compared) -> bool:
    """Return whether at least two cells have the measure. Mean rewards that all equal pass rates do not count."""
    values = draws.observed[measure.statistic]
    if measure.statistic == "mean_reward" and np.allclose(values, draws.observed["pass_rate"]):
        return False
    return bool(np.isfinite(values).sum() > 1)


def pair_table(draws: Draws, measure: Compared, found: Findings) -> Table:
    """Return a table of the pairs of these cells by one measure, the surest pair first."""
    few = bool(small_tiers(found.trials, found.scoring))
    leads = pairwise(draws, measure.statistic, found.scoring.confidence)
    names = found.names
    rows = []
    for line in leads.sort_values(["p_joint", "p_holm"], kind="stable").to_dict("records"):
        word = _decided(line, found.scoring, few=few)
        decided = word == "yes"
        rows.append(
            [Value(names[line["left"]], names[line["left"]], tone="best" if decided else ""),
             Value(names[line["right"]], names[line["right"]]),
             *(figure(line[name], measure.style) for name in ("lead", "low", "high")),
             figure(line["wins"], ".1%"), figure(line["p_holm"], ".3g"), figure(line["p_joint"], ".3g"),
             Value(word, word)]
        )  # fmt: skip
    title = f"{measure.title[0].upper()}{measure.title[1:]}"
    caption = f"{title} of {counted(len(leads), 'pair')}, surest first"
    return Table(caption, _columns(measure.title, found.scoring, len(leads)), rows)


def _columns(measure: str, scoring: Scoring, pairs: int) -> tuple[Column, ...]:
    """Return the columns of the table of pairs."""
    return (
        Column("better", f"of the two, by {measure} on these tasks", text=True),
        Column("other", text=True),
        Column("lead", f"difference of their {measure}"),
        Column(
            "low",
            f"end of the lead's {scoring.confidence:.0%} interval, both on the same resampled tasks",
        ),
        Column("high"),
        Column("wins", f"share of {scoring.resamples} resamples in which the better is ahead"),
        Column("Holm p", f"two-sided, corrected for {'all ' if pairs > 1 else ''}{counted(pairs, 'pair')}"),
        Column("joint p", "corrected for all pairs by the largest deviation of any of them in a resample"),
        Column(
            "decided",
            "yes: the interval is above 0 and holds the lead, the joint p is at most 1 - confidence, and each tier "
            f"that counts has {FEWEST_TASKS} tasks or more",
            text=True,
        ),
    )


def _least(scoring: Scoring, pairs: int) -> float:
    """Return the smallest possible Holm p of the surest of `pairs`."""
    return min(2 * pairs / (scoring.resamples + 1), 1.0)


def _decided(line: Mapping[Hashable, Any], scoring: Scoring, *, few: bool) -> str:
    """Return whether a row of `pairwise` is decided, or why that is unknown."""
    limit = 1 - scoring.confidence + 1e-12
    if math.isnan(line["lead"]):
        return "-"
    if 1 / (scoring.resamples + 1) > limit:
        return "too few resamples"
    if few:
        return "too few tasks"
    held = 0 < line["low"] <= line["lead"] <= line["high"]
    return "yes" if held and line["p_joint"] <= limit else "no"
