"""The leaderboard, with a line for each cell: its figures, and its text for the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from metrics.ams import ams, task_parts, tier_scores
from metrics.table import GROUPED, categorized, other_tasks, summary, valid
from metrics.uncertainty import FEWEST_TASKS, Draws, bootstrap, intervals, wilson
from runner.records import Scoring
from runner.report import verdict_conditions
from runner.report.competition import BOUNDS, left_out, without_bounds
from runner.report.conclusions import (
    ams_text,
    bound_text,
    caveats,
    fewer_attempts,
    headline,
    lead_sentence,
    small_tiers,
    what_counts,
)
from runner.report.four_criteria import Winner, not_in_the_running, verdict, winners
from runner.report.trial_endings import ending_lines, refused
from runner.report.wording import CONTROL, MARKS, model_name, number, passes, short, span, spend, usd
from runner.terminal.escaping import WIDTH
from runner.terminal.tables import Column, TableText, paragraph, table

_LISTED = 5
"""Number of reasons listed of each kind; the others are in `trials.csv`."""
_LONG = 3 * WIDTH
"""Longest reason, in characters: the output of a failed build has thousands."""
_CELL = ["agent", "model", "dataset", "budget", *MARKS]


def cell_scores(
    trials: pd.DataFrame, scoring: Scoring, draws: Draws | None = None, parts: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Return the figures of each cell, best first within its dataset; index `cell`.

    Columns: agent, model, dataset, budget and marks; `bound`; `other_tasks`, whether it planned other tasks; `rank` (1
    is best; NA for bounds, cells of other tasks, and cells without a valid trial); those of `metrics.table.summary`;
    `AMS`, `AMS_most` and `why` they are missing; `<statistic>_low` and `_high` (bootstrap); `wilson_low` and `_high`
    of the pass rate (NaN where several attempts at a task count); `fewer`, the tasks with fewer than k attempts for
    pass@k; `trials` planned, and `invalid` among them (never run or refused included); `spend_usd` of all trials,
    invalid ones and retries included, and `unpriced`, the trials of unknown spend, which it leaves out (NaN where all
    that ran are unpriced); `judge_usd`, what judge models charged for verdicts, which `spend_usd` leaves out, and
    `judge_unpriced`, the trials of ours where that is unknown. `draws` and `parts` (`metrics.ams.task_parts`) are those
    of the same trials; without them, they are computed here.
    """
    trials = categorized(trials, GROUPED)
    parts = task_parts(trials, scoring) if parts is None else parts
    cells = _figures(trials, scoring, parts)
    cells = cells.join(intervals(draws or bootstrap(trials, scoring, parts), scoring.confidence))
    sizes = trials.groupby(["cell", "task"]).size().groupby("cell").max()
    whole = (sizes == 1) | (scoring.attempts == "latest_completed")  # Wilson's interval needs counts
    counts = zip(cells["passes"], cells["planned"].where(whole, 0), strict=True)
    ends = [wilson(*pair, scoring.confidence) for pair in counts]
    cells[["wilson_low", "wilson_high"]] = pd.DataFrame(ends, index=cells.index)

    cells = _marked(cells, trials, scoring)
    ran = trials["ran"]
    cells["trials"] = trials.groupby("cell").size()
    cells["invalid"] = (~valid(trials)).groupby(trials["cell"]).sum()
    cells["ran"] = ran.groupby(trials["cell"]).sum()
    cells["unpriced"] = (ran & trials["cost_usd"].isna()).groupby(trials["cell"]).sum()
    known = (cells["unpriced"] == 0) | (cells["unpriced"] < cells["ran"])
    cells["spend_usd"] = trials["cost_usd"].groupby(trials["cell"]).sum().where(known)
    cells["judge_usd"] = trials["judge_usd"].groupby(trials["cell"]).sum()
    ours = trials["retries"].notna()  # an import says nothing about judges
    cells["judge_unpriced"] = (ours & trials["judge_usd"].isna()).groupby(trials["cell"]).sum()
    ranked = _ranked(cells)
    return ranked.set_axis(ranked.index.astype("str")).assign(dataset=ranked["dataset"].astype("str"))


def standings(trials: pd.DataFrame, scoring: Scoring) -> pd.DataFrame:
    """Return the cells as `cell_scores` ranks them, without intervals and spend, which no rank needs."""
    return _ranked(_marked(_figures(trials, scoring, task_parts(trials, scoring)), trials, scoring))


def _figures(trials: pd.DataFrame, scoring: Scoring, parts: pd.DataFrame) -> pd.DataFrame:
    cells = trials.drop_duplicates("cell").set_index("cell")[_CELL].sort_index()
    scores = ams(tier_scores(trials, scoring, parts), scoring)
    return cells.join(summary(trials, scoring.attempts, parts)).join(scores)


def _marked(cells: pd.DataFrame, trials: pd.DataFrame, scoring: Scoring) -> pd.DataFrame:
    """Add `fewer`, and whether each cell competes: `bound` and `other_tasks`."""
    return cells.assign(
        fewer=fewer_attempts(trials, scoring.attempts),
        bound=cells["agent"].isin(BOUNDS),
        other_tasks=cells.index.isin(list(other_tasks(without_bounds(trials)))),
    )


