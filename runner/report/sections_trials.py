"""Sections behind the scores: passes by tier, budgets, effort, attempts, caches."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pandas as pd

from metrics.profiles import (
    budget_curve,
    cache_view,
    composition,
    effort_of_outcomes,
    over_attempts,
    pass_curve,
    passes_by,
    tokens_across_agents,
)
from metrics.table import SELECTED
from runner.report import figures
from runner.report.blocks import Block, Column, Picture, Section, Table, Text, Value
from runner.report.findings import Findings
from runner.report.leaderboard import lines
from runner.report.sections_scores import AGENT, MODEL, Measure, about, cell_table, figure
from runner.report.wording import model_name, passes, short, usd

_SHOWN = 20
"""Number of tasks whose tokens are listed, namely those on which agents differ most."""


def pass_profile(found: Findings) -> Section | None:
    """Show which tiers the passes come from."""
    cells = found.pictured.cells
    if cells.empty:
        return None
    scores = lines(found.tiers)
    all_planned = {tier: int(scores[cells.index[0], tier]["tasks"]) for tier in found.scoring.tiers}
    planned = {tier: count for tier, count in all_planned.items() if count}
    if not planned:  # the scoring knows none of the tasks' tiers
        return None
    if not any(scores[cell, tier]["passes"] for cell in cells.index for tier in planned):
        return Section("profile", "Passes by tier", [Text("No cell passed a task of these tiers.")])
    all_names = found.names
    names = [all_names[cell] for cell in cells.index]
    counts = pd.DataFrame(
        {tier: [scores[cell, tier]["passes"] for cell in cells.index] for tier in planned}, index=names
    )
    passes_text = "; ".join(
        f"{name}: " + ", ".join(f"{tier} {line[tier]:g} of {count}" for tier, count in planned.items())
        for name, line in zip(names, counts.to_dict("records"), strict=True)
    )
    picture = Picture(
        "pass_profile",
        f"Tasks passed, by tier, of those planned; best first.{found.pictured_note}",
        f"Bars of passes by tier. {passes_text}.",
        partial(figures.pass_profile, counts, planned),
    )
    return Section("profile", "Passes by tier", [picture])


def sources(found: Findings) -> Section | None:
    """Show which sources the tasks come from, by tier (AgentMeter section 3.2), and passes by source."""
    if "source" not in found.trials:  # imported by an earlier version
        return None
    split = composition(found.trials, "source")
    if len(split) < 2:  # noqa: PLR2004 - one source is the dataset
        return None
    known = [tier for tier in found.scoring.tiers if tier in split]
    split = split[[*known, *(tier for tier in split if tier not in known)]]
    columns = [
        Column("source", text=True),
        *map(Column, split.columns),
        Column("all", "tasks planned, of every tier"),
    ]
    counts = split.assign(all=split.sum(axis=1))
    rows = [
        [Value(str(name), str(name)), *(figure(count, ".0f") for count in line.values())]
        for name, line in lines(counts).items()
    ]
    every = Table(f"Tasks of {len(split)} sources, by tier; {counts['all'].sum()} in all", columns, rows)
    values = lines(passes_by(found.trials, found.scoring.attempts, "source"))
    heads = [
        Column(
            f"{name} (of {total})",
            "" if at else "tasks of the source that passed / planned; so for each source",
        )
        for at, (name, total) in enumerate(counts["all"].items())
    ]
    passed = [
        [*about(cell, found), *(_passes_of(values.get((name, source))) for source in split.index)]
        for name, cell in lines(found.cells).items()
    ]
    return Section("sources", "By source", [every, Table("Passes by source", [AGENT, MODEL, *heads], passed)])


def _passes_of(part: Mapping[str, float] | None) -> Value:
    """Return passes / planned tasks of a source; a dash for a cell that planned none."""
    if part is None:
        return Value("-")
    return figure(part["pass_rate"])._replace(text=f"{passes(part['passes'])}/{part['planned']:g}")


def budgets(found: Findings) -> Section | None:
    """Show quality within a budget, tier by tier."""
    cells = found.contenders[found.contenders["unpriced"] < found.contenders["ran"]]
    curves = {name: _curve(found, name, cells) for name in found.scoring.tiers}
    curves = {name: curve for name, curve in curves.items() if len(curve)}
    if not curves:
        return None
    names = found.names
    named = min(len(cells), len(figures.LINES))
    failed = " or one that did not pass," if found.scoring.cbq == "passes" else ""
    picture = Picture(
        "budgets",
        "Mean reward over the tier's planned tasks when a trial dearer than the budget, or of unknown cost,"
        f"{failed} counts 0 (CBQ, eq. 3), at the scoring's budgets. Named: the {named} best of {len(cells)}.",
        "Curves of quality against budget; their values are in the table beneath.",
        partial(figures.budget_curves, {name: curve.rename(index=names) for name, curve in curves.items()}),
    )
    points = [(tier, budget) for tier, curve in curves.items() for budget in curve.columns]
    columns = [AGENT, MODEL, *(Column(f"{tier} {budget:g}") for tier, budget in points)]
    quality = {tier: lines(curve) for tier, curve in curves.items()}
    rows = [
        [*about(cell, found), *(figure(quality[tier][name][budget]) for tier, budget in points)]
        for name, cell in lines(cells).items()
    ]
    table = Table("CBQ at each budget, USD a trial", columns, rows)
    return Section("budgets", "Quality within a budget", [picture, table])


def _curve(found: Findings, tier: str, cells: pd.DataFrame) -> pd.DataFrame:
    """Return CBQ at the tier's budgets, a row for each of `cells`, best first; empty if the tier has no tasks."""
    # Two quantiles of cost may be the same amount.
    budgets = tuple(dict.fromkeys(found.scoring.tiers[tier].budgets))
    trials = found.trials.loc[found.trials["tier"] == tier, [*SELECTED, "status"]]
    if trials.empty:
        return pd.DataFrame()
    own = budget_curve(trials, found.scoring.attempts, budgets, found.scoring.cbq).droplevel("tier")
    return own.reindex(cells.index)


