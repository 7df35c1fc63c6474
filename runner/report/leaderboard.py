"""One line per cell: the same figures for the terminal, `leaderboard.csv` and the tracked runs."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator

import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from metrics.ams import ams, tier_scores
from metrics.table import summary, valid
from metrics.uncertainty import bootstrap, intervals, wilson
from runner.records import Scoring

WIDTH = 100
"""Characters a line of the text, whatever the terminal."""
BOUNDS = ("oracle", "nop")
"""Agents that bound a dataset and compete with nobody."""
_SHOWN = 5
"""Reasons listed of each kind; the rest is in `trials.csv`."""
_CELL = ["agent", "model", "dataset", "budget", "scripted", "replayed"]


def cell_scores(trials: pd.DataFrame, scoring: Scoring) -> pd.DataFrame:
    """Everything that is said of each cell, best first within its dataset, bounds last; index `cell`.

    Columns: what the cell is; `bound`, `rank` (1 is best, NA for bounds); those of `metrics.table.summary`; `AMS` and
    `why` it is missing; `<statistic>_low` and `_high` (bootstrap over tasks) and `wilson_low` and `_high` of the pass
    rate; `trials` planned, `invalid` among them (never run or refused included); `spend_usd` of all trials, invalid
    ones and retries included, and `unpriced`, the trials whose spend is unknown and so not in it.
    """
    cells = trials.groupby("cell")[_CELL].first()
    cells = cells.join(summary(trials, scoring.attempts)).join(ams(tier_scores(trials, scoring), scoring))
    cells = cells.join(intervals(bootstrap(trials, scoring), scoring.confidence))
    ends = [wilson(*pair, scoring.confidence) for pair in zip(cells["passes"], cells["planned"], strict=True)]
    cells[["wilson_low", "wilson_high"]] = pd.DataFrame(ends, index=cells.index)

    ran = trials["started_at"].notna()
    cells["trials"] = trials.groupby("cell").size()
    cells["invalid"] = (~valid(trials)).groupby(trials["cell"]).sum()
    cells["spend_usd"] = trials["cost_usd"].groupby(trials["cell"]).sum()
    cells["ran"] = ran.groupby(trials["cell"]).sum()
    cells["unpriced"] = (ran & trials["cost_usd"].isna()).groupby(trials["cell"]).sum()
    return _ranked(cells)


def _ranked(cells: pd.DataFrame) -> pd.DataFrame:
    """By AMS, then passes, then USD per pass, then name."""
    order = ["dataset", "bound", "AMS", "passes", "usd_per_pass", "cell"]
    rising = [True, True, False, False, True, True]
    cells = cells.assign(bound=cells["agent"].isin(BOUNDS)).sort_values(order, ascending=rising)
    ranks = (cells.groupby(["dataset", "bound"]).cumcount() + 1).astype("Int64")
    return cells.assign(rank=ranks.mask(cells["bound"]))


def leaderboard_text(trials: pd.DataFrame, scoring: Scoring) -> str:
    """Plain text of `WIDTH` columns: a table per dataset, then what must be known to read it."""
    cells = cell_scores(trials, scoring)
    parts: list[RenderableType] = [_table(str(name), of) for name, of in cells.groupby("dataset")]
    notes = [Text(note) for note in _notes(trials, cells, scoring)]
    written = io.StringIO()
    Console(file=written, width=WIDTH, color_system=None, force_terminal=False).print(Group(*parts, *notes))
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines())


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
        title=dataset, title_justify="left", box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=0
    )
    for name in (*columns, "turns"):
        table.add_column(name, justify="left" if name in ("agent", "model") else "right", overflow="fold")
    budgets = len(set(cells["budget"])) > 1
    for _, cell in cells.iterrows():
        beneath = [f"budget {cell['budget']}"] if budgets else []
        beneath += ["(bound)"] if cell["bound"] else []
        table.add_row(
            "-" if cell["bound"] else str(cell["rank"]),
            "\n".join([cell["agent"], *beneath]),
            "\n".join([cell["model"], *(f"({mark})" for mark in ("scripted", "replayed") if cell[mark])]),
            f"{_number(cell['AMS'], '.3f')}\n{_range(cell, 'AMS')}",
            f"{cell['passes']:g}/{cell['planned']}\n{_range(cell, 'wilson')}",
            _number(cell["mean_reward"], ".2f"),
            _number(cell["tokens_per_pass"], _short),
            _number(cell["usd_per_pass"], _usd),
            str(cell["invalid"]),
            _spend(cell["spend_usd"], cell["unpriced"], cell["ran"]),
            _number(cell["turns"], ".1f"),
        )
    return table


def _notes(trials: pd.DataFrame, cells: pd.DataFrame, scoring: Scoring) -> Iterator[str]:
    """What a reader needs beneath the table."""
    yield (
        f"AMS: AgentMeter Score, scoring {scoring.name}, alpha {scoring.alpha:g}; beneath it the "
        f"{scoring.confidence:.0%} interval, bootstrap over tasks. passed: tasks, of those planned; beneath it the "
        "Wilson interval of the rate. inv.: trials that say nothing about the cell; their tasks count as failed."
    )
    ran = trials["started_at"].notna()
    spent = _spend(cells["spend_usd"].sum(), int(cells["unpriced"].sum()), int(ran.sum()))
    refused = trials["reason"].str.startswith("refused: ")
    yield (
        f"{len(trials)} trials planned: {valid(trials).sum()} judged, {(ran & ~valid(trials)).sum()} invalid, "
        f"{(~ran & ~refused).sum()} not run, {refused.sum()} refused. Spent, invalid trials and retries included: "
        f"{spent} USD."
    )
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


def _listed(title: str, lines: pd.Series[str]) -> Iterator[str]:
    if len(lines):
        yield f"{title} ({len(lines)}):"
        yield from (f"  {line[: WIDTH - 2]}" for line in lines[:_SHOWN])
    if len(lines) > _SHOWN:
        yield f"  and {len(lines) - _SHOWN} more in trials.csv"


def _number(value: float, style: str | Callable[[float], str]) -> str:
    """Missing is a dash, and an infinite price per pass says why."""
    if math.isnan(value):
        return "-"
    if math.isinf(value):
        return "no pass"
    return format(value, style) if isinstance(style, str) else style(value)


def _range(cell: pd.Series, name: str) -> str:
    low, high = cell[f"{name}_low"], cell[f"{name}_high"]
    return "" if math.isnan(low) else f"{low:.2f}-{high:.2f}"


def _short(count: float) -> str:
    """Three digits and a unit: 870, 12.3k, 4.56M."""
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.3g}{unit}"
    return f"{count:.0f}"


def _usd(amount: float) -> str:
    """Cents, or two digits where cents would say too little."""
    return f"{amount:.2g}" if 0 < 10 * amount < 1 else f"{amount:.2f}"


def _spend(amount: float, unpriced: int, ran: int) -> str:
    """Never more certain than it is: `>=` where some trials that ran have no price, a dash where none has."""
    if unpriced and unpriced == ran:
        return "-"
    return f">={_usd(amount)}" if unpriced else _usd(amount)
