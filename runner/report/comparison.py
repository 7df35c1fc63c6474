"""Agreement of two scorings of the same cells (AgentMeter section 5.4), and the rank of each cell under both."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from metrics.ams import ams, tier_scores
from metrics.checks import check
from metrics.errors import TableError
from metrics.ranking import agreement
from metrics.table import summary
from metrics.uncertainty import BETTER
from runner.errors import ConfigError
from runner.files import write_atomically
from runner.records import AXES, Record, Scoring
from runner.report.competition import contenders, left_out
from runner.report.csv_cells import to_csv
from runner.report.rescoring import AGREEMENT, agreement_words, figures, labels
from runner.report.trial_sources import Source, digest, labelled, read_source
from runner.report.wording import number
from runner.terminal.escaping import width
from runner.terminal.suggestions import suggest
from runner.terminal.tables import Column, TableText, paragraph, table

COMPARISONS = "comparisons"
"""Folder within a sweep's, with a JSON and a CSV file for each comparison."""
METRICS = {**BETTER, "mean_reward": 1, "turns": -1}
"""Metric by which cells are compared -> 1 if more is better, -1 if less is."""
_SHARES = {"AMS", "pass_rate", "mean_reward"}
"""Metrics in [0, 1], between which a difference has a meaning."""


class Side(NamedTuple):
    """One scoring of some cells."""

    source: Source
    metric: str
    scoring: Scoring
    tasks: frozenset[str] | None = None
    """Tasks that count; None for all tasks."""

    @property
    def name(self) -> str:
        """Name for people and for files."""
        return (
            f"{self.source.name}:{self.metric}{'' if self.tasks is None else f' on {len(self.tasks)} tasks'}"
        )

    def where(self, outputs: Path) -> Path:
        """Return the path of its source, relative for a sweep in `outputs`, so that `outputs` may be moved."""
        path = self.source.path
        return path.relative_to(outputs) if path.is_relative_to(outputs) else path

    def trials(self) -> pd.DataFrame:
        """Return the trials of its tasks, bounds included, with the tiers of the scoring. Raises `ConfigError`."""
        trials = labelled(self.source.trials, self.scoring)
        if self.tasks is None:
            return trials
        if absent := self.tasks - set(trials["task"]):
            raise ConfigError(f"{self.source.name} has no task {', '.join(sorted(absent))} of the core set.")
        return trials[trials["task"].isin(self.tasks)]

    def description(self, outputs: Path) -> dict[str, Any]:
        """Return the identity of this side, for the file of the comparison."""
        return {
            "source": self.source.name,
            "metric": self.metric,
            "tasks": None if self.tasks is None else sorted(self.tasks),
            "path": str(self.where(outputs)),
            "trials": self.source.digest,
            "digest": digest(labelled(self.source.trials, self.scoring), self.scoring),
        }


class Comparison(Record):
    """The result of `job=compare`: a file in the folder of the sweep on the left, which tracked runs show."""

    name: str
    """Name of the file, and of the family of tracked metrics."""
    left: dict[str, Any]
    right: dict[str, Any]
    agreement: dict[str, Any]
    """Fields of `metrics.ranking.Agreement`; None where a number is undefined."""


def compare(left: Side, right: Side) -> tuple[Comparison, pd.DataFrame, str]:
    """Return the agreement of two sides, a table with a row for each cell, and the text of both.

    Columns of the rows: `cell`, `left`, `left_rank`, `right`, `right_rank` (1 is best; missing where a side has no such
    cell) and `difference`, right less left, missing where the metrics have different units.

    Cells are the same if agent and model are, and dataset and budget where a side has several of them. Raises
    `ConfigError` for a metric that does not exist and `TableError` for trials that cannot be scored.
    """
    scores = _scores(left, right)
    signed = [METRICS[side.metric] * column for side, column in zip((left, right), scores, strict=True)]
    comparable = left.metric == right.metric or {left.metric, right.metric} <= _SHARES
    found = agreement(signed[0], signed[1])
    if not comparable:
        units = f"{left.metric} and {right.metric} have different units, so no MAE"
        found = found._replace(mae=math.nan, why="; ".join(filter(None, [found.why, units])))
    cells = _ranked(scores, signed)
    if not comparable:
        cells["difference"] = math.nan
    scorings, outputs = _scorings(left, right), left.source.path.parent
    comparison = Comparison(
        name=_name(left, right, outputs),
        left=left.description(outputs) | {"scoring": scorings[0]},
        right=right.description(outputs) | {"scoring": scorings[1]},
        agreement=figures(found),
    )
    notes = [f"Scored by {scorings[0]}; on the right by {scorings[1]}."]
    notes += [f"Not all could be said: {found.why}."] if found.why else []
    notes += [f"{side.name}: {line}" for side in (left, right) for line in left_out(side.trials())]
    wide = width()
    row = (str(found.cells), *agreement_words(found))
    text = "\n".join(
        [
            table((Column("cells"), *AGREEMENT), [row], wide, f"{left.name} against {right.name}").text,
            _table(cells, left, right, wide).text,
            *(line for note in notes for line in paragraph(note, wide)),
        ]
    )
    return comparison, cells, text