def lines(frame: pd.DataFrame) -> dict[Any, dict[str, Any]]:
    """Return the rows of a table by index, in its order, as plain values."""
    return frame.to_dict("index")  # type: ignore[return-value]  # columns of ours are called by strings


def _ranked(cells: pd.DataFrame) -> pd.DataFrame:
    """Sort by AMS, passes, USD per pass and name, and add `rank`.

    Cells that compete come first; then those without a valid trial, those of other tasks, and bounds.
    """
    order = ["dataset", "bound", "other_tasks", "idle", "AMS", "passes", "usd_per_pass", "cell"]
    rising = [True, True, True, True, False, False, True, True]
    idle = cells["valid"] == 0
    cells = cells.assign(idle=idle).sort_values(order, ascending=rising).drop(columns="idle")
    ranks = (cells.groupby("dataset").cumcount() + 1).astype("Int64")
    return cells.assign(rank=ranks.mask(cells["bound"] | cells["other_tasks"] | (cells["valid"] == 0)))


def leaderboard_text(
    trials: pd.DataFrame, cells: pd.DataFrame, draws: Draws, scoring: Scoring, width: int = WIDTH
) -> str:
    """Return the leaderboard as text of this width: the cells and winners of each dataset, then notes.

    `cells` is the result of `cell_scores`; `draws` are those of the same trials.
    """
    parts: list[str] = []
    small = small_tiers(trials, scoring)
    left_off: dict[str, None] = {}
    for name, own in cells.groupby("dataset"):
        found = trials.loc[
            trials["dataset"] == name, ["cell", "task", "status", "reward", "passed", "finished_at"]
        ]
        counted = what_counts(found, scoring.attempts)
        laid = _table(f"{name}: {counted}" if counted else str(name), own, width)
        left_off |= dict.fromkeys(laid.left_out)
        parts.append(laid.text)
        contenders, few = own[own["rank"].notna()], small.get(str(name), ())
        if best := winners(contenders, draws, scoring.confidence, few):
            parts.append(_winners(best, own, width))
            names = {cell: f"{line['agent']} · {model_name(line)}" for cell, line in lines(own).items()}
            sentences = (lead_sentence(best, names, few), not_in_the_running(best, len(contenders)))
            parts += [line for text in sentences for line in paragraph(_without_control(text), width)]
    notes = [f"No room here for {', '.join(left_off)}: leaderboard.csv has all columns."] if left_off else []
    notes += _notes(trials, cells, scoring)
    return "\n".join([*parts, *(line for note in notes for line in paragraph(_without_control(note), width))])


def _without_control(text: str) -> str:
    """Return a text without control characters."""
    return text.translate(CONTROL)


_COLUMNS = (
    Column("#"),
    Column("agent", is_name=True),
    Column("model", is_name=True),
    Column("AMS"),
    Column("passed"),
    Column("reward", leaves=2),
    Column("tokens\n/pass", leaves=3),
    Column("USD\n/pass"),
    Column("inv.", leaves=5),
    Column("USD\nspent", leaves=4),
    Column("turns", leaves=1),
)
"""Columns of the leaderboard. Names, scores with their intervals, and prices are never left out."""


def _table(title: str, cells: pd.DataFrame, width: int) -> TableText:
    """Return a table with two lines for each cell: figures, and beneath them their intervals and marks."""
    scored = headline(cells) == "AMS"
    columns = [column for column in _COLUMNS if scored or column.head != "AMS"]
    budgets = len(set(cells["budget"])) > 1
    rows = []
    for cell in lines(cells).values():
        beneath = [f"budget {cell['budget']}"] if budgets else []
        beneath += [f"({mark.replace('_', ' ')})" for mark in ("bound", "other_tasks") if cell[mark]]
        words = (
            "-" if pd.isna(cell["rank"]) else str(cell["rank"]),
            "\n".join([cell["agent"], *beneath]),
            "\n".join([cell["model"], *(f"({mark})" for mark in MARKS if cell[mark])]),
            *([f"{ams_text(cell)}\n{span(cell['AMS_low'], cell['AMS_high'])}"] if scored else []),
            f"{passes(cell['passes'])}/{cell['planned']}\n{rate_span(cell)}",
            number(cell["mean_reward"], ".2f"),
            bound_text(cell, "tokens_per_pass", short),
            bound_text(cell, "usd_per_pass", usd),
            str(cell["invalid"]),
            spend(cell["spend_usd"], cell["unpriced"], cell["ran"]),
            number(cell["turns"], ".1f"),
        )
        rows.append([_without_control(word) for word in words])
    return table(columns, rows, width, _without_control(title))


_WINNER_COLUMNS = (
    *(Column(head, is_name=True) for head in ("best by", "cell")),
    Column("value"),
    Column("ahead of", is_name=True),
    Column("lead, interval"),
    Column("clear", is_name=True),
)