def effort(found: Findings) -> Section | None:
    """Show what passes and failures took (the paper's Table 5)."""
    taken = lines(effort_of_outcomes(found.rival_trials))
    if not taken:
        return None
    columns = (
        Column("tier", text=True),
        Column("outcome", text=True),
        Column("trials", "valid ones, every attempt: the denominator of this row"),
        Column("median tokens"),
        Column("mean tokens"),
        Column("median USD"),
        Column("mean USD"),
        Column("median turns", "model calls answered"),
        Column("unpriced", "of the trials, those whose cost is unknown and so in neither figure in USD"),
    )
    order = {tier: at for at, tier in enumerate(["all", *found.scoring.tiers])}
    known = [at for at in taken if at[0] in order]
    rows = []
    for tier, outcome in sorted(known, key=lambda at: (order[at[0]], at[1] == "fail")):
        line = taken[tier, outcome]
        tokens = (figure(line["median_tokens"], short), figure(line["mean_tokens"], short))
        dollars = (figure(line["median_usd"], usd), figure(line["mean_usd"], usd))
        ends = (figure(line["median_turns"], ".3g"), figure(line["unpriced"], ".0f"))
        row = [Value(tier, float(order[tier])), Value(outcome, outcome), figure(line["trials"], ".0f")]
        rows.append([*row, *tokens, *dollars, *ends])
    table = Table("Effort of a trial, of the cells that compete", columns, rows)
    return Section("effort", "What passes and failures took", [table])


def tokens_by_agent(found: Findings) -> Section | None:
    """Show the tasks on which agents differ most in tokens with the same model (AgentMeter, section 1)."""
    taken = tokens_across_agents(found.rival_trials).sort_values("ratio", ascending=False, kind="stable")
    if taken.empty:
        return None
    columns = (
        Column("task", text=True),
        Column("model", text=True),
        Column("agents", "with valid trials of this task and model that have tokens"),
        Column("fewest", "agent with the fewest tokens", text=True),
        Column("fewest tokens", "mean over its valid attempts at the task"),
        Column("fewest: passed", "share of these attempts"),
        Column("fewest: repeated reads", "mean over these attempts; a dash where they were not counted"),
        Column("most", "agent with the most tokens", text=True),
        Column("most tokens", "mean over its valid attempts at the task"),
        Column("most: passed", "share of these attempts"),
        Column("most: repeated reads", "mean over these attempts; a dash where they were not counted"),
        Column("ratio", "most tokens / fewest tokens"),
    )
    marked = {(line["model"], line["budget"]): model_name(line) for line in lines(found.cells).values()}
    rows = []
    for (model, _, budget, task), line in lines(taken.head(_SHOWN)).items():
        beneath = f"budget {budget}" if found.several_budgets else ""
        name = marked[model, budget]
        row = [Value(task, task), Value(name, name, beneath), figure(line["agents"], ".0f")]
        for side in ("least", "most"):
            rate = figure(line[f"{side}_passed"], ".0%")
            repeated = figure(line[f"{side}_repeated"], ".3g")
            row += [Value(line[side], line[side]), figure(line[f"{side}_tokens"], short), rate, repeated]
        rows.append([*row, figure(line["ratio"], ".2f")])
    caption = f"Tokens of one task by agent, same model: {len(rows)} of {len(taken)} pairs of task and model"
    median = Text(f"Median of the ratio over all {len(taken)}: {taken['ratio'].median():.2f}.")
    return Section("tokens-by-agent", "One task, different agents", [Table(caption, columns, rows), median])


