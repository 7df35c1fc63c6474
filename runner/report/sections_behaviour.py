"""Sections on how agents work, from the gateway's record (NL2Repo-Bench, section 4.3), of any sweep with models."""

from __future__ import annotations

from functools import partial

from metrics import behaviour
from runner.report import figures
from runner.report.blocks import Column, Picture, Section, Table, Text, Value, where
from runner.report.findings import Findings
from runner.report.leaderboard import lines
from runner.report.sections_scores import AGENT, MODEL, about, figure

_MEANING = {
    "edit_test": "edit and execute in turn: what was written is tried at once",
    "navigation": "reading, searching and looking about by commands, with no edit between",
    "blind_editing": "edit upon edit, with nothing run between",
}


of_recorded = where(behaviour.recorded)
"""The same section, only where tool calls were recorded by kind."""


@of_recorded
def turns(found: Findings) -> Section:
    """Turns and endings (Table 6, Figure 5)."""
    values, ends = (
        lines(behaviour.turns(found.trials, found.scoring.attempts)),
        lines(behaviour.endings(found.trials)),
    )
    columns = [
        AGENT, MODEL, Column("trials", "valid ones, every attempt: the denominator"),
        Column("turns", "model calls answered, mean of a trial"), Column("SD", "over trials, n - 1"), Column("max"),
        Column("score", "mean reward over the tasks planned"), Column("turns/score", "mean turns divided by the score"),
        Column("early stop", f"share that the agent itself finished in fewer than {behaviour.EARLY} turns"),
        Column("non-finish", "share that it never finished: it halted, or was ended by a limit or an error"),
    ]  # fmt: skip
    rows = [
        [*about(cell, found), figure(values[at]["trials"], ".0f"), figure(values[at]["mean"], ".1f"),
         figure(values[at]["sd"], ".1f"), figure(values[at]["max"], ".0f"), figure(values[at]["score"], ".1%"),
         figure(values[at]["turns_per_score"], ".1f"), figure(ends[at]["early_stop"], ".1%"),
         figure(ends[at]["non_finish"], ".1%")]
        for at, cell in lines(found.cells).items() if at in values
    ]  # fmt: skip
    note = (
        "An agent without a tool to say that it is done is taken to have finished when it exits well: one that stops "
        "to ask looks the same."
    )
    return Section(
        "behaviour-turns", "Behaviour: turns and endings", [Table("Turns", columns, rows), Text(note)]
    )


@of_recorded
def tools(found: Findings) -> Section:
    """Tool calls by kind and their correlation with the score (Tables 5, 7)."""
    values = lines(behaviour.tool_calls(found.trials))
    kinds = (*behaviour.KINDS, "total")
    heads = [
        Column(kind, "calls of this kind, mean of a valid trial; so for every kind" if kind == "edit" else "")
        for kind in kinds
    ]
    rows = [
        [*about(cell, found), figure(values[at]["trials"], ".0f"), *(figure(values[at][kind], ".1f") for kind in kinds)]
        for at, cell in lines(found.cells).items() if at in values
    ]  # fmt: skip
    calls = Table("Tool calls", [AGENT, MODEL, Column("trials", "valid ones"), *heads], rows)
    found_r = lines(behaviour.correlations(found.trials, found.scoring.attempts))
    correlated = Table(
        "Tool calls and score",
        [Column("kind", text=True), Column("r", "Pearson, across cells, of mean calls with mean reward"),
         Column("cells"), Column("unused", "cells that never call such a tool")],
        [[Value(kind, kind), figure(of["r"], ".3f"), figure(of["cells"], ".0f"), figure(of["unused"], ".0f")]
         for kind, of in found_r.items()],
    )  # fmt: skip
    return Section("behaviour-tools", "Behaviour: tool calls", [calls, correlated])


@of_recorded
def workflow(found: Findings) -> Section:
    """Transitions between kinds of tools, and three patterns (section 4.3.6)."""
    table, names = behaviour.transitions(found.trials), found.names
    values = lines(behaviour.patterns(found.trials))
    order = [cell for cell in found.cells.index if cell in values]
    picture = Picture(
        "behaviour_transitions",
        "Share of the tool calls of a kind (rows) that a call of each kind (columns) follows, a panel a cell.",
        "Matrices of transitions between kinds of tools; the shares of three patterns are in the table beneath.",
        partial(figures.transitions, {names[cell]: table.loc[cell] for cell in order}),
    )
    columns = [AGENT, MODEL, Column("transitions", "pairs of consecutive calls: the denominator"),
               *(Column(name.replace("_", " "), _MEANING[name]) for name in behaviour.PATTERNS)]  # fmt: skip
    rows = [
        [*about(cell, found), figure(values[at]["transitions"], ".0f"),
         *(figure(values[at][name], ".1%") for name in behaviour.PATTERNS)]
        for at, cell in lines(found.cells).items() if at in values
    ]  # fmt: skip
    return Section(
        "behaviour-workflow", "Behaviour: what follows what", [picture, Table("Patterns", columns, rows)]
    )
