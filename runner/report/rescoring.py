"""Rank one sweep under several scorings, and compare each ranking with the one by the sweep's own scoring."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from metrics.ams import ams, tier_scores
from metrics.checks import check
from metrics.ranking import Agreement, agreement
from metrics.table import select
from runner.files import write_atomically
from runner.records import Scoring
from runner.report.competition import contenders, left_out
from runner.report.csv_cells import to_csv
from runner.report.trial_sources import digest, labelled, sweep_trials
from runner.report.wording import number
from runner.sweeps import sweep_file
from runner.sweeps.yaml_files import leaves
from runner.terminal.escaping import WIDTH, width
from runner.terminal.tables import Column, paragraph, table

SENSITIVITY = ("sensitivity.csv", "sensitivity.json", "sensitivity.txt")
"""Files that `compare_scorings` writes into a sweep's folder."""
_IN_TITLE = {"name", "labels", "calibrated"}
"""Keys of a scoring that its title includes."""
AGREEMENT = (
    Column("Spearman"),
    Column("Kendall", leaves=1),
    Column("top 1"),
    Column("top 3", leaves=2),
    Column("MAE", leaves=3),
)
"""Columns of `agreement_words`."""
_COLUMNS = (
    Column("scoring", is_name=True),
    *AGREEMENT,
    Column("moved"),
    Column("best cell", is_name=True),
)

Scored: TypeAlias = "dict[str, dict[str, pd.Series[float]]]"
"""Dataset -> name of a scoring -> AMS by cell."""


def rescore(sweep: Path, rescorings: Callable[[Scoring], Sequence[Scoring]]) -> str:
    """Make the requested scoring, if any, the sweep's own; return the changes for people.

    `rescorings` returns the requested scorings of a sweep with a given scoring. Raises `ConfigError` when the folder
    holds no sweep, and `TableError` when its tasks are not those of the tiers file or have too many attempts to choose
    from; then nothing is changed.
    """
    if not (wanted := rescorings(sweep_file.read(sweep).scoring)):
        return ""
    plan, _, trials = sweep_trials(sweep, sweep.parent)
    asked = wanted[0]
    select(labelled(trials, asked), asked.attempts)
    if asked == plan.scoring:
        return ""
    before, after = (
        dict(
            leaves({**scoring.model_dump(exclude={"labels"}), "cbq": scoring.cbq})
        )  # its default is not dumped
        for scoring in (plan.scoring, asked)
    )
    changed = [key for key in before | after if before.get(key) != after.get(key)]
    changes = ", ".join(f"{key} {before.get(key, '-')} -> {after.get(key, '-')}" for key in changed)
    now = sweep_file.read(sweep)  # the sweep may have started again while records were read
    sweep_file.write(sweep, now.model_copy(update={"scoring": asked}))
    (sweep / "projected.json").unlink(missing_ok=True)  # the tables are outdated
    return f"Scored anew: {changes or 'other labels'}."


def compare_scorings(sweep: Path, scorings: Sequence[Scoring]) -> str:
    """Rank the cells of each dataset by AMS under the sweep's own scoring and each of these; write `SENSITIVITY` and
    return its text.

    sensitivity.csv has a row per (dataset, cell, scoring): AMS and rank (1 is best, ties share the smaller). Bounds
    and cells of other tasks take no part. Raises `ConfigError` when the folder holds no sweep, and `TableError` when a
    scoring does not fit.
    """
    plan, _, planned = sweep_trials(sweep, sweep.parent)
    trials = contenders(planned)
    every = [plan.scoring, *(scoring for scoring in scorings if scoring != plan.scoring)]
    names = [f"{name} (the sweep's own)" if n == 0 else name for n, name in enumerate(labels(every))]
    scored = _scored(trials, dict(zip(names, every, strict=True)))
    agreements = {
        dataset: {name: agreement(columns[names[0]], column) for name, column in columns.items()}
        for dataset, columns in scored.items()
    }
    cell_names = _cell_names(trials)

    def text(wide: int) -> str:
        texts = [_text(dataset, scored[dataset], agreements[dataset], cell_names, wide) for dataset in scored]
        return "\n".join([*texts, *(line for each in left_out(planned) for line in paragraph(each, wide))])

    found = {
        "base": names[0],
        "digest": digest(labelled(planned, plan.scoring), plan.scoring),
        "scorings": {
            name: scoring.model_dump(mode="json") for name, scoring in zip(names, every, strict=True)
        },
        "agreement": {
            dataset: {name: figures(each) for name, each in own.items()}
            for dataset, own in agreements.items()
        },
    }
    contents = (to_csv(pd.concat(_long(scored)), index=False), json.dumps(found, indent=1), text(WIDTH))
    for file, content in zip(SENSITIVITY, contents, strict=True):
        write_atomically(sweep / file, content.encode())
    return f"{text(width())}\nWritten to {sweep / SENSITIVITY[0]} and beside it."


