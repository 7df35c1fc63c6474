"""The section on what tools are worth and what they take in tokens, agent by agent."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pandas as pd

from metrics import tool_bench
from runner.benchmarks.cli_tool_bench.report import figures
from runner.benchmarks.cli_tool_bench.report.tools import of_tools
from runner.report.blocks import Block, Column, Picture, Section, Table, Value
from runner.report.findings import Findings
from runner.report.leaderboard import lines
from runner.report.sections_scores import AGENT, MODEL, about, figure
from runner.report.wording import number, short


@of_tools
def quadrants(found: Findings) -> Section | None:
    """Show the score against tokens, agent by agent (RQ3, the paper's Figure 4)."""
    score, cells = tool_bench.main_score(found.trials), found.contenders
    points = tool_bench.tokens_and_score(found.trials, score)
    points = points[points["cell"].isin(cells.index)]
    if points.empty:
        return None
    word = score.replace("_", " ")
    points = points.assign(agent=points["cell"].map(cells["agent"]))
    by_agent = {str(agent): own for agent, own in points.groupby("agent")}
    own = _centres(pd.concat([tool_bench.quadrants(each) for each in by_agent.values()]), cells)
    means = "; ".join(f"{agent}: {_means(each)}" for agent, each in by_agent.items())
    picture = Picture(
        "tool_quadrants",
        f"{word.capitalize()} of each valid trial against its tokens (dots), and the mean trial of each cell (crosses, "
        f"by rank), a panel an agent; dashed: the means of the agent's trials ({means}).",
        "Scatter of score and tokens in four quadrants; the mean of each cell is in the table beneath.",
        partial(figures.quadrants, points, own.assign(mark=cells["rank"].astype(str), agent=cells["agent"])),
    )
    of = "the mean of the same agent's trials" if len(by_agent) > 1 else "the mean of all trials"
    blocks: list[Block] = [picture, _table(f"The mean trial, against {of} (Figure 4)", own, word, found)]
    if len(by_agent) > 1:
        every = _centres(tool_bench.quadrants(points), cells)
        caption = f"The mean trial, against the mean of all {len(points)} trials ({_means(points)})"
        blocks.append(_table(caption, every, word, found))
    return Section("tool-quadrants", "Tools: score and tokens", blocks)


def _centres(centres: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """Return the means of the cells, best first."""
    return centres.loc[[cell for cell in cells.index if cell in centres.index]]


def _means(points: pd.DataFrame) -> str:
    return f"{short(points['tokens'].mean())} tokens, {number(points['score'].mean(), '.1%')}"


def _table(caption: str, centres: pd.DataFrame, word: str, found: Findings) -> Table:
    """Return a table of the quadrants of cells and of their trials."""
    names = list(tool_bench.QUADRANTS.values())
    columns = (
        Column("#", "rank by AMS: the cross in the picture"), AGENT, MODEL,
        Column("quadrant", "of the mean trial", text=True), Column("trials", "valid ones: the denominator"),
        Column("tokens", "mean of a trial"), Column(word, "mean of a trial"),
        *(Column(name, "" if at else "share of the trials there; likewise in the columns that follow")
          for at, name in enumerate(names)),
    )  # fmt: skip
    cells = lines(found.contenders)
    return Table(caption, columns, [_row(cells[at], of, found) for at, of in lines(centres).items()])


def _row(line: Mapping[str, Any], of: Mapping[str, Any], found: Findings) -> list[Value]:
    return [
        Value(str(line["rank"]), float(line["rank"])), *about(line, found),
        Value(of["quadrant"], of["quadrant"]), figure(of["trials"], ".0f"), figure(of["tokens"], short),
        figure(of["score"], ".1%"), *(figure(of[name], ".0%") for name in tool_bench.QUADRANTS.values()),
    ]  # fmt: skip
