"""Sections on how agents work, from their model calls (NL2Repo-Bench, section 4.3), for any sweep with models."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pandas as pd

from metrics import behaviour
from runner.report import figures, figures_behaviour
from runner.report.blocks import Block, Column, Picture, Section, Table, Text, Value, where
from runner.report.composed_cells import meanings_of_endings
from runner.report.findings import Findings
from runner.report.leaderboard import lines
from runner.report.sections_scores import Measure, cell_table, figure
from runner.report.wording import short

_MEANING = {
    "edit_test": "edits and tests in turn: what was written is tested at once",
    "navigation": "looking on and on: ls, cat, grep, views and searches, with no edit, test or run between",
    "blind_editing": "edit upon edit, with nothing tested, run or looked at between",
}

_PIECES = {
    "edit": ("edit",),
    "execute": ("execute",),
    "plan": ("plan",),
    "look": ("read", "search"),
    "other": ("finish", "other"),
}
"""Piece of a bar -> its kinds of tool calls: as many pieces as can be told apart."""


where_recorded = where(behaviour.recorded)
"""Decorator of sections that need tool calls by kind."""


@where_recorded
def turns(found: Findings) -> Section:
    """Show turns and endings (Table 6, Figure 5)."""
    ended = behaviour.endings(found.trials)[["early_stop", "non_finish"]]
    values = behaviour.turns(found.trials, found.scoring.attempts).join(ended)
    early = f"share that the agent itself finished in fewer than {behaviour.EARLY} turns"
    never = "share that it never finished: it halted, or was ended by a limit or an error"
    measures = [
        Measure("trials", "trials", ".0f", "valid ones, every attempt: the denominator"),
        Measure("turns", "mean", ".1f", "model calls answered, mean of a trial"),
        Measure("SD", "sd", ".1f", "over trials, n - 1"),
        Measure("max", "max", ".0f"),
        Measure("score", "score", ".1%", "mean reward over the tasks planned"),
        Measure("turns/score", "turns_per_score", ".1f", "mean turns divided by the score"),
        Measure("early stop", "early_stop", ".1%", early),
        Measure("non-finish", "non_finish", ".1%", never),
    ]
    shares = ended.set_axis(["early stop", "non-finish"], axis=1)
    picture = Picture(
        "behaviour_endings",
        f"Early stop: {early}. Non-finish: {never}. Of each cell's valid trials.",
        "Bars of the shares of trials that ended early and that the agent did not finish; the table has their values.",
        partial(figures.grouped_bars, _named(shares, found), ".0%", 1.0, "valid trials"),
    )
    blocks: list[Block] = [cell_table("Turns", measures, values, found), picture, _endings_by_agent(found)]
    return Section("behaviour-turns", "Behaviour: turns and endings", blocks)


def _endings_by_agent(found: Findings) -> Table:
    """Return a table of how the trials of each agent ended, and of what its own ending means."""
    meanings = meanings_of_endings(found.folder)
    columns = [
        Column("agent", text=True),
        Column("trials", "valid ones with any model: the denominator"),
        Column("finished", "by the agent itself"),
        Column("halted", "it exited with code 0 and had not said that it was done"),
        Column("limit", "time or budget ended it"),
        Column("error"),
        Column("non-finish", "halted, limit and error together"),
        Column("what finishing means", text=True),
    ]
    rows = [
        [
            Value(str(agent), str(agent)),
            figure(line["trials"], ".0f"),
            *(
                figure(line[name], ".1%")
                for name in ("finished", "halted", "limited", "failed", "non_finish")
            ),
            Value(meanings.get(str(agent), "The sweep does not say.")),
        ]
        for agent, line in lines(behaviour.endings_by_agent(found.trials)).items()
    ]
    return Table("Endings by agent", columns, rows)


@where_recorded
def tools(found: Findings) -> Section:
    """Show tool calls by kind and by name, their shares, and their correlation with the score (4.3.1, 4.3.4)."""
    each = "calls of this kind, mean of a valid trial; so for every kind"
    measures = [
        Measure("trials", "trials", ".0f", "valid ones"),
        *(Measure(kind, kind, ".1f", each if kind == "edit" else "") for kind in (*behaviour.KINDS, "total")),
    ]
    calls = cell_table("Tool calls (Table 7)", measures, behaviour.tool_calls(found.trials), found)
    by_kind = behaviour.correlations(found.trials, found.scoring.attempts)
    by_name = behaviour.correlations_by_name(found.trials, found.scoring.attempts)
    tables = [
        _correlated("Tool calls and score", "kind", by_kind),
        _correlated("Tool calls by name and score (Table 5)", "tool", by_name),
    ]
    blocks = [calls, *_by_name(found), *_shares(found), *tables, _reads(found)]
    return Section("behaviour-tools", "Behaviour: tool calls", blocks)


def _by_name(found: Findings) -> Iterator[Block]:
    """Yield picture and table of the calls by the names of the tools (Figure 4)."""
    values = behaviour.calls_by_name(found.trials)
    if values.empty or not len(values.columns):
        return
    yield Picture(
        "behaviour_tools",
        f"Calls of the {len(values.columns)} tools that were called most, mean of a valid trial.",
        "A square for each cell and tool with its number of calls; the table has their values.",
        partial(figures_behaviour.counts, _named(values, found)),
    )
    measures = [Measure(str(name), str(name), ".1f") for name in values.columns]
    yield cell_table("Tool calls by name, mean of a valid trial (Figure 4)", measures, values, found)


def _shares(found: Findings) -> Iterator[Block]:
    """Yield picture and table of the kinds as shares of all calls (Figure 6), and edits for each execution."""
    values = behaviour.shares(found.trials)
    if values.empty:
        return
    pieces = pd.DataFrame(
        {name: values[list(kinds)].sum(axis=1) for name, kinds in _PIECES.items()}, index=values.index
    )
    yield Picture(
        "behaviour_shares",
        "Kinds of tool calls, as shares of all calls of a cell. Look: reading and searching.",
        "Bars that divide each cell's calls into kinds; the table has the shares.",
        partial(figures.stacked, _named(pieces, found), list(_PIECES), "tool calls", ".0%", 1.0),
    )
    each = "share of all calls; so for every kind"
    measures = [
        Measure("calls", "calls", ".0f", "all calls of the valid trials: the denominator"),
        *(Measure(kind, kind, ".1%", each if kind == "edit" else "") for kind in behaviour.KINDS),
        Measure("edit/execute", "edit_execute", ".2f", "edits for each execution (section 4.3.4)"),
    ]
    yield cell_table("Shares of tool calls (Figure 6)", measures, values, found)


@where_recorded
def effort(found: Findings) -> Section | None:
    """Show tool calls against the score (Figure 7), and the score by context window (Figure 8)."""
    attempts = found.scoring.attempts
    calls = behaviour.calls_and_score(found.trials, attempts)
    calls = calls[calls["score"].notna()]
    if calls.empty:
        return None
    numbers = {
        cell: str(at) for at, cell in enumerate((name for name in found.names if name in calls.index), 1)
    }
    picture = Picture(
        "behaviour_calls",
        "Score against tool calls; numbers are those of the table. Dashed: what a call earns in the cell with the best "
        "score; above the line it earns more.",
        "Scatter of score and tool calls; the table has their values.",
        partial(figures_behaviour.calls_and_score, calls.assign(mark=calls.index.map(numbers))),
    )
    measures = [
        Measure("no.", "number", ".0f", "in the picture"),
        Measure("calls", "calls", ".1f", "tool calls, mean of a valid trial"),
        Measure("score", "score", ".1%", "mean reward over the tasks planned"),
        Measure("score/100 calls", "score_per_100_calls", ".1%"),
    ]
    numbered = calls.assign(number=calls.index.map(numbers).astype(float))
    table = cell_table("Tool calls and score (Figure 7)", measures, numbered, found)
    windows = behaviour.windows(found.trials, attempts)
    blocks = [picture, table, *_windows(windows[windows["score"].notna()], found)]
    return Section("behaviour-effort", "Behaviour: calls, context and score", blocks)


def _windows(values: pd.DataFrame, found: Findings) -> Iterator[Block]:
    """Yield picture and table of the score by the model's context window (Figure 8)."""
    if values.empty:
        yield Text("The context windows of these models are not known.")
        return
    ordered = values.sort_values(["context_window", "score"], ascending=False)
    named = _named(ordered[["score"]], found, keep_order=True)
    labels = [
        f"{name} · {short(window)}"
        for name, window in zip(named.index, ordered["context_window"], strict=True)
    ]
    yield Picture(
        "behaviour_windows",
        "Score of each cell, by the context window of its model in tokens, the widest first.",
        "Bars of the score in the order of context windows; the table has their values.",
        partial(figures.grouped_bars, named.set_axis(labels), ".1%", figures.room(named["score"]), "score"),
    )
    measures = [
        Measure("context window", "context_window", ",.0f", "of the model, in tokens"),
        Measure("score", "score", ".1%", "mean reward over the tasks planned"),
    ]
    yield cell_table("Score by context window (Figure 8)", measures, values, found)


def _named(values: pd.DataFrame, found: Findings, *, keep_order: bool = False) -> pd.DataFrame:
    """Return values by the names of their cells, best first unless their order is to be kept."""
    order = values.index if keep_order else [cell for cell in found.names if cell in values.index]
    return values.loc[order].rename(index=found.names)


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
        partial(figures_behaviour.transitions, {who: table.loc[cell] for cell, who in order.items()}),
    )
