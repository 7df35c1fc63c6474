"""Sections on how agents work, from their model calls (NL2Repo-Bench, section 4.3), for any sweep with models."""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd

from metrics import behaviour
from runner.report import figures
from runner.report.blocks import Block, Column, Picture, Section, Table, Text, Value, where
from runner.report.findings import Findings
from runner.report.leaderboard import lines
from runner.report.sections_scores import Measure, cell_table, figure

_MEANING = {
    "edit_test": "edits and tests in turn: what was written is tested at once",
    "navigation": "looking on and on: ls, cat, grep, views and searches, with no edit, test or run between",
    "blind_editing": "edit upon edit, with nothing tested, run or looked at between",
}


where_recorded = where(behaviour.recorded)
"""Decorator of sections that need tool calls by kind."""


@where_recorded
def turns(found: Findings) -> Section:
    """Show turns and endings (Table 6, Figure 5)."""
    ended = behaviour.endings(found.trials)[["early_stop", "non_finish"]]
    values = behaviour.turns(found.trials, found.scoring.attempts).join(ended)
    measures = [
        Measure("trials", "trials", ".0f", "valid ones, every attempt: the denominator"),
        Measure("turns", "mean", ".1f", "model calls answered, mean of a trial"),
        Measure("SD", "sd", ".1f", "over trials, n - 1"),
        Measure("max", "max", ".0f"),
        Measure("score", "score", ".1%", "mean reward over the tasks planned"),
        Measure("turns/score", "turns_per_score", ".1f", "mean turns divided by the score"),
        Measure("early stop", "early_stop", ".1%",
                f"share that the agent itself finished in fewer than {behaviour.EARLY} turns"),
        Measure("non-finish", "non_finish", ".1%",
                "share that it never finished: it halted, or was ended by a limit or an error"),
    ]  # fmt: skip
    note = (
        "An agent without a tool to say that it is done is taken to have finished when it exits well: one that stops "
        "to ask looks the same."
    )
    table = cell_table("Turns", measures, values, found)
    return Section("behaviour-turns", "Behaviour: turns and endings", [table, Text(note)])


@where_recorded
def tools(found: Findings) -> Section:
    """Show tool calls by kind and by name, and their correlation with the score (Tables 5, 7)."""
    each = "calls of this kind, mean of a valid trial; so for every kind"
    measures = [
        Measure("trials", "trials", ".0f", "valid ones"),
        *(Measure(kind, kind, ".1f", each if kind == "edit" else "") for kind in (*behaviour.KINDS, "total")),
    ]
    calls = cell_table("Tool calls", measures, behaviour.tool_calls(found.trials), found)
    by_kind = behaviour.correlations(found.trials, found.scoring.attempts)
    by_name = behaviour.correlations_by_name(found.trials, found.scoring.attempts)
    tables = [
        _correlated("Tool calls and score", "kind", by_kind),
        _correlated("Tool calls by name and score (Table 5)", "tool", by_name),
    ]
    return Section("behaviour-tools", "Behaviour: tool calls", [calls, *tables, _reads(found)])


def _correlated(title: str, first: str, table: pd.DataFrame) -> Table:
    """Return a table of correlations with the score across cells."""
    return Table(
        title,
        [Column(first, text=True), Column("r", "Pearson, across cells, of mean calls with mean reward"),
         Column("cells"), Column("unused", "cells that never make such a call")],
        [[Value(name, name), figure(line["r"], ".3f"), *(figure(line[key], ".0f") for key in ("cells", "unused"))]
         for name, line in lines(table).items()],
    )  # fmt: skip


def _reads(found: Findings) -> Table | Text:
    """Return a table of repeated reads (AgentMeter, section 1), or why there is none."""
    values = behaviour.reads(found.trials)
    if values.empty:
        return Text("Repeated reads were not counted when these trials ran.")
    measures = [
        Measure("trials", "trials", ".0f", "valid ones whose reads were counted: the denominator"),
        Measure(
            "reads",
            "reads",
            ".1f",
            "calls of the kind read, or terminal calls that only print files; mean of a trial",
        ),
        Measure(
            "repeated",
            "repeated",
            ".1f",
            "those with the tool and arguments of an earlier one; mean of a trial",
        ),
        Measure("share", "share", ".1%", "repeated reads / reads, over all these trials"),
        Measure("most", "most", ".0f", "repeated reads in one trial, at most"),
    ]
    return cell_table("Repeated reads of files", measures, values, found)


@where_recorded
def workflow(found: Findings) -> Section:
    """Show transitions between actions and between tools by name, and three patterns (section 4.3.6)."""
    values = behaviour.patterns(found.trials)
    if values.empty:
        nothing = Text("What tool calls did was not recorded when these trials ran.")
        return Section("behaviour-workflow", "Behaviour: what follows what", [nothing])
    measures = [
        Measure("trials", "trials", ".0f", "valid ones whose actions were recorded"),
        Measure("transitions", "transitions", ".0f", "pairs of consecutive actions: the denominator"),
        *(Measure(name.replace("_", " "), name, ".1%", _MEANING[name]) for name in behaviour.PATTERNS),
    ]
    blocks: list[Block] = [
        _matrix("transitions", "actions", behaviour.transitions(found.trials), found),
        cell_table("Patterns", measures, values, found),
        Text(
            "An action is what a call did, whatever its tool is called: a view looks, and so does ls in a terminal; a "
            "here-document edits. Patterns are over actions."
        ),
    ]
    names = behaviour.transitions_by_name(found.trials)
    if not names.empty:
        blocks.append(_matrix("names", "calls by the names of the tools", names, found))
    return Section("behaviour-workflow", "Behaviour: what follows what", blocks)


def _matrix(name: str, what: str, table: pd.DataFrame, found: Findings) -> Picture:
    """Return a picture of transitions with a panel for each cell."""
    cells = set(table.index.get_level_values("cell"))
    order: dict[Any, str] = {cell: who for cell, who in found.names.items() if cell in cells}
    return Picture(
        f"behaviour_{name}",
        f"Share of the {what} (rows) that each one (columns) follows, a panel a cell.",
        f"Matrices of transitions between {what}.",
        partial(figures.transitions, {who: table.loc[cell] for cell, who in order.items()}),
    )
