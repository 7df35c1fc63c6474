"""Sections on the tools that agents wrote: cost, files, speed, robustness, and the phase in which cases ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import nan

import numpy as np
import pandas as pd

from metrics import tool_bench
from metrics.differential import Phase
from runner.benchmarks.cli_tool_bench.report import figures as tool_figures
from runner.report import figures
from runner.report.blocks import Block, Column, Picture, Section, Table, Text, Value, where
from runner.report.findings import Findings
from runner.report.sections_scores import Measure, cell_table, figure
from runner.report.wording import short, usd

_HUMAN = "human reference"
_OVERHEAD: tuple[tuple[str, str, str | Callable[[float], str], str], ...] = (
    ("steps", "steps", ".3g", "model calls answered: mean over these trials, then minimum and maximum"),
    ("prompt", "prompt", short, "input tokens, including caches and failed tries of the same trial"),
    ("completion", "completion", short, "output tokens"),
    ("usd", "USD", usd, "as charged, without unpriced trials"),
)  # fmt: skip
"""Name of a figure in `tool_bench.overhead`, its title, format and meaning."""
_PHASES = {
    Phase.INSTALL: "not installed",
    Phase.NOT_FOUND: "not found",
    Phase.CRASH: "exit code",
    Phase.SIDE_EFFECTS: "side effects",
    Phase.OUTPUT: "output",
    Phase.UNDECIDED: "undecided",
    Phase.PASSED: "passed",
}
"""Phase -> title of its column."""
_UNDECIDED = "cases whose reference varies in its output or side effects, and which agree in everything else"

of_tools = where(tool_bench.scored)
"""Decorator of sections on datasets that score tools."""


@of_tools
def overhead(found: Findings) -> Section | None:
    """Show steps, tokens and USD of a trial, and of one whose tool was built, as the paper's Table 3 does."""
    every, built = (tool_bench.overhead(found.trials, built=built) for built in (False, True))
    blocks: list[Block] = [
        _overhead("Steps and cost of a trial", "valid ones, of every attempt", every, found)
    ]
    if built.empty:
        blocks.append(Text("No tool was built."))
    else:
        counted = "valid ones whose tool was built, of every attempt"
        blocks.append(
            _overhead("Steps and cost of a trial whose tool was built (Table 3)", counted, built, found)
        )
    return Section("tool-overhead", "Tools: steps and cost", blocks)


def _overhead(caption: str, counted: str, table: pd.DataFrame, found: Findings) -> Table:
    """Return a table of steps, tokens and USD over these trials, and USD of their judge, if there is one."""
    measures = [Measure("trials", "trials", ".0f", f"{counted}: the denominator")]
    for name, title, style, meaning in _OVERHEAD:
        mean = Measure(title, f"{name}_mean", style, meaning)
        measures += [mean, Measure("min", f"{name}_min", style), Measure("max", f"{name}_max", style)]
    if (table["unpriced"] > 0).any():
        measures.append(Measure("unpriced", "unpriced", ".0f", "of the trials"))
    if (table["judge_max"] > 0).any():
        about_judge = "mean cost of the judge model in a trial, apart from the agent's"
        measures.append(Measure("judge's USD", "judge_mean", usd, about_judge))
    return cell_table(caption, measures, table, found)


@of_tools
def files(found: Findings) -> Section | None:
    """Show how many files were written, compared with the human reference (RQ4, the paper's Figure 5)."""
    counts = tool_bench.sizes(found.trials, "files")
    own = [
        (name, counts[at])
        for at, name in found.names.items()
        if at in counts and at in found.contenders.index
    ]
    sizes = [(name, values) for name, values in [(_HUMAN, counts[None]), *own] if len(values)]
    if not sizes:
        return None
    columns = [
        Column("whose", text=True),
        Column("workspaces", "valid trials whose files were counted; or references"),
    ]
    columns += [Column(head) for head in ("min", "lower quartile", "median", "upper quartile", "max")]
    rows = [
        [Value(name, float(at)), figure(len(values), ".0f"),
         *(figure(float(end), ".3g") for end in np.quantile(values, (0, 0.25, 0.5, 0.75, 1)))]
        for at, (name, values) in enumerate(sizes)
    ]  # fmt: skip
    picture = Picture(
        "tool_files",
        "Files of each workspace: dots, with median and quartiles; hidden files and dependencies do not count. The "
        f"axis ends at {tool_figures.MOST_FILES}; a star marks larger workspaces.",
        "Distributions of the number of files; their quartiles are in the table beneath.",
        partial(tool_figures.files, sizes),
    )
    blocks: list[Block] = [picture, Table("Files of a tool", columns, rows), *_structure(found)]
    if not len(counts[None]):
        blocks.append(Text("The files of these references have not been counted."))
    return Section("tool-files", "Tools: files", blocks)


