"""The section with a box for each task and cell: who passed what, at what price."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from runner.report.blocks import Box, Matrix, MatrixColumn, MatrixRow, Section, SignedTrial, Text
from runner.report.findings import Findings
from runner.report.leaderboard import lines
from runner.report.shown_trials import MOST, shown_trials
from runner.report.trial_states import FAILED, IDLE, PASSED, REFUSED, STATES, State, states
from runner.report.wording import agent_name, model_name, spend

PAGES: Final = "trials"
"""Folder of the trials' pages within the report's."""
Line = tuple[Mapping[Any, Any], State]
"""A row of the trials table, and its state."""


def linked(folder: Path) -> frozenset[str]:
    """Return the keys of the trials that have a page in the report of the sweep in this folder."""
    return frozenset(page.stem for page in (folder / "report" / PAGES).glob("*.html"))


def matrix(found: Findings, most: int = MOST) -> Section:
    """Show each task in each cell, with at most `most` trials: passes, USD, and a link to the page of each trial."""
    pages = linked(found.folder)
    shown = shown_trials(found, most)
    trials = shown.trials.sort_values(["task", "attempt"], kind="stable")
    boxes: defaultdict[tuple[str, str], list[Line]] = defaultdict(list)
    of_cell: defaultdict[str, list[Line]] = defaultdict(list)
    for line in zip(trials.to_dict("records"), states(trials), strict=True):
        boxes[line[0]["task"], line[0]["cell"]].append(line)
        of_cell[line[0]["cell"]].append(line)
    every = lines(found.cells)
    cells = {cell: every[cell] for cell in shown.cells}
    tiers = dict(zip(trials["task"], trials["tier"], strict=True))
    rows = []
    for task, tier in tiers.items():
        own = [boxes[task, cell] for cell in cells]
        rivals = [box for box, cell in zip(own, cells.values(), strict=True) if box and not cell["bound"]]
        solved = sum(any(state is PASSED for _, state in box) for box in rivals)
        rows.append(
            MatrixRow(
                task, str(tier), f"{solved}/{len(rivals)}", float(solved), [_box(box, pages) for box in own]
            )
        )
    columns = [_column(cell, of_cell[key], found) for key, cell in cells.items()]
    legend = "; ".join(f"{state.sign} {state.word}: {state.about}" for state in STATES)
    caption = f"{len(rows)} tasks × {len(columns)} cells"
    note = Text(
        f"{legend}. A sign stands for each attempt, and leads to the page of its trial. Beneath it are the USD of all "
        "attempts; a dash means that nobody knows them, or that nothing ran. In each head: tasks with a pass / tasks "
        "that are shown; solved by: cells with a pass / cells that are shown, without bounds."
    )
    left_out = [Text(shown.about)] if shown.about else []
    return Section("matrix", "Task by task", [*left_out, Matrix(caption, columns, rows), note])


def _column(cell: Mapping[str, Any], trials: Sequence[Line], found: Findings) -> MatrixColumn:
    tasks: dict[str, bool] = {}
    for row, state in trials:
        tasks[row["task"]] = tasks.get(row["task"], False) or state is PASSED
    beneath = model_name(cell) + (f" · budget {cell['budget']}" if found.several_budgets else "")
    return MatrixColumn(agent_name(cell), beneath, f"{sum(tasks.values())}/{len(tasks)}", _usd(trials))


def _box(box: Sequence[Line], pages: frozenset[str]) -> Box:
    """Return the entry of one task and cell. It sorts by the share of passes; a box without a judged trial is last."""
    signs = [
        SignedTrial(
            state,
            f"{PAGES}/{row['key']}.html" if row.get("key") in pages else "",
            f"attempt {row['attempt']}: {row['outcome']}",
        )
        for row, state in box
    ]
    judged = [state for _, state in box if state in (PASSED, FAILED)]
    share = judged.count(PASSED) / len(judged) if judged else None
    count = f"{judged.count(PASSED)}/{len(box)}" if len(box) > 1 else ""
    return Box(signs, count, _usd(box), share)


def _usd(trials: Sequence[Line]) -> str:
    """Return the cost of trials; empty if none ran, because a missing cost is not zero."""
    ran = [row["cost_usd"] for row, state in trials if state not in (IDLE, REFUSED) and row["ran"]]
    known = [cost for cost in ran if cost == cost]  # noqa: PLR0124 - a missing value is NaN
    return spend(sum(known), len(ran) - len(known), len(ran)) if ran else ""
