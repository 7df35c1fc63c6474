"""Sections on which cells are better: criteria, leaderboard, tiers, agents × models, cost against quality."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import pandas as pd

from metrics.ranking import pareto
from metrics.uncertainty import FEWEST_TASKS
from runner.records import Scoring
from runner.report import figures
from runner.report.blocks import Block, Column, Picture, Section, Table, Text, Value
from runner.report.competition import left_out
from runner.report.conclusions import (
    ams_text,
    bound_text,
    caveats,
    headline,
    lead_sentence,
    small_tiers,
    what_counts,
)
from runner.report.findings import Findings
from runner.report.four_criteria import not_in_the_running, verdict, winners
from runner.report.leaderboard import lines, rate_span
from runner.report.wording import agent_name, model_name, number, passes, short, span, spend, usd

_CLEAR = {"few": "too few tasks"}
_POINT = ("usd_per_pass", "pass_rate", "mark", "front")
AGENT, MODEL = Column("agent", text=True), Column("model", text=True)


def about(cell: Mapping[str, Any], found: Findings) -> tuple[Value, Value]:
    """Return the first two entries of a row about a cell: agent, with the budget where there are several, and model."""
    agent, model = agent_name(cell), model_name(cell)
    beneath = f"budget {cell['budget']}" if found.several_budgets else ""
    return Value(agent, agent, beneath), Value(model, model)


def figure(value: float, style: str | Callable[[float], str] = ".3f", beneath: str = "") -> Value:
    """Return an entry that sorts as a number; a missing one is a dash and sorts last."""
    return Value(number(value, style), None if math.isnan(value) else float(value), beneath)


class Measure(NamedTuple):
    """A column of a table that has a row for each cell."""

    title: str
    name: str
    """Name of its values."""
    style: str | Callable[[float], str] = ".3f"
    about: str = ""
    """Meaning and denominator."""


def cell_table(caption: str, measures: Sequence[Measure], values: pd.DataFrame, found: Findings) -> Table:
    """Return a table of these values (index cell), with a row for each cell that has any, best first."""
    by_cell = lines(values)
    rows = [
        [*about(cell, found), *(figure(by_cell[at][each.name], each.style) for each in measures)]
        for at, cell in lines(found.cells).items()
        if at in by_cell
    ]
    return Table(caption, [AGENT, MODEL, *(Column(each.title, each.about) for each in measures)], rows)


def four_criteria(found: Findings) -> Section | None:
    """Show the best cell by each criterion, and whether its lead is clear."""
    few = small_tiers(found.trials, found.scoring).get(found.dataset, ())
    best = winners(found.contenders, found.draws, found.scoring.confidence, few)
    if not best:
        return None
    names = found.names
    heads = ("best by", "cell", "value", "ahead of", "lead", "its interval", "clear")
    rows = [
        [Value(each.criterion), Value(", tied with ".join(names[cell] for cell in each.best), tone="best"),
         Value(each.value), Value(names[each.runner_up] if each.runner_up else "-"), Value(each.lead),
         Value(each.interval), Value(_CLEAR.get(each.clear, each.clear), tone="best" if each.clear == "yes" else "")]
        for each in best
    ]  # fmt: skip
    table = Table("The best cell by each criterion", [Column(head, text=True) for head in heads], rows)
    note = (
        f"A lead is clear when the {found.scoring.confidence:.0%} interval of the paired difference to each other "
        f"cell, over {found.scoring.resamples} resamples of the tasks, lies above 0, and each tier that counts has "
        f"{FEWEST_TASKS} tasks or more. Where it is not, these tasks do not tell the best apart from all others."
    )
    if (rivals := len(found.contenders)) > 2:  # noqa: PLR2004 - two have one lead between them
        note += f" That is not corrected for the choice of the best among {rivals} cells; the pairs further down are."
    absent = not_in_the_running(best, rivals)
    sentence = [Text(text)] if (text := lead_sentence(best, names, few)) else []
    return Section("criteria", verdict(best), [*sentence, table, Text(f"{note} {absent}".strip())])


def leaderboard(found: Findings) -> Section:
    """Show every cell with its intervals."""
    scoring, cells = found.scoring, found.cells
    scored = headline(cells) == "AMS"
    counted = what_counts(found.trials, scoring.attempts)
    rows = [_leader(cell, found, scored=scored) for cell in lines(cells).values()]
    caption = f"{len(found.contenders)} cells, best {'AMS' if scored else 'pass rate'} first"
    blocks: list[Block] = [
        Table(f"{caption}; {counted}" if counted else caption, _leader_columns(scoring, scored=scored), rows)
    ]
    blocks.extend(map(Text, left_out(found.trials)))
    for why, count in cells[cells["why"] != ""].groupby("why").size().items():
        blocks.append(Text(f"No AMS for {count} of {len(cells)} cells: {why}."))
    blocks.extend(map(Text, caveats(found.trials, cells, scoring)))
    return Section("leaderboard", "Leaderboard", blocks)


def _leader_columns(scoring: Scoring, *, scored: bool) -> Sequence[Column]:
    """Return the columns of the leaderboard; without a score there is none for AMS."""
    resampling = f"{scoring.confidence:.0%} interval, bootstrap over tasks, {scoring.resamples} resamples"
    return (
        Column(
            "#",
            f"rank by {'AMS, then ' if scored else ''}passes, then USD per pass; bounds, cells of other tasks "
            "and those without a valid trial have none",
        ),
        AGENT,
        MODEL,
        *(
            [Column("AMS", f"AgentMeter Score, alpha {scoring.alpha:g}; beneath it the {resampling}")]
            if scored
            else []
        ),
        Column("0 to 1", f"{'AMS' if scored else 'the pass rate'} on its interval", text=True),
        Column(
            "passed",
            "tasks passed / tasks planned; beneath it the Wilson interval of the rate, or where several attempts at a "
            f"task count the {resampling}",
        ),
        Column("reward", "mean over the tasks planned; a task without a valid trial counts 0"),
        Column(
            "tokens/pass",
            "tokens of all valid trials, failed ones included, divided by the passes among them",
        ),
        Column("USD/pass", f"USD of the same trials, divided by the same; beneath it the {resampling}"),
        Column(
            "invalid", "trials that say nothing about the cell (never run ones included) / trials planned"
        ),
        Column("USD spent", "everything, invalid trials and retries included"),
        Column("turns", "model calls answered, mean over valid trials"),
    )


def _leader(cell: Mapping[str, Any], found: Findings, *, scored: bool) -> list[Value]:
    rank = Value("-") if pd.isna(cell["rank"]) else Value(str(cell["rank"]), float(cell["rank"]))
    name = "AMS" if scored else "pass_rate"
    low, high = cell[f"{name}_low"], cell[f"{name}_high"]
    spent = spend(cell["spend_usd"], cell["unpriced"], cell["ran"])
    score = figure(cell[name], beneath=span(low, high))
    if rank.text == "1" and score.order is not None:
        score = score._replace(tone="best")
    return [
        rank,
        *about(cell, found),
        *([score._replace(text=ams_text(cell))] if scored else []),
        Value("", score.order, strip=None if score.order is None else (low, cell[name], high)),
        Value(f"{passes(cell['passes'])}/{cell['planned']}", float(cell["pass_rate"]), rate_span(cell)),
        figure(cell["mean_reward"], ".2f"),
        figure(cell["tokens_per_pass_least"], short)._replace(text=bound_text(cell, "tokens_per_pass", short)),
        figure(cell["usd_per_pass_least"], usd, span(cell["usd_per_pass_low"], cell["usd_per_pass_high"], usd, " to "))
        ._replace(text=bound_text(cell, "usd_per_pass", usd)),
        Value(f"{cell['invalid']}/{cell['trials']}", float(cell["invalid"])),
        Value(spent, None if spent == "-" else float(cell["spend_usd"])),
        figure(cell["turns"], ".1f"),
    ]  # fmt: skip


def tiers(found: Findings) -> Section | None:
    """Show the parts of each cell's AMS."""
    planned = found.tiers["tasks"].groupby("tier", sort=False).max()
    known = [tier for tier in found.scoring.tiers if planned[tier]]
    if not known:  # the scoring knows none of the tasks' tiers
        return None
    parts = ("SR", "CostAUBQC", "EFR", "TierScore")
    meaning = {
        "SR": "mean reward over the tier's planned tasks (eq. 6)",
        "CostAUBQC": "the same, averaged over the tier's budgets, where a dearer trial counts 0 (eqs. 3, 4)",
        "EFR": "share of planned tasks that failed and cost more than the tier's threshold (eq. 5)",
        "TierScore": f"({found.scoring.alpha:g} SR + {1 - found.scoring.alpha:g} CostAUBQC)(1 - EFR) (eq. 7)",
    }
    columns = [AGENT, MODEL, Column("AMS", "mean of the tier scores by the tiers' weights (eq. 8)")]
    for at, tier in enumerate(known):
        columns.append(Column(f"{tier} passed", "" if at else "tasks passed / planned in the tier"))
        columns += [Column(f"{tier} {part}", "" if at else meaning[part]) for part in parts]
    rows = []
    scores = lines(found.tiers)
    for name, cell in lines(found.cells).items():
        row = [*about(cell, found), figure(cell["AMS"])._replace(text=ams_text(cell))]
        for tier in known:
            own = scores[name, tier]
            rate = own["passes"] / own["tasks"] if own["tasks"] else math.nan
            row.append(figure(rate)._replace(text=f"{passes(own['passes'])}/{own['tasks']:g}"))
            row += [tier_part(own, part) for part in parts]
        rows.append(row)
    grid = "; ".join(
        f"{name}: budgets {', '.join(f'{budget:g}' for budget in tier.budgets)}, threshold {tier.tau:g}, "
        f"weight {tier.weight:g}"
        for name, tier in found.scoring.tiers.items()
    )
    return Section(
        "tiers", "Score by tier", [Table("AMS and its parts", columns, rows), Text(f"USD a trial. {grid}.")]
    )