def attempts(found: Findings) -> Section | None:
    """Show how much repeated trials of the same tasks differ."""
    spread = lines(over_attempts(found.trials, found.scoring))
    if max(own["attempts"] for own in spread.values()) < 2:  # noqa: PLR2004 - one attempt varies in nothing
        return None
    columns = (
        AGENT,
        MODEL,
        Column("attempts", "planned of each task, at most"),
        Column("pass rate", "mean over the attempts, each scored alone over its planned tasks"),
        Column("its SD", "over the attempts, n - 1"),
        Column("AMS", "mean over the attempts, each scored alone"),
        Column("its SD"),
        Column(
            "unsteady",
            "tasks that passed in some valid attempts and failed in others / tasks with two or more",
        ),
    )
    rows = []
    for name, cell in lines(found.cells).items():
        own = spread[name]
        rates = [figure(own[column]) for column in ("pass_rate_mean", "pass_rate_sd", "AMS_mean", "AMS_sd")]
        unsteady = Value(f"{own['unsteady']:g}/{own['repeated']:g}", float(own["unsteady"]))
        rows.append([*about(cell, found), figure(own["attempts"], ".0f"), *rates, unsteady])
    rule = Text(f"Of several attempts at a task, what counts in the scores: {found.scoring.attempts}.")
    blocks: list[Block] = [Table("Variance over attempts", columns, rows), _pass_curve(found), rule]
    return Section("attempts", "Attempt by attempt", blocks)


def _pass_curve(found: Findings) -> Table:
    """Return a table of pass@k, which more attempts would reach."""
    curve = pass_curve(found.trials, int(found.trials["attempt"].nunique()))
    about_k = (
        "chance that k of a task's valid attempts hold a pass, mean over planned tasks; a lower bound where fewer "
        "than k are valid"
    )
    measures = [
        Measure(f"pass@{k}", str(k), about="" if at else about_k) for at, k in enumerate(curve.columns)
    ]
    return cell_table("Passed in k attempts", measures, curve.rename(columns=str), found)


def caches(found: Findings) -> Section | None:
    """Show where the input tokens came from, and what caches saved."""
    prices = found.plan.prices
    per_token = {name: [rates.input, rates.output] for name, rates in prices.items()}
    table = pd.DataFrame.from_dict(per_token, orient="index", columns=["p_in", "p_out"], dtype=float) / 1e6
    use = cache_view(found.trials, table)
    use = use[use["cache_share"].notna()]
    if use.empty:
        return None
    measures = (
        Measure("fresh", "fresh_share", ".1%",
                "share of input tokens paid in full; the shares are over the input of all valid trials"),
        Measure("written", "creation_share", ".1%", "share written to a cache"),
        Measure("read", "cache_share", ".1%", "share read from a cache"),
        Measure("USD", "usd", usd, "of the same trials, as charged"),
        Measure("USD without caches", "usd_uncached", usd, "of the same tokens, all input at the model's plain rate"),
        Measure("per pass", "usd_uncached_per_pass", usd, "the same, divided by the passes among these trials"),
        Measure("saved", "cache_saving", ".1%", "share of it that caches saved"),
    )  # fmt: skip
    note = Text(
        "What a provider does not report as cached counts as fresh. Higher rates of long calls are not seen."
    )
    return Section(
        "caches", "Caches", [cell_table("Where input tokens came from", measures, use, found), note]
    )
