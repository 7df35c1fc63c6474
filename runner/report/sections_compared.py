"""Sections on results of other jobs: comparisons, and other scorings of the same trials."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from runner.report.blocks import Column, Section, Table, Text, Value
from runner.report.comparison import current_comparisons
from runner.report.csv_cells import read_cell
from runner.report.findings import Findings
from runner.report.leaderboard import lines
from runner.report.rescoring import current_ranking
from runner.report.sections_scores import AGENT, MODEL, about, figure
from runner.report.trial_sources import digest
from runner.report.wording import number
from runner.terminal.escaping import one_line

_TOP = {True: "same", False: "differs", None: "-"}


def agreement(found: Findings) -> Section | None:
    """Show the results of `job=compare` with this sweep on the left."""
    compared = list(current_comparisons(found.folder, lambda: digest(found.trials, found.scoring)).values())
    if not compared:
        return None
    columns = (
        Column("left", text=True),
        Column("right", text=True),
        Column("cells", "with a score on both sides: the denominator of this row"),
        Column("Spearman", "correlation of ranks, ties at the mean of theirs"),
        Column("Kendall", "tau-b"),
        Column("best", "whether the best cell is the same", text=True),
        Column("best three", "whether they are the same set", text=True),
        Column("MAE", "mean absolute difference of the scores, in their unit"),
    )
    rows = []
    for each in compared:
        agreed = {name: math.nan if value is None else value for name, value in each.agreement.items()}
        tops = [Value(_TOP[each.agreement[name]]) for name in ("top1", "topk")]
        figures = [figure(agreed[name]) for name in ("spearman", "kendall")]
        count = figure(agreed["cells"], ".0f")
        rows.append([_side(each.left), _side(each.right), count, *figures, *tops, figure(agreed["mae"])])
    whys = sorted({each.agreement["why"] for each in compared if each.agreement["why"]})
    table = Table("This sweep against others, or by one metric against another", columns, rows)
    return Section("agreement", "Agreement", [table, *(Text(f"Missing above: {why}.") for why in whys)])


def _side(side: Mapping[str, Any]) -> Value:
    tasks = "" if side["tasks"] is None else f", {len(side['tasks'])} tasks"
    name = f"{side['source']} by {side['metric']}{tasks}"
    return Value(name, name, side["scoring"])


def sensitivity(found: Findings) -> Section | None:
    """Show the result of `job=sensitivity`: ranks of the cells under other scorings."""
    files = current_ranking(found.folder, lambda: digest(found.trials, found.scoring))
    if not files:
        return None
    table = pd.read_csv(files[0], dtype={"cell": str, "scoring": str})
    places = table.map(read_cell).to_dict("records")
    ranks = {(place["cell"], place["scoring"]): place for place in places}
    scorings = list(dict.fromkeys(place["scoring"] for place in places))
    columns = [AGENT, MODEL, *(Column(scoring) for scoring in scorings)]
    rows = [
        [*about(cell, found), *(_place(ranks[one_line(name), scoring]) for scoring in scorings)]
        for name, cell in lines(found.contenders).items()
    ]
    note = Text("Ranks by AMS within a dataset, 1 is best, ties share the smaller; beneath them the AMS.")
    return Section("sensitivity", "Under other scorings", [Table("Rank by scoring", columns, rows), note])


def _place(place: Mapping[Any, Any]) -> Value:
    return figure(place["rank"], ".0f", number(place["AMS"], ".3f"))
