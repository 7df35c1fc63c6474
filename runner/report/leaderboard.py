"""One line per cell: the same figures for the terminal, `leaderboard.csv` and the tracked runs."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from metrics.ams import ams, tier_scores
from metrics.attempts import tries
from metrics.table import other_tasks, summary, valid
from metrics.uncertainty import Draws, bootstrap, intervals, wilson
from runner.records import Scoring
from runner.report.competing import BOUNDS, left_out, without_bounds
from runner.report.criteria import Winner, not_in_the_running, verdict, winners
from runner.report.wording import CONTROL, MARKS, model_name, number, short, span, spend, usd

WIDTH = 100
"""Characters a line of the text, whatever the terminal."""
_SHOWN = 5
"""Reasons listed of each kind; the rest is in `trials.csv`."""
_LONG = 3 * WIDTH
"""Characters of a reason, whose end is what says what to do; that of a build that failed has thousands."""
_FEW = 10
"""Tasks of a tier, below which its intervals are said to be too narrow; coverage: docs/metrics.md, How sure."""
_CELL = ["agent", "model", "dataset", "budget", *MARKS]


def cell_scores(trials: pd.DataFrame, scoring: Scoring, draws: Draws | None = None) -> pd.DataFrame:
    """Everything that is said of each cell, best first within its dataset; index `cell`.

    Columns: what the cell is; `bound`; `other_tasks`, whether it planned other tasks than the others; `rank` (1 is
    best, NA for bounds and cells of other tasks, which do not compete and come last); those of
    `metrics.table.summary`; `AMS` and `why` it is missing; `<statistic>_low` and `_high` (bootstrap over tasks) and
    `wilson_low` and `_high` of the pass rate (NaN where several attempts at a task count); `trials` planned, `invalid`
    among them (never run or refused included); `spend_usd` of all trials, invalid ones and retries included, and
    `unpriced`, the trials whose spend is unknown and so not in it (NaN where that is all that ran); `judge_usd`, what
    judge models are known to have charged for verdicts, which is no part of it, and `judge_unpriced`, the trials of
    ours where that is unknown. `draws` are those of the same trials, drawn here if there are none.
    """
    cells = trials.groupby("cell")[_CELL].first()
    cells = cells.join(summary(trials, scoring.attempts)).join(ams(tier_scores(trials, scoring), scoring))
    cells = cells.join(intervals(draws or bootstrap(trials, scoring), scoring.confidence))
    whole = scoring.attempts == "latest_completed"  # Wilson's is of counts, and these may be fractions
    counts = zip(cells["passes"], cells["planned"] if whole else [0] * len(cells), strict=True)
    ends = [wilson(*pair, scoring.confidence) for pair in counts]
    cells[["wilson_low", "wilson_high"]] = pd.DataFrame(ends, index=cells.index)

    cells["bound"] = cells["agent"].isin(BOUNDS)
    cells["other_tasks"] = cells.index.isin(list(other_tasks(without_bounds(trials))))
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
    return _ranked(cells)


def lines(frame: pd.DataFrame) -> dict[Any, dict[str, Any]]:
    """Rows of a table by index, in its order, as plain values."""
    return frame.to_dict("index")  # type: ignore[return-value]  # columns of ours are called by strings


def _ranked(cells: pd.DataFrame) -> pd.DataFrame:
    """By AMS, then passes, then USD per pass, then name; who competes, then cells of other tasks, then bounds."""
    order = ["dataset", "bound", "other_tasks", "AMS", "passes", "usd_per_pass", "cell"]
    rising = [True, True, True, False, False, True, True]
    cells = cells.sort_values(order, ascending=rising)
    ranks = (cells.groupby("dataset").cumcount() + 1).astype("Int64")
    return cells.assign(rank=ranks.mask(cells["bound"] | cells["other_tasks"]))


def leaderboard_text(trials: pd.DataFrame, cells: pd.DataFrame, draws: Draws, scoring: Scoring) -> str:
    """Plain text of `WIDTH` columns: per dataset its cells and its winners, then what must be known to read it.

    `cells` is `cell_scores`'s, `draws` those of the same trials.
    """
    parts: list[RenderableType] = []
    for name, of in cells.groupby("dataset"):
        parts.append(_table(str(name), of))
        contenders = of[of["rank"].notna()]
        if best := winners(contenders, draws, scoring.confidence):
            parts.append(_winners(best, of))
            if absent := not_in_the_running(best, len(contenders)):
                parts.append(Text(absent))
    notes = [Text(note) for note in _notes(trials, cells, scoring)]
    written = io.StringIO()
    Console(file=written, width=WIDTH, color_system=None, force_terminal=False).print(Group(*parts, *notes))
    return "\n".join(line.rstrip() for line in written.getvalue().translate(CONTROL).rstrip().split("\n"))


def _table(dataset: str, cells: pd.DataFrame) -> Table:
    """Each cell on two lines: figures, and beneath them what qualifies them."""
    columns = (
        "#",
        "agent",
        "model",
        "AMS",
        "passed",
        "reward",
        "tokens\n/pass",
        "USD\n/pass",
        "inv.",
        "USD\nspent",
    )
    table = Table(
        title=Text(dataset), title_justify="left", box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=0
    )
    for name in (*columns, "turns"):
        table.add_column(name, justify="left" if name in ("agent", "model") else "right", overflow="fold")
    budgets = len(set(cells["budget"])) > 1
    for _, cell in cells.iterrows():
        beneath = [f"budget {cell['budget']}"] if budgets else []
        beneath += [f"({mark.replace('_', ' ')})" for mark in ("bound", "other_tasks") if cell[mark]]
        words = (
            "-" if pd.isna(cell["rank"]) else str(cell["rank"]),
            "\n".join([cell["agent"], *beneath]),
            "\n".join([cell["model"], *(f"({mark})" for mark in MARKS if cell[mark])]),
            f"{number(cell['AMS'], '.3f')}\n{span(cell['AMS_low'], cell['AMS_high'])}",
            f"{cell['passes']:g}/{cell['planned']}\n{span(cell['wilson_low'], cell['wilson_high'])}",
            number(cell["mean_reward"], ".2f"),
            number(cell["tokens_per_pass"], short),
            number(cell["usd_per_pass"], usd),
            str(cell["invalid"]),
            spend(cell["spend_usd"], cell["unpriced"], cell["ran"]),
            number(cell["turns"], ".1f"),
        )
        table.add_row(*map(Text, words))  # as text: a name may look like rich's markup
    return table


def _winners(best: Sequence[Winner], cells: pd.DataFrame) -> Table:
    """Who is best by what, by how much, and whether that is more than chance; each name on two lines."""
    names = {cell: f"{of['agent']}\n{model_name(of)}" for cell, of in lines(cells).items()}

    table = Table(
        title=f"\n{verdict(best)}",
        title_justify="left",
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for head in ("best by", "cell", "value", "ahead of", "lead, interval", "clear"):
        table.add_column(head, overflow="fold")
    for winner in best:
        others = len(winner.best) - 1
        rival = names[winner.runner_up] if winner.runner_up else ""
        if others:
            rival = f"tied with\n{names[winner.best[1]] if others == 1 else f'{others} others'}"
        lead = f"{winner.lead}\n{winner.interval}"
        words = (winner.criterion, names[winner.best[0]], winner.value, rival, lead, winner.clear)
        table.add_row(*map(Text, words))
    return table


def _notes(trials: pd.DataFrame, cells: pd.DataFrame, scoring: Scoring) -> Iterator[str]:
    """What a reader needs beneath the table."""
    beneath = "; beneath it the Wilson interval of the rate" if cells["wilson_low"].notna().any() else ""
    yield (
        f"AMS: AgentMeter Score, scoring {scoring.title}, alpha {scoring.alpha:g}; beneath it the "
        f"{scoring.confidence:.0%} interval, bootstrap over tasks. passed: tasks, of those planned{beneath}. "
        "inv.: trials that say nothing about the cell; a task with no other trial counts as failed."
    )
    if cells["rank"].notna().sum() > 2:  # noqa: PLR2004 - two have one lead between them
        yield "clear: of these two cells alone, not corrected for the choice of the best among all."
    if cells[cells["rank"].notna()].duplicated(["dataset", "AMS", "passes", "usd_per_pass"]).any():
        yield "Cells that are equal in AMS, passes and USD per pass stand in the order of their names."
    yield from small_tiers(trials, scoring)
    yield from lower_bounds(trials, scoring)
    ran = trials["ran"]
    spent = spend(cells["spend_usd"].sum(), int(cells["unpriced"].sum()), int(ran.sum()))
    refused = trials["reason"].str.startswith("refused: ")
    yield (
        f"{len(trials)} trials planned: {valid(trials).sum()} judged, {(ran & ~valid(trials)).sum()} invalid, "
        f"{(~ran & ~refused).sum()} not run, {refused.sum()} refused. Spent, invalid trials and retries included: "
        f"{spent} USD.{judged(cells)}"
    )
    yield from left_out(trials)
    for why, of in cells[cells["why"] != ""].groupby("why"):
        yield f"No AMS for {len(of)} cells: {why}."
    if trials["scripted"].any():
        yield "(scripted): a fixed script in place of a language model; its dollars are nominal, charged to nobody."
    if trials["replayed"].any():
        yield "(replayed): the model's answers are those of a recorded run; nobody was charged for this one."
    if cells["bound"].any():
        yield "(bound): oracle applies the task's solution, nop does nothing. They bound the dataset and have no rank."
    tasks = trials[refused].drop_duplicates(["dataset", "task"])
    yield from _listed(
        "Refused tasks", tasks["dataset"] + "/" + tasks["task"] + ": " + tasks["reason"].str[9:]
    )
    invalid = trials[ran & ~valid(trials)]
    yield from _listed("Invalid trials", invalid["cell"] + " " + invalid["task"] + ": " + invalid["reason"])


def judged(cells: pd.DataFrame) -> str:
    """A sentence when judge models were paid for verdicts; empty if none was."""
    paid = judges_spend(cells)
    return f" Judge models took {paid} USD more, which are no cell's." if paid else ""


def judges_spend(cells: pd.DataFrame) -> str:
    """USD of judge models, `>=` where some of it is unknown; empty if none was paid."""
    paid, unknown = float(cells["judge_usd"].sum()), int(cells["judge_unpriced"].sum())
    return f"{'>=' if unknown else ''}{usd(paid)}" if paid or unknown else ""


def small_tiers(trials: pd.DataFrame, scoring: Scoring) -> Iterator[str]:
    """A line when tiers that AMS counts have too few tasks for its intervals."""
    tasks = trials.drop_duplicates(["dataset", "task"]).groupby(["dataset", "tier"], as_index=False).size()
    rows = tasks.itertuples(index=False, name=None)
    counted = {name for name, tier in scoring.tiers.items() if tier.weight}
    few = [f"{dataset} {tier} {count}" for dataset, tier, count in rows if count < _FEW and tier in counted]
    if few:
        yield f"Tiers of fewer than {_FEW} tasks ({', '.join(few)}): intervals over tasks are too narrow."


def lower_bounds(trials: pd.DataFrame, scoring: Scoring) -> Iterator[str]:
    """A line when pass@k has fewer than k valid attempts at some tasks."""
    if scoring.attempts.startswith("pass@"):
        attempts = valid(trials).groupby([trials["cell"], trials["task"]]).sum()
        if few := int((attempts < tries(scoring.attempts)).sum()):
            yield (
                f"{scoring.attempts}: {few} of {len(attempts)} tasks of cells have fewer valid attempts; what is said "
                "of them is a lower bound."
            )


def _listed(title: str, lines: pd.Series[str]) -> Iterator[str]:
    if len(lines):
        yield f"{title} ({len(lines)}):"
        yield from (f"  {line if len(line) <= _LONG else line[:_LONG] + '…'}" for line in lines[:_SHOWN])
    if len(lines) > _SHOWN:
        yield f"  and {len(lines) - _SHOWN} more in trials.csv"