def current_ranking(sweep: Path, state: Callable[[], str]) -> list[Path]:
    """Return the files `SENSITIVITY` of this sweep; none unless its trials and scoring have the digest that `state`
    returns.
    """
    files = [sweep / name for name in SENSITIVITY]
    fresh = files[1].exists() and json.loads(files[1].read_bytes())["digest"] == state()
    return files if fresh else []


def labels(scorings: Sequence[Scoring]) -> list[str]:
    """Return distinct names: the title of each, with the keys that differ between scorings of that title."""
    values = [dict(leaves(scoring.model_dump(exclude=_IN_TITLE))) for scoring in scorings]
    titles = [scoring.title for scoring in scorings]
    names = []
    for name, own in zip(titles, values, strict=True):
        rivals = [rival for rival, title in zip(values, titles, strict=True) if title == name]
        varied = [key for key in own if any(rival.get(key) != own[key] for rival in rivals)]
        names.append(" ".join([name, *(f"{key}={own[key]}" for key in varied)]))
    return names


def figures(found: Agreement) -> dict[str, Any]:
    """Return an agreement for JSON: None instead of NaN."""
    return {key: None if value != value else value for key, value in found._asdict().items()}  # noqa: PLR0124 - NaN


def agreement_words(found: Agreement) -> list[str]:
    """Return Spearman, Kendall, both agreements at the top, and MAE, for people."""
    tops = ["-" if top is None else "same" if top else "differs" for top in (found.top1, found.topk)]
    return [number(found.spearman, ".3f"), number(found.kendall, ".3f"), *tops, number(found.mae, ".4f")]


def _cell_names(trials: pd.DataFrame) -> dict[str, str]:
    """Return names of cells within their dataset, with the budget where there are several."""
    words = ["agent", "model", *(["budget"] if len(set(trials["budget"])) > 1 else [])]
    cells = trials.groupby("cell")[words].first()
    return {str(cell): " · ".join(map(str, row)) for cell, row in cells.iterrows()}


def _scored(trials: pd.DataFrame, scorings: Mapping[str, Scoring]) -> Scored:
    """Return the AMS of the cells of each dataset under each scoring."""
    scores = {name: _scores(trials, scoring) for name, scoring in scorings.items()}
    datasets = trials.groupby("cell")["dataset"].first()
    return {
        str(dataset): {name: column[cells] for name, column in scores.items()}
        for dataset, cells in datasets.groupby(datasets).groups.items()
    }


def _scores(trials: pd.DataFrame, scoring: Scoring) -> pd.Series[float]:
    """Return AMS by cell."""
    rows = check(labelled(trials, scoring), scoring)
    return ams(tier_scores(rows, scoring), scoring)["AMS"]


def _ranks(scores: pd.Series[float]) -> pd.Series[float]:
    return scores.rank(ascending=False, method="min")


def _long(scored: Scored) -> Iterator[pd.DataFrame]:
    for dataset, own in scored.items():
        for name, scores in own.items():
            columns = {"dataset": dataset, "cell": scores.index, "scoring": name, "AMS": scores.to_numpy()}
            yield pd.DataFrame({**columns, "rank": _ranks(scores).to_numpy()})


def _text(
    dataset: str,
    scores: dict[str, pd.Series[float]],
    found: dict[str, Agreement],
    names: dict[str, str],
    wide: int,
) -> str:
    """Return the agreement of each scoring with the first, and the ranks of each cell."""
    ranks = pd.DataFrame({name: _ranks(column) for name, column in scores.items()})
    base = next(iter(scores))
    agreements = []
    for name, column in scores.items():
        moved = int((ranks[name] != ranks[base]).sum())
        first, *tied = [names[str(cell)] for cell in column.index[column == column.max()]] or ["-"]
        best = f"{first} (tied with {len(tied)})" if tied else first
        agreements.append((name, *agreement_words(found[name]), f"{moved}/{len(column)}", best))
    cells = []
    for cell in ranks[base].sort_values(kind="stable").index:
        places = [
            f"{place:.0f}" for place in (ranks.loc[cell, base], ranks.loc[cell].min(), ranks.loc[cell].max())
        ]
        cells.append((names[str(cell)], number(float(scores[base][cell]), ".3f"), *places))
    heads = (Column("cell", is_name=True), *map(Column, ("AMS", "rank", "best", "worst")))
    why = sorted({each.why for each in found.values() if each.why})
    return "\n".join(
        [
            table(_COLUMNS, agreements, wide, f"{dataset}: agreement with {base}").text,
            table(heads, cells, wide, f"{dataset}: ranks under {len(scores)} scorings").text,
            *(line for reason in why for line in paragraph(f"Missing above: {reason}.", wide)),
        ]
    )
