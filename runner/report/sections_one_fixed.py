"""Sections in which one part of a pair stays fixed: the agents of a model, and the models of an agent."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pandas as pd

from metrics.ranking import VARIED, Fixed, delta_best, gap_to_best
from runner.report import figures
from runner.report.blocks import Block, Column, Picture, Section, Table, Value
from runner.report.findings import Findings
from runner.report.leaderboard import lines
from runner.report.sections_scores import AGENT, MODEL, about, figure
from runner.report.wording import agent_name, model_name, number

_ROOM = 1.15
"""End of the axis of gaps, as a multiple of the largest. It leaves room for the number behind each bar."""


def same_model(found: Findings) -> Section | None:
    """Compare the agents on each model (AgentMeter section 5.2, Table 3, Figures 1(a) and 2)."""
    return _section(found, "model", "Same model, different agents")


def same_agent(found: Findings) -> Section | None:
    """Compare the models under each agent (AgentMeter section 5.3)."""
    return _section(found, "agent", "Same agent, different models")


def _section(found: Findings, fixed: Fixed, title: str) -> Section | None:
    cells, varied = found.contenders, VARIED[fixed]
    spread = delta_best(cells, fixed)
    if spread.empty or spread[f"{varied}s"].max() < 2:  # noqa: PLR2004 - one alone has no rival
        return None
    tables = (_best_and_worst(found, spread, fixed), _gaps(found, fixed))
    return Section(f"same-{fixed}", title, [*_pictures(found.pictured, fixed, found.pictured_note), *tables])


def _best_and_worst(found: Findings, spread: pd.DataFrame, fixed: Fixed) -> Table:
    """Return a table with a row for each part that stays fixed."""
    varied = VARIED[fixed]
    names = {
        (line[fixed], line["dataset"], line["budget"]): _name(line, fixed)
        for line in lines(found.contenders).values()
    }
    columns = (
        Column(fixed, text=True),
        Column(f"{varied}s", f"cells of this {fixed} with an AMS"),
        Column(f"best {varied}", text=True),
        Column("its AMS"),
        Column(f"worst {varied}", text=True),
        Column("its AMS"),
        Column("gap", "AMS of the best less that of the worst"),
    )
    rows = [
        [Value(names[unit], names[unit], f"budget {unit[-1]}" if found.several_budgets else ""),
         figure(line[f"{varied}s"], ".0f"),
         Value(line["best"], line["best"], tone="best"), figure(line["best_AMS"]),
         Value(line["worst"], line["worst"]), figure(line["worst_AMS"]), figure(line["gap"])]
        for unit, line in lines(spread).items()
    ]  # fmt: skip
    return Table(f"Best and worst {varied} of each {fixed}", columns, rows)


def _gaps(found: Findings, fixed: Fixed) -> Table:
    """Return a table of each cell's distance to the best with the same model or agent."""
    cells, varied = found.contenders, VARIED[fixed]
    gaps = gap_to_best(cells, fixed)
    rows = [
        [*about(cell, found), figure(cell["AMS"]),
         figure(gaps[name])._replace(tone="best" if gaps[name] == 0 else "")]
        for name, cell in lines(cells.sort_values([fixed, "budget", "rank"])).items()
    ]  # fmt: skip
    best = Column("Δbest", f"AMS that the same {fixed} has with its best {varied}, less this")
    return Table(f"Gap to the best {varied}", (AGENT, MODEL, Column("AMS"), best), rows)


def _pictures(found: Findings, fixed: Fixed, note: str) -> list[Block]:
    """Return AMS and Δbest as drawings: a line or group for each part that stays fixed, best first.

    `note` is what their captions say of cells that are not among these.
    """
    cells, varied = found.contenders, VARIED[fixed]
    scores, gaps = (_grid(found, values, fixed) for values in (cells["AMS"], gap_to_best(cells, fixed)))
    largest = float(gaps.to_numpy(float, na_value=0.0).max())
    words = "; ".join(
        f"{name}: "
        + ", ".join(f"{column} {number(float(score), '.3f')}" for column, score in line.dropna().items())
        for name, line in scores.iterrows()
    )
    count = int(cells["AMS"].notna().sum())
    paper = " (Figure 1a)" if fixed == "model" else ""
    drawn: list[Block] = [
        Picture(
            f"ams_by_{fixed}",
            f"AMS (0 to 1) of {count} cells, a line for each {fixed} from its worst to its best {varied}{paper}.{note}",
            f"Markers of AMS by {fixed}. {words}.",
            partial(figures.scores_by_group, scores, "AMS"),
        )
    ]
    if largest > 0:
        paper = " (Figure 2)" if fixed == "model" else ""
        drawn.append(
            Picture(
                f"gap_by_{fixed}",
                f"AMS that the best {varied} of the same {fixed} has more (Δbest), 0 for the best; lower is better. "
                f"A dash: not run, or without an AMS{paper}.{note}",
                "Bars of the gaps to the best; their values are in the table beneath.",
                partial(figures.grouped_bars, gaps, ".3f", _ROOM * largest, "Δbest, AMS"),
            )
        )
    return drawn


def _grid(found: Findings, values: pd.Series[float], fixed: Fixed) -> pd.DataFrame:
    """Return values with a row for each part that stays fixed and a column for each other part, both best first."""
    cells = lines(found.contenders)
    budget = {
        at: f" · budget {cell['budget']}" if found.several_budgets else "" for at, cell in cells.items()
    }
    table = pd.DataFrame(
        {
            "row": [f"{_name(cell, fixed)}{budget[at]}" for at, cell in cells.items()],
            "column": [_name(cell, VARIED[fixed]) for cell in cells.values()],
            "value": values.reindex(list(cells)).to_numpy(float),
        }
    )
    grid = table.pivot_table(index="row", columns="column", values="value", dropna=False)
    return grid.loc[table["row"].unique(), table["column"].unique()]


def _name(cell: Mapping[str, Any], part: Fixed) -> str:
    return model_name(cell) if part == "model" else agent_name(cell)
