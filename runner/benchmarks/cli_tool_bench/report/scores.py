"""Sections on CLI-Tool-Bench's scores: overall, by domain and language, against the reference's size, in pairs."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from metrics import tool_bench
from runner.benchmarks.cli_tool_bench.report import figures, tokens, tools, trial_cases
from runner.benchmarks.cli_tool_bench.report.tools import of_tools
from runner.benchmarks.cli_tool_bench.verifier import ONLINE
from runner.report.blocks import Block, Column, Picture, Section, Sections, Table, Text, Value
from runner.report.figures import grouped_bars
from runner.report.findings import Findings
from runner.report.leaderboard import lines
from runner.report.sections_pairs import Compared, first_of, left_out, pair_table
from runner.report.sections_scores import AGENT, MODEL, Measure, about, cell_table, figure
from runner.report.verdict_conditions import has
from runner.report.wording import span

MEANING = {
    "build": "share of tasks whose workspace could be installed",
    "exec": "exit code 0 wherever the reference has it",
    "state": "the same side effects on the file system",
    "exact_match": "exec, state, and the same output but for white space",
    "fuzzy_match": "exec, state, and an output that is similar enough",
    "semantic_match": "exec, state, and an output of the same meaning, judged by a model",
}
"""Score -> its meaning in a valid case. A task's score is the mean share of such cases over its classes (eqs. 3, 4)."""
ONLINE_NOTE = (
    "Datasets whose name ends in _online: the agent and installations could reach the package index of the language "
    "(dataset.profile=online), so tools may have dependencies. Compare their scores only with each other."
)
_DIMENSIONS = {"tier": "tier", "language": "language", "category": "domain"}
"""Stratum of a task -> the paper's word for it."""
_ENOUGH = 4
"""Smallest number of references of different size for a LOESS line."""


def title(score: str) -> str:
    """Return the displayed name of a score."""
    return score.replace("_", " ")


@of_tools
def overall(found: Findings) -> Section:
    """Show the paper's Table 2, with intervals."""
    names = tool_bench.scored(found.trials)
    scoring = found.scoring
    values = tool_bench.overall(found.trials, scoring, scoring.confidence)
    table = lines(values)
    columns = [AGENT, MODEL, *(Column(title(name), MEANING[name]) for name in names)]
    scores = [
        [*about(cell, found),
         *(figure(table[at][name], ".1%", span(table[at][f"{name}_low"], table[at][f"{name}_high"], ".0%"))
           for name in names)]
        for at, cell in lines(found.cells).items()
    ]  # fmt: skip
    halves = [Measure(title(name), f"{name}_1645", ".1%") for name in names]
    note = (
        "Means over the planned tasks; a task without a valid trial, or whose tool cannot be installed, counts 0. "
        f"Beneath: the {scoring.confidence:.0%} interval, bootstrap over tasks, {scoring.resamples} resamples. "
        "Of several attempts, "
        + ("the latest counts." if scoring.attempts == "latest_completed" else "their mean counts.")
    )
    blocks: list[Block] = [
        Table("Scores of the tools, best AMS first", columns, scores),
        Text(note),
        *([Text(ONLINE_NOTE)] if has(found.trials, ONLINE).any() else []),
        cell_table("Half widths of the intervals 1.645·SD/√n over tasks, as in the paper", halves, values, found),
        *_averages(found, names, table),
    ]  # fmt: skip
    return Section("tool-scores", "Tools: overall", blocks)


def _averages(found: Findings, names: tuple[str, ...], table: dict[str, dict[str, float]]) -> list[Block]:
    """Return the averages of each model over agents and of each agent over models, if there are several cells."""
    cells = found.contenders
    if found.several_budgets or len(cells) < 2:  # noqa: PLR2004 - one alone has no mean
        return []
    own = cells[["model", "agent"]].assign(
        **{name: [table[cell][name] for cell in cells.index] for name in names}
    )
    means = tool_bench.averages(own, names)
    words = {tool_bench.AVERAGE: "all of them"}
    rows = [
        [Value(words.get(model, model), model), Value(words.get(agent, agent), agent),
         *(figure(mean[name], ".1%") for name in names)]
        for (model, agent), mean in zip(means.index, means.to_dict("records"), strict=True)
    ]  # fmt: skip
    heads = [Column("model", text=True), Column("agent", text=True), *(Column(title(name)) for name in names)]
    return [Table("Averages; a dash where a pair was not run", heads, rows)]