def _ranked(scores: Sequence[pd.Series[float]], signed: Sequence[pd.Series[float]]) -> pd.DataFrame:
    """Return the table of cells by the scores of both sides; more of `signed` is better."""
    ranks = [column.rank(ascending=False, method="min") for column in signed]
    cells = pd.DataFrame(
        {"left": scores[0], "left_rank": ranks[0], "right": scores[1], "right_rank": ranks[1]}
    ).sort_values("left_rank", kind="stable")
    cells["difference"] = cells["right"] - cells["left"]
    cells.insert(0, "cell", [" · ".join(map(str, key)) for key in cells.index])
    return cells.reset_index(drop=True)


def _scores(left: Side, right: Side) -> list[pd.Series[float]]:
    """Return the scores of both sides, indexed by the parts of the cells' names that differ."""
    tables = [_cells(side) for side in (left, right)]
    several = [name for name in ("dataset", "budget") if any(len(set(table[name])) > 1 for table in tables)]
    return [table.set_index(["agent", "model", *several])["score"] for table in tables]


def write_comparison(sweep: Path, found: Comparison, cells: pd.DataFrame) -> Path:
    """Write a comparison into the folder of the sweep on its left; return the JSON file."""
    path = sweep / COMPARISONS / f"{found.name}.json"
    write_atomically(path, found.model_dump_json(indent=1).encode())
    write_atomically(path.with_suffix(".csv"), to_csv(cells, index=False).encode())
    return path


def current_comparisons(sweep: Path, state: Callable[[], str]) -> dict[Path, Comparison]:
    """Return the comparisons of this sweep that still hold, by file.

    A comparison holds while the trials and the scoring on the left have the digest that `state` returns, and the trials
    on the right are unchanged or gone.
    """
    files = sorted((sweep / COMPARISONS).glob("*.json"))
    if not files:
        return {}
    found = {file: Comparison.model_validate_json(file.read_bytes()) for file in files}
    now = state()
    return {
        file: each for file, each in found.items() if each.left["digest"] == now and _is_current(each, sweep)
    }


def _is_current(found: Comparison, sweep: Path) -> bool:
    """Return whether the trials on the right are unchanged or gone."""
    path = sweep.parent / found.right["path"]  # an absolute path stays as it is
    if not path.exists():
        return True
    try:
        return bool(read_source(str(path), sweep.parent).digest == found.right["trials"])
    except (ConfigError, TableError):  # unreadable trials are not those that were compared
        return False


def _scorings(left: Side, right: Side) -> list[str]:
    """Return names for the two scorings: each has its alpha, and the keys that differ if the titles are the same."""
    scorings = [left.scoring, right.scoring]
    return [
        name if "alpha=" in name else f"{name} alpha={scoring.alpha:g}"
        for name, scoring in zip(labels(scorings), scorings, strict=True)
    ]


def _name(left: Side, right: Side, outputs: Path) -> str:
    """Return the name of the file.

    It has a digest where the right side is scored differently, has fewer tasks, or cannot be found by its name alone.
    """
    name, where = f"{left.metric}_vs_{right.name}", str(right.where(outputs))
    place = [] if where == right.source.name else [where]
    if left.scoring == right.scoring and right.tasks is None and not place:
        return _slug(name)
    if left.scoring != right.scoring:
        name = f"{name}_{right.scoring.title}_alpha_{right.scoring.alpha:g}"
    what = json.dumps([right.scoring.model_dump(mode="json"), sorted(right.tasks or ()), *place])
    return f"{_slug(name)}_{hashlib.sha256(what.encode()).hexdigest()[:8]}"


def _cells(side: Side) -> pd.DataFrame:
    """Return agent, model, dataset, budget and `score` of each cell that competes."""
    if side.metric not in METRICS:
        raise ConfigError(f"no metric '{side.metric}'. {suggest(side.metric, METRICS)}")
    trials = check(contenders(side.trials()), side.scoring if side.metric == "AMS" else None, columns=AXES)
    if side.metric == "AMS":
        scores = ams(tier_scores(trials, side.scoring), side.scoring)["AMS"]
    else:
        scores = summary(trials, side.scoring.attempts)[side.metric]
    cells = trials.groupby("cell")[[*AXES]].first()
    return cells.assign(score=scores)


def _table(cells: pd.DataFrame, left: Side, right: Side, wide: int) -> TableText:
    columns = (
        Column("cell", is_name=True),
        Column(f"left:\n{left.metric}"),
        Column("rank"),
        Column(f"right:\n{right.metric}"),
        Column("rank"),
        Column("difference", leaves=1),
    )
    rows = []
    for _, cell in cells.iterrows():
        ranks = [number(cell[name], ".0f") for name in ("left_rank", "right_rank")]
        values = [number(cell[name], ".4g") for name in ("left", "right", "difference")]
        rows.append((cell["cell"], values[0], ranks[0], values[1], ranks[1], values[2]))
    return table(columns, rows, wide)


def _slug(words: str) -> str:
    """Return a name that MLflow and file systems accept."""
    return re.sub(r"[^\w.-]+", "_", words)[:150]