def tier_part(own: Mapping[str, Any], part: str) -> Value:
    """Return a part of a tier's score: a bound where some costs are unknown, a dash where all are."""
    if part == "SR" or not own["unpriced"]:
        return figure(own[part])
    if own["unpriced"] >= own["valid"]:
        return figure(math.nan)
    value = figure(own[part])
    return value._replace(text=f"{'<=' if part == 'EFR' else '>='}{value.text}")


def heat_map(found: Findings) -> Section | None:
    """Show AMS of agent × model, with the best agent of each model outlined."""
    cells = found.contenders
    if cells["AMS"].isna().all():
        return None
    names = found.names
    several = found.several_budgets
    column = {
        cell: model_name(line) + (f" · budget {line['budget']}" if several else "")
        for cell, line in lines(cells).items()
    }
    table = cells.assign(column=cells.index.map(column))
    scores = table.pivot_table(index="agent", columns="column", values="AMS", aggfunc="max", dropna=False)
    best = [scores.max(axis=axis).sort_values(ascending=False, kind="stable").index for axis in (1, 0)]
    scores = scores.loc[best[0], best[1]]
    scores_text = "; ".join(
        f"{names[cell]} {number(line['AMS'], '.3f')}" for cell, line in lines(cells).items()
    )
    picture = Picture(
        "heat_map",
        f"AMS (0 to 1) of {len(cells)} cells; the best agent of each model is outlined.",
        f"Heat map of AMS by agent and model: {scores_text}.",
        partial(figures.heat_map, scores),
    )
    return Section("heat-map", "Agent × model", [picture])