def _structure(found: Findings) -> list[Block]:
    """Return a table of lines and depth; nothing if they were not measured."""
    whose = {None: _HUMAN, **{at: found.names[at] for at in found.contenders.index}}
    lengths, depths = (tool_bench.sizes(found.trials, what) for what in ("lines", "depth"))
    rows = [
        [Value(name, float(place)),
         *(figure(value, short) for value in _median_and_max(lengths, at)),
         *(figure(value, ".3g") for value in _median_and_max(depths, at))]
        for place, (at, name) in enumerate(whose.items()) if any(len(sizes.get(at, ())) for sizes in (lengths, depths))
    ]  # fmt: skip
    columns = [
        Column("whose", text=True),
        Column("lines, median", "of the files counted above; for a reference, of its code alone"),
        Column("max"),
        Column("depth, median", "folders above the deepest of those files"),
        Column("max"),
    ]
    return [Table("Size and structure of a tool", columns, rows)] if rows else []


def _median_and_max(sizes: Mapping[str | None, np.ndarray], at: str | None) -> tuple[float, float]:
    """Return median and maximum; NaN if there are no values."""
    values = sizes.get(at, ())
    return (float(np.median(values)), float(np.max(values))) if len(values) else (nan, nan)


@of_tools
def runtimes(found: Findings) -> Section | None:
    """Show the speed of the tools against their references, over all agents and by agent (the paper's Table 4)."""
    cells = found.contenders
    trials = found.trials[found.trials["cell"].isin(cells.index)]
    table = tool_bench.runtimes(trials)
    if table.empty:
        return None
    absent = [name for at, name in found.names.items() if at in cells.index and at not in table.index]
    blocks: list[Block] = [_runtimes("Run time of a case, on common tasks", "every cell shown", table, found)]
    if len(set(cells["agent"])) > 1:
        by_agent = pd.concat([tool_bench.runtimes(own) for _, own in trials.groupby("agent")])
        caption = "Run time of a case, on the tasks common to an agent's cells (Table 4)"
        blocks.append(_runtimes(caption, "every cell of the same agent", by_agent, found))
    if absent:
        blocks.append(Text(f"Not shown, as their tools finished no case: {'; '.join(absent)}."))
    return Section("tool-runtime", "Tools: speed", blocks)


def _runtimes(caption: str, common: str, table: pd.DataFrame, found: Findings) -> Table:
    """Return a table of run times over the tasks that are common to these cells."""
    table = table.assign(**{side: 1000 * table[side] for side in ("reference", "candidate")})  # in ms
    measures = (
        Measure("tasks", "tasks", ".0f",
                f"in which {common} has cases that both sides finished: the denominator"),
        Measure("reference, ms", "reference", ".1f",
                "mean over the cases that this cell's tool finished too"),
        Measure("tool, ms", "candidate", ".1f", "mean of the same cases"),
        Measure("relative", "relative", ".2f",
                "tool / reference; below 1 the tool is faster. The reference's times are stored, and may be from "
                "another hour"),
        Measure("CPU", "cpu", ".2f",
                "processor time of tool / of reference: median over a task's cases, mean over the tasks"),
    )  # fmt: skip
    return cell_table(caption, measures, table, found)


@of_tools
def robustness(found: Findings) -> Section | None:
    """Show cases that should succeed, and cases that should fail (section 5.1)."""
    succeeds = "share of the reference's successes in which the tool succeeds too; mean over trials"
    fails = "share of the reference's failures in which the tool fails too, by itself; mean over trials"
    trials = "valid ones whose task has such cases: the denominator of the column before"
    measures = (
        Measure("positive", "positive", ".1%", succeeds),
        Measure("trials", "positive_trials", ".0f", trials),
        Measure("negative", "negative", ".1%", fails),
        Measure("trials", "negative_trials", ".0f"),
    )
    table = cell_table("Agreement with the reference", measures, tool_bench.robustness(found.trials), found)
    return Section("tool-robustness", "Tools: good and bad input", [table])


@of_tools
def funnel(found: Findings) -> Section | None:
    """Show in which phase the cases of each cell ended."""
    counts = tool_bench.funnel(found.trials)
    counts = counts.loc[[at for at in found.cells.index if at in counts.index]]
    counts = counts[counts.sum(axis=1) > 0]
    if counts.empty:
        return None
    if not counts[Phase.UNDECIDED].any():
        counts = counts.drop(columns=Phase.UNDECIDED)
    totals = counts.sum(axis=1)
    shares = counts.div(totals, axis=0)
    names = [_PHASES[Phase(phase)] for phase in counts.columns]
    measures = [Measure("cases", "cases", ".0f", "valid ones of all valid trials: the denominator")]
    measures += [
        Measure(_PHASES[phase], phase, ".1%", _UNDECIDED if phase is Phase.UNDECIDED else "")
        for phase in map(Phase, counts.columns)
    ]
    table = cell_table("Where cases ended", measures, shares.assign(cases=totals), found)
    picture = Picture(
        "tool_funnel",
        "Share of valid cases by the phase in which they ended: the first that differs from the reference.",
        "Bars of shares by phase; their values are in the table beneath.",
        partial(figures.stacked, shares.rename(index=found.names), names, "valid cases", ".0%", 1.0),
    )
    blocks: list[Block] = [picture, table]
    if quarantined := tool_bench.unstable(found.trials):
        tasks = ", ".join(f"{task} ({count})" for task, count in quarantined.items())
        blocks.append(
            Text(
                f"Cases whose reference varies count only for what it does the same each time, by task: {tasks}."
            )
        )
    return Section("tool-funnel", "Tools: where cases ended", blocks)
