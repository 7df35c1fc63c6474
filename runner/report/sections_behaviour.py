"""Sections on how agents work, from their model calls (NL2Repo-Bench, section 4.3), for any sweep with models."""

from __future__ import annotations

from functools import partial

from metrics import behaviour
from runner.report import figures
from runner.report.blocks import Column, Picture, Section, Table, Text, Value, where
from runner.report.findings import Findings
from runner.report.leaderboard import lines
from runner.report.sections_scores import Measure, cell_table, figure

_MEANING = {
    "edit_test": "edit and execute in turn: what was written is tried at once",
    "navigation": "reading, searching and looking about by commands, with no edit between",
    "blind_editing": "edit upon edit, with nothing run between",
}


where_recorded = where(behaviour.recorded)
"""Decorator for sections that need tool calls by kind."""


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
    """Show tool calls by kind and their correlation with the score (Tables 5, 7)."""
    each = "calls of this kind, mean of a valid trial; so for every kind"
    measures = [
        Measure("trials", "trials", ".0f", "valid ones"),
        *(Measure(kind, kind, ".1f", each if kind == "edit" else "") for kind in (*behaviour.KINDS, "total")),
    ]
    calls = cell_table("Tool calls", measures, behaviour.tool_calls(found.trials), found)
    correlations = lines(behaviour.correlations(found.trials, found.scoring.attempts))
    correlated = Table(
        "Tool calls and score",
        [Column("kind", text=True), Column("r", "Pearson, across cells, of mean calls with mean reward"),
         Column("cells"), Column("unused", "cells that never call such a tool")],
        [[Value(kind, kind), figure(line["r"], ".3f"), *(figure(line[name], ".0f") for name in ("cells", "unused"))]
         for kind, line in correlations.items()],
    )  # fmt: skip
    return Section("behaviour-tools", "Behaviour: tool calls", [calls, correlated, _reads(found)])


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
    """Show transitions between kinds of tools, and three patterns (section 4.3.6)."""
    table, names = behaviour.transitions(found.trials), found.names
    values = behaviour.patterns(found.trials)
    order = [cell for cell in found.cells.index if cell in values.index]
    picture = Picture(
        "behaviour_transitions",
        "Share of the tool calls of a kind (rows) that a call of each kind (columns) follows, a panel a cell.",
        "Matrices of transitions between kinds of tools; the shares of three patterns are in the table beneath.",
        partial(figures.transitions, {names[cell]: table.loc[cell] for cell in order}),
    )
    measures = [
        Measure("transitions", "transitions", ".0f", "pairs of consecutive calls: the denominator"),
        *(Measure(name.replace("_", " "), name, ".1%", _MEANING[name]) for name in behaviour.PATTERNS),
    ]
    patterns = cell_table("Patterns", measures, values, found)
    return Section("behaviour-workflow", "Behaviour: what follows what", [picture, patterns])