def _winners(best: Sequence[Winner], cells: pd.DataFrame, width: int) -> str:
    """Return a table of the winners by each criterion, with their leads."""
    names = {cell: f"{line['agent']}\n{model_name(line)}" for cell, line in lines(cells).items()}
    rows = []
    for winner in best:
        others = len(winner.best) - 1
        rival = names[winner.runner_up] if winner.runner_up else ""
        if others:
            rival = f"tied with {names[winner.best[1]] if others == 1 else f'{others} others'}"
        lead = f"{winner.lead}\n{winner.interval}"
        words = (winner.criterion, names[winner.best[0]], winner.value, rival, lead, winner.clear)
        rows.append([_without_control(word) for word in words])
    return f"\n{table(_WINNER_COLUMNS, rows, width, verdict(best)).text}"


def _notes(trials: pd.DataFrame, cells: pd.DataFrame, scoring: Scoring) -> Iterator[str]:
    """Yield the notes beneath the table."""
    kind = "Wilson" if cells["wilson_low"].notna().any() else "bootstrap"
    if cells["AMS"].notna().any():
        yield (
            f"AMS: AgentMeter Score, scoring {scoring.title}, alpha {scoring.alpha:g}; beneath it the "
            f"{scoring.confidence:.0%} interval, bootstrap over tasks."
        )
    yield (
        f"passed: tasks, of those planned; beneath it the {kind} interval of the rate. "
        "inv.: trials that say nothing about the cell; a task with no other trial counts as failed."
    )
    if cells["rank"].notna().sum() > 1:
        yield (
            "clear: told apart from each other cell alone, not corrected for the choice of the best among all; "
            f"few: not with fewer than {FEWEST_TASKS} tasks in a tier."
        )
    if cells[cells["rank"].notna()].duplicated(["dataset", "AMS", "passes", "usd_per_pass"]).any():
        yield "Cells that are equal in AMS, passes and USD per pass stand in the order of their names."
    yield from caveats(trials, cells, scoring)
    yield _counts(trials, cells)
    yield from left_out(trials)
    for why, count in cells[cells["why"] != ""].groupby("why").size().items():
        yield f"No AMS for {count} cells: {why}."
    if trials["scripted"].any():
        yield "(scripted): a fixed script in place of a language model; its dollars are nominal, charged to nobody."
    if trials["replayed"].any():
        yield "(replayed): the model's answers are those of a recorded run; nobody was charged for this one."
    if cells["bound"].any():
        yield "(bound): oracle applies the task's solution, nop does nothing. They bound the dataset and have no rank."
    yield from ending_lines(trials, cells.index)
    tasks = trials[refused(trials)].drop_duplicates(["dataset", "task", "reason"])
    yield from _listed(
        "Refused tasks", tasks["dataset"] + "/" + tasks["task"] + ": " + tasks["reason"].str[9:]
    )
    yield from verdict_conditions.notes(trials, _LISTED)
    invalid = trials[trials["ran"] & ~valid(trials)]
    yield from _listed("Invalid trials", invalid["cell"] + " " + invalid["task"] + ": " + invalid["reason"])


def _counts(trials: pd.DataFrame, cells: pd.DataFrame) -> str:
    """Return the numbers of planned, judged, invalid, refused trials and of those not run, and the USD spent."""
    ran, is_valid, is_refused = trials["ran"], valid(trials), refused(trials)
    spent = spend(cells["spend_usd"].sum(), int(cells["unpriced"].sum()), int(ran.sum()))
    paid = judges_spend(cells)
    judges = f" Judge models took {paid} USD more, which belong to no cell." if paid else ""
    return (
        f"{len(trials)} trials planned: {is_valid.sum()} judged, {(ran & ~is_valid).sum()} invalid, "
        f"{(~ran & ~is_refused).sum()} not run, {is_refused.sum()} refused. Spent, invalid trials and retries "
        f"included: {spent} USD.{judges}"
    )


def rate_span(cell: Mapping[Any, Any]) -> str:
    """Return the interval of the pass rate: Wilson's, or the bootstrap's where passes may be fractions."""
    names = (
        ("pass_rate_low", "pass_rate_high")
        if math.isnan(cell["wilson_low"])
        else ("wilson_low", "wilson_high")
    )
    return span(*(cell[name] for name in names))


def judges_spend(cells: pd.DataFrame) -> str:
    """Return the USD of judge models, with `>=` if some of it is unknown; empty if nothing was paid."""
    paid, unknown = float(cells["judge_usd"].sum()), int(cells["judge_unpriced"].sum())
    return f"{'>=' if unknown else ''}{usd(paid)}" if paid or unknown else ""


def _listed(title: str, lines: pd.Series[str]) -> Iterator[str]:
    if len(lines):
        yield f"{title} ({len(lines)}):"
        yield from (f"  {line if len(line) <= _LONG else line[:_LONG] + '…'}" for line in lines[:_LISTED])
    if len(lines) > _LISTED:
        yield f"  and {len(lines) - _LISTED} more in trials.csv"