@of_tools
def languages(found: Findings) -> Section:
    """Show scores by language of the tool (the paper's Figure 2)."""
    score = tool_bench.main_score(found.trials)
    values = tool_bench.by(found.trials, found.scoring.attempts, "language", score)
    table = _by(found, values, "language", score)
    blocks: list[Block] = [table]
    if len(found.contenders):
        scores = values.reindex(found.contenders.index).rename(index=found.names)
        draw = partial(grouped_bars, scores, ".0%", 1.0)
        alt = "Bars of the score by language; their values are in the table beneath."
        blocks.insert(0, Picture("tool_languages", f"{table.caption}; best AMS first.", alt, draw))
    return Section("tool-languages", "Tools: by language", blocks)


@of_tools
def composition(found: Findings) -> Section:
    """Show which tasks there are (the paper's Table 1), and the scores by domain."""
    score = tool_bench.main_score(found.trials)
    parts = lines(tool_bench.composition(found.trials))
    columns = (
        Column("dimension", text=True), Column("value", text=True), Column("tasks", "planned ones"),
        Column("lines", "mean lines of the references' code, over the references whose lines are known"),
        Column("references", "whose lines are known, from any trial of their task: the denominator of lines"),
    )  # fmt: skip
    rows = [
        [Value(_DIMENSIONS[dimension], dimension), Value(str(value), str(value)), figure(part["tasks"], ".0f"),
         figure(part["lines"], ",.2f"), figure(part["references"], ".0f")]
        for (dimension, value), part in parts.items()
    ]  # fmt: skip
    count = found.trials["task"].nunique()
    table = Table(f"Composition of {count} tasks (Table 1)", columns, rows, grouped=True)
    domains = tool_bench.by(found.trials, found.scoring.attempts, "category", score)
    return Section("tool-domains", "Tools: domains", [table, _by(found, domains, "category", score)])


def _by(found: Findings, values: pd.DataFrame, stratum: str, score: str) -> Table:
    """Return a table with a row for each cell and a column for each stratum."""
    planned = found.trials.drop_duplicates("task")[stratum].value_counts()
    measures = [Measure(f"{name} (of {planned[name]})", name, ".1%") for name in values.columns]
    caption = f"{title(score).capitalize()} by {_DIMENSIONS[stratum]}, mean over its planned tasks"
    return cell_table(caption, measures, values, found)


@of_tools
def against_lines(found: Findings) -> Section | None:
    """Show the score against the size of the reference (RQ2, the paper's Figure 3)."""
    score = tool_bench.main_score(found.trials)
    cells = found.contenders
    tasks = tool_bench.task_scores(found.trials, found.scoring.attempts)
    points = tasks[tasks["cell"].isin(cells.index)].dropna(subset=["reference_lines", score])
    if points.empty:
        return None
    points = points.assign(agent=points["cell"].map(cells["agent"]))
    sizes = points["reference_lines"].nunique()
    trend = f"dashed: LOESS on log lines, span 2/3, over {sizes} references"
    few = f"no trend line, as {sizes} references are too few"
    picture = Picture(
        "tool_lines",
        f"{title(score).capitalize()} of each cell on each task against the lines of the reference's code, by agent; "
        + (trend if sizes >= _ENOUGH else few)
        + ".",
        "Scatter of score and size of the reference; means by tier are in the table beneath.",
        partial(figures.against_lines, points, score, line=sizes >= _ENOUGH),
    )
    tiers = points.sort_values("reference_lines")["tier"].unique()
    values = tool_bench.by(found.trials, found.scoring.attempts, "tier", score)[list(tiers)]
    table = _by(found, values, "tier", score)
    return Section("tool-lines", "Tools: against the reference's size", [picture, table])


@of_tools
def pairs_of_tools(found: Findings) -> Section | None:
    """Compare each two cells by the score of figures, unless it is the reward, by which all cells are compared."""
    score = tool_bench.main_score(found.trials)
    draws = first_of(found, tool_bench.draws(found.trials, found.scoring))
    rewards = found.contenders["mean_reward"].reindex(list(draws.cells)).to_numpy(float)
    if len(draws.cells) < 2 or np.allclose(draws.observed[score], rewards):  # noqa: PLR2004 - a pair
        return None
    table = pair_table(draws, Compared(score, title(score)), found)
    return Section("tool-pairs", "Tools: pair by pair", [*left_out(found), table])


SECTIONS = Sections(
    dataset=(
        overall,
        composition,
        languages,
        against_lines,
        tokens.quadrants,
        pairs_of_tools,
        tools.overhead,
        tools.runtimes,
        tools.files,
        tools.robustness,
        tools.funnel,
    ),
    trial=(trial_cases.cases,),
)
