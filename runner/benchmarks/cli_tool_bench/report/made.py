"""Sections on CLI-Tool-Bench's tools: what they took, their files, their speed, their robustness, where they fail."""

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
from runner.report.sections_scores import AGENT, MODEL, about, figure
from runner.report.wording import short, usd

_HUMAN = "human reference"
_HOW = ("mean", "min", "max")
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
    """Steps, tokens and USD of a trial (the paper's Table 3); and of its judge, where one was asked."""
    table = lines(tool_bench.overhead(found.trials))
    styles: dict[str, str | Callable[[float], str]] = {
        "steps": ".3g",
        "prompt": short,
        "completion": short,
        "usd": usd,
    }
    heads = {
        "steps": (
            "steps",
            "model calls answered, mean over the cell's valid trials; then the least and the most",
        ),
        "prompt": (
            "prompt",
            "tokens of input, caches included; those of spoiled tries of the same trial too",
        ),
        "completion": ("completion", "tokens of output"),
        "usd": ("USD", "as charged; unpriced trials are in none of the three"),
    }
    columns = [AGENT, MODEL, Column("trials", "valid ones, every attempt: the denominator")]
    for name, meaning in heads.values():
        columns += [Column(name, meaning), Column("min"), Column("max")]
    unpriced, judged = (any(of[what] > 0 for of in table.values()) for what in ("unpriced", "judge_max"))
    columns += [Column("unpriced", "of the trials")] * unpriced
    columns += [Column("judge's USD", "mean of a trial's questions to it, apart from the agent's")] * judged
    rows = [
        [*about(cell, found), figure(table[at]["trials"], ".0f"),
         *(figure(table[at][f"{what}_{how}"], style) for what, style in styles.items() for how in _HOW),
         *[figure(table[at]["unpriced"], ".0f")] * unpriced, *[figure(table[at]["judge_mean"], usd)] * judged]
        for at, cell in lines(found.cells).items() if at in table
    ]  # fmt: skip
    return Section("tool-overhead", "Tools: steps and cost", [Table("What a trial took", columns, rows)])


@of_tools
def files(found: Findings) -> Section | None:
    """How many files were written, against the human reference (RQ4, the paper's Figure 5)."""
    counts = tool_bench.sizes(found.trials, "files")
    own = [
        (name, counts[at])
        for at, name in found.names.items()
        if at in counts and at in found.contenders.index
    ]
    shown = [(name, values) for name, values in [(_HUMAN, counts[None]), *own] if len(values)]
    if not shown:
        return None
    columns = [
        Column("whose", text=True),
        Column("workspaces", "valid trials whose files were counted; or references"),
    ]
    columns += [Column(head) for head in ("min", "lower quartile", "median", "upper quartile", "max")]
    rows = [
        [Value(name, float(at)), figure(len(values), ".0f"),
         *(figure(float(end), ".3g") for end in np.quantile(values, (0, 0.25, 0.5, 0.75, 1)))]
        for at, (name, values) in enumerate(shown)
    ]  # fmt: skip
    picture = Picture(
        "tool_files",
        "Files of each workspace: dots, with median and quartiles; hidden files and dependencies do not count. The "
        f"axis ends at {figures_tools.MOST_FILES}: a star says what has more.",
        "Distributions of the number of files; their quartiles are in the table beneath.",
        partial(figures_tools.files, shown),
    )
    blocks: list[Block] = [picture, Table("Files of a tool", columns, rows), *_structure(found)]
    if not len(counts[None]):
        blocks.append(Text("Nobody has counted the files of these references."))
    return Section("tool-files", "Tools: files", blocks)


def _structure(found: Findings) -> list[Block]:
    """Lines and depth beside the number of files; nothing where nobody measured them."""
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
    """Median and maximum; NaN of nothing."""
    values = of.get(at, ())
    return (float(np.median(values)), float(np.max(values))) if len(values) else (nan, nan)


@of_tools
def runtimes(found: Findings) -> Section | None:
    """How fast the tools are against their references (the paper's Table 4)."""
    cells = found.contenders
    table = lines(tool_bench.runtimes(found.trials[found.trials["cell"].isin(cells.index)]))
    if not table:
        return None
    columns = (
        AGENT,
        MODEL,
        Column("tasks", "in which every cell shown has cases that both sides finished: the denominator"),
        Column("reference, ms", "mean of a case, of those that this cell's tool finished too"),
        Column("tool, ms", "mean of the same cases"),
        Column(
            "relative",
            "tool / reference; below 1 the tool is faster. The reference's times are kept, and may"
            " be of another hour",
        ),
        Column(
            "CPU", "processor time of tool / of reference: median over a task's cases, mean over the tasks"
        ),
    )
    rows = [
        [*about(cell, found), figure(table[at]["tasks"], ".0f"), figure(1000 * table[at]["reference"], ".1f"),
         figure(1000 * table[at]["candidate"], ".1f"), figure(table[at]["relative"], ".2f"),
         figure(table[at]["cpu"], ".2f")]
        for at, cell in lines(cells).items() if at in table
    ]  # fmt: skip
    left = [name for at, name in found.names.items() if at in cells.index and at not in table]
    blocks: list[Block] = [Table("Run time of a case, on common tasks", columns, rows)]
    if left:
        blocks.append(Text(f"Not shown, for want of a case that their tools finished: {'; '.join(left)}."))
    return Section("tool-runtime", "Tools: speed", blocks)


@of_tools
def robustness(found: Findings) -> Section | None:
    """Cases that should succeed, and cases that should fail (section 5.1)."""
    table = lines(tool_bench.robustness(found.trials))
    columns = (
        AGENT,
        MODEL,
        Column(
            "positive", "share of the reference's successes in which the tool succeeds too; mean over trials"
        ),
        Column("trials", "valid ones whose task has such cases: the denominator of the column before"),
        Column(
            "negative",
            "share of the reference's failures in which the tool fails too, by itself; mean over trials",
        ),
        Column("trials"),
    )
    rows = [
        [*about(cell, found), *(entry for kind in ("positive", "negative") for entry in (
            figure(table[at][kind], ".1%"), figure(table[at][f"{kind}_trials"], ".0f")))]
        for at, cell in lines(found.cells).items() if at in table
    ]  # fmt: skip
    return Section(
        "tool-robustness", "Tools: good and bad input", [Table("Agreement with the reference", columns, rows)]
    )


@of_tools
def funnel(found: Findings) -> Section | None:
    """In which phase cases ended, cell by cell."""
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
