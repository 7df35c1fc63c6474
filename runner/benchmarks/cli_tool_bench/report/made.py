"""Sections on CLI-Tool-Bench's tools: their cost, files, speed and robustness, and where they fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import nan

import numpy as np

from metrics import tool_bench
from metrics.differential import Phase
from runner.benchmarks.cli_tool_bench.report import figures as figures_tools
from runner.report import figures
from runner.report.blocks import Block, Column, Picture, Section, Table, Text, Value, where
from runner.report.findings import Findings
from runner.report.leaderboard import lines
from runner.report.sections_scores import AGENT, MODEL, Measure, about, cell_table, figure
from runner.report.wording import short, usd

_HUMAN = "human reference"
_OVERHEAD: tuple[tuple[str, str, str | Callable[[float], str], str], ...] = (
    ("steps", "steps", ".3g", "model calls answered, mean over the cell's valid trials; then the least and the most"),
    ("prompt", "prompt", short, "tokens of input, caches included; those of spoiled tries of the same trial too"),
    ("completion", "completion", short, "tokens of output"),
    ("usd", "USD", usd, "as charged; unpriced trials are in none of the three"),
)  # fmt: skip
"""Name of a figure in `tool_bench.overhead`, its title, how it is written and what it means."""
_ENDS = {
    Phase.INSTALL: "not installed",
    Phase.NOT_FOUND: "not found",
    Phase.CRASH: "exit code",
    Phase.SIDE_EFFECTS: "side effects",
    Phase.OUTPUT: "output",
    Phase.UNDECIDED: "undecided",
    Phase.PASSED: "passed",
}

_UNDECIDED = "right in all that the reference does the same each time, which its output or effects are not"

of_tools = where(tool_bench.scored)


@of_tools
def overhead(found: Findings) -> Section | None:
    """Show steps, tokens and USD of a trial (the paper's Table 3), and USD of its judge, if there is one."""
    table = tool_bench.overhead(found.trials)
    measures = [Measure("trials", "trials", ".0f", "valid ones, every attempt: the denominator")]
    for name, title, style, meaning in _OVERHEAD:
        mean = Measure(title, f"{name}_mean", style, meaning)
        measures += [mean, Measure("min", f"{name}_min", style), Measure("max", f"{name}_max", style)]
    if (table["unpriced"] > 0).any():
        measures.append(Measure("unpriced", "unpriced", ".0f", "of the trials"))
    if (table["judge_max"] > 0).any():
        about_judge = "mean of a trial's questions to it, apart from the agent's"
        measures.append(Measure("judge's USD", "judge_mean", usd, about_judge))
    return Section(
        "tool-overhead", "Tools: steps and cost", [cell_table("What a trial took", measures, table, found)]
    )


@of_tools
def files(found: Findings) -> Section | None:
    """Show how many files were written, against the human reference (RQ4, the paper's Figure 5)."""
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
        f"axis ends at {figures_tools.MOST_FILES}: a star says what has more.",
        "Distributions of the number of files; their quartiles are in the table beneath.",
        partial(figures_tools.files, sizes),
    )
    blocks: list[Block] = [picture, Table("Files of a tool", columns, rows), *_structure(found)]
    if not len(counts[None]):
        blocks.append(Text("Nobody has counted the files of these references."))
    return Section("tool-files", "Tools: files", blocks)


def _structure(found: Findings) -> list[Block]:
    """Return a table of lines and depth; none if nobody measured them."""
    whose = {None: _HUMAN, **{at: found.names[at] for at in found.contenders.index}}
    lengths, depths = (tool_bench.sizes(found.trials, what) for what in ("lines", "depth"))
    rows = [
        [Value(name, float(place)),
         *(figure(end, short) for end in _middle_and_end(lengths, at)),
         *(figure(end, ".3g") for end in _middle_and_end(depths, at))]
        for place, (at, name) in enumerate(whose.items()) if any(len(of.get(at, ())) for of in (lengths, depths))
    ]  # fmt: skip
    columns = [
        Column("whose", text=True),
        Column("lines, median", "of the files counted above; of a reference its code alone"),
        Column("max"),
        Column("depth, median", "folders above the deepest of those files"),
        Column("max"),
    ]
    return [Table("Size and structure of a tool", columns, rows)] if rows else []


def _middle_and_end(of: Mapping[str | None, np.ndarray], at: str | None) -> tuple[float, float]:
    """Return median and maximum; NaN if there are no values."""
    values = of.get(at, ())
    return (float(np.median(values)), float(np.max(values))) if len(values) else (nan, nan)


@of_tools
def runtimes(found: Findings) -> Section | None:
    """Show the speed of the tools against their references (the paper's Table 4)."""
    cells = found.contenders
    table = tool_bench.runtimes(found.trials[found.trials["cell"].isin(cells.index)])
    if table.empty:
        return None
    table = table.assign(**{side: 1000 * table[side] for side in ("reference", "candidate")})  # in ms
    measures = (
        Measure("tasks", "tasks", ".0f",
                "in which every cell shown has cases that both sides finished: the denominator"),
        Measure("reference, ms", "reference", ".1f",
                "mean of a case, of those that this cell's tool finished too"),
        Measure("tool, ms", "candidate", ".1f", "mean of the same cases"),
        Measure("relative", "relative", ".2f",
                "tool / reference; below 1 the tool is faster. The reference's times are kept, and may be of another "
                "hour"),
        Measure("CPU", "cpu", ".2f",
                "processor time of tool / of reference: median over a task's cases, mean over the tasks"),
    )  # fmt: skip
    left = [name for at, name in found.names.items() if at in cells.index and at not in table.index]
    blocks: list[Block] = [cell_table("Run time of a case, on common tasks", measures, table, found)]
    if left:
        blocks.append(Text(f"Not shown, for want of a case that their tools finished: {'; '.join(left)}."))
    return Section("tool-runtime", "Tools: speed", blocks)


@of_tools
def robustness(found: Findings) -> Section | None:
    """Show cases that should succeed, and cases that should fail (section 5.1)."""
    succeeds = "share of the reference's successes in which the tool succeeds too; mean over trials"
    fails = "share of the reference's failures in which the tool fails too, by itself; mean over trials"
    those = "valid ones whose task has such cases: the denominator of the column before"
    measures = (
        Measure("positive", "positive", ".1%", succeeds),
        Measure("trials", "positive_trials", ".0f", those),
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
    shares = counts.div(counts.sum(axis=1), axis=0)
    names = [_ENDS[Phase(phase)] for phase in counts.columns]
    columns = [AGENT, MODEL, Column("cases", "valid ones of all valid trials: the denominator")]
    columns += [Column(name, _UNDECIDED if name == "undecided" else "") for name in names]
    values = lines(counts)
    rows = [
        [*about(found.cells.loc[at], found), figure(sum(of.values()), ".0f"),
         *(figure(share, ".1%") for share in lines(shares)[at].values())]
        for at, of in values.items()
    ]  # fmt: skip
    picture = Picture(
        "tool_funnel",
        "Share of valid cases by the phase in which they ended, the first in which it differs from the reference.",
        "Bars of shares by phase; their values are in the table beneath.",
        partial(figures.stacked, shares.rename(index=found.names), names, "valid cases", ".0%", 1.0),
    )
    blocks: list[Block] = [picture, Table("Where cases ended", columns, rows)]
    if quarantined := tool_bench.unstable(found.trials):
        tasks = ", ".join(f"{task} ({count})" for task, count in quarantined.items())
        blocks.append(Text(f"Count only for what their reference does the same each time: cases of {tasks}."))
    return Section("tool-funnel", "Tools: where cases ended", blocks)