def cost_quality(found: Findings) -> Section | None:
    """Show pass rate against USD per pass."""
    cells = found.contenders
    front = pareto(cells["pass_rate"].to_numpy(float), cells["usd_per_pass"].to_numpy(float))
    points = cells.assign(front=front, mark=cells["rank"].astype(str))
    exact = points["usd_per_pass"].notna()
    points = points.assign(
        mark=points["mark"].mask(~exact, "≥" + points["mark"]), price=points["usd_per_pass_least"]
    )
    placed = points[~points["price"].isin([math.inf]) & points["price"].notna()]
    if placed.empty:
        return None
    names, leaders = found.names, points[points["front"]].sort_values("usd_per_pass")
    best = "; ".join(
        f"{cell['mark']} {names[name]} ({passes(cell['passes'])}/{cell['planned']}, {usd(cell['usd_per_pass'])} USD)"
        for name, cell in lines(leaders).items()
    )
    picture = Picture(
        "cost_quality",
        f"Pass rate over planned tasks against USD per pass, {len(placed)} of {len(cells)} cells; numbers are ranks in "
        "the leaderboard. Filled: on the Pareto front. Dotted: medians of the cells shown."
        + (
            ""
            if exact[placed.index].all()
            else " ≥: at the least that its price can be, as some costs are unknown."
        ),
        f"Scatter of cost and quality. On the Pareto front, cheapest first: {best or 'none'}.",
        partial(figures.cost_quality, placed.assign(usd_per_pass=placed["price"])[list(_POINT)]),
    )
    sentence = (
        f"Pareto front, cheapest first: {best}."
        if best
        else "There is no Pareto front, because no price is completely known."
    )
    blocks: list[Block] = [picture, Text(sentence)]
    if left := [names[cell] for cell in points.index.difference(placed.index)]:
        blocks.append(Text(f"Not shown, for want of a pass or of a price: {'; '.join(left)}."))
    return Section("cost-quality", "Cost and quality", blocks)
