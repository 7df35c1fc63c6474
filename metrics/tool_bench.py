"""Analyses of CLI-Tool-Bench (sections 4 and 5), over any trials table that holds its scores.

Columns read beside those of `metrics.table`: the scores of a task (`SCORES`, eq. 4), `language`, `category` (the
paper's domain), `reference_lines`,
`reference_files` and `reference_depth` (of the human-written tool), `runtime_reference` and `runtime_candidate` (mean
seconds of a case that both sides finished), `positive_agreement`, `negative_agreement`, `ended_<phase>` (valid cases),
`workspace_files`, `workspace_lines`, `workspace_depth`, `turns`, `input_tokens`, `output_tokens`, `tokens`, `cost_usd`,
`judge_usd`, `unstable_cases`. Shares are in [0, 1]; missing values are NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from metrics.differential import METRICS, Phase
from metrics.table import per_task, select, valid
from metrics.uncertainty import Draws, Resampling, interval_1645_sd, percentiles, resampled_sums

SCORES = ("build", *METRICS)
"""Scores of a task, as in Table 2, and `state`."""
AVERAGE = ""
"""Index label, in place of a model's or an agent's name, of the average over all of them."""
OVERHEAD = {
    "steps": "turns",
    "prompt": "input_tokens",
    "completion": "output_tokens",
    "usd": "cost_usd",
    "judge": "judge_usd",
}
"""Figure of Table 3 -> column of the trials table. The judge's cost is listed too; it is not part of the agent's."""
QUADRANTS = {
    (False, True): "cheap and good",
    (True, True): "dear and good",
    (False, False): "cheap and poor",
    (True, False): "dear and poor",
}
"""(more tokens than the mean, at least the mean score) -> name of the quadrant (section 4.3)."""


def scored(trials: pd.DataFrame) -> tuple[str, ...]:
    """Return those of `SCORES` that some trial has; empty if the table is not of this benchmark."""
    known = tuple(name for name in SCORES if name in trials and trials[name].notna().any())
    return known if {"build", "exec"} <= set(known) else ()


def main_score(trials: pd.DataFrame) -> str:
    """Return the score for figures: `semantic_match` if every valid trial that installed has it, else `exact_match`."""
    judged = "semantic_match" in scored(trials) and trial_scores(trials)["semantic_match"].notna().all()
    return "semantic_match" if judged else "exact_match"


def trial_scores(trials: pd.DataFrame) -> pd.DataFrame:
    """Return the scores of the **valid** trials, on their index; all 0 if the tool could not be installed (eq. 4).

    The columns are those of `scored`.
    """
    values = trials.loc[valid(trials), list(scored(trials))].astype(float)
    return values.where(values["build"] > 0, 0.0)


def task_scores(trials: pd.DataFrame, attempts: str) -> pd.DataFrame:
    """Return a row for each **planned** (cell, task).

    Columns: cell, dataset, tier, task, `valid`, language and category (where the table has them), `reference_lines`,
    and the scores in `scored`. A score is 0
    without a valid trial, and NaN if the tool was installed but the score was not given. Of several attempts the latest
    counts if `attempts` is latest_completed, and otherwise their mean: these scores have no best of k.
    """
    names = scored(trials)
    rows = select(trials, attempts if attempts == "latest_completed" else "mean")
    values = trial_scores(trials).loc[rows.index]
    tasks = per_task(trials, rows[["cell", "task", "weight"]].join(values), names)
    named = [name for name in ("language", "category") if name in trials]
    strata = trials.groupby(["dataset", "task"])[named].first().join(_lines(trials))
    return tasks.join(strata, on=["dataset", "task"])


def _lines(trials: pd.DataFrame) -> pd.Series[float]:
    """Return the lines of each reference, from the first trial that has them; index (dataset, task)."""
    known = trials.reindex(columns=["dataset", "task", "reference_lines"])
    return (
        known.astype({"reference_lines": "float64"}).groupby(["dataset", "task"])["reference_lines"].first()
    )


def overall(trials: pd.DataFrame, scoring: Resampling, confidence: float = 0.95) -> pd.DataFrame:
    """Return the scores of each cell (Table 2); index cell.

    Columns for each of `scored`: its mean over **planned** tasks; `<score>_low` and `<score>_high`, its interval by the
    percentile bootstrap over tasks; `<score>_1645`, the half width 1.645·SD/√n that the paper prints.
    """
    names, drawn = scored(trials), draws(trials, scoring)
    halves = task_scores(trials, scoring.attempts).groupby("cell")[list(names)].agg(_half_1645)
    columns: dict[str, np.ndarray] = {}
    for name in names:
        columns[name], (low, high) = drawn.observed[name], percentiles(drawn.drawn[name], confidence)
        columns |= {f"{name}_low": low, f"{name}_high": high, f"{name}_1645": halves[name].to_numpy()}
    return pd.DataFrame(columns, index=halves.index)


def draws(trials: pd.DataFrame, scoring: Resampling) -> Draws:
    """Draw the mean over **planned** tasks of each of `scored` on the resamples of `metrics.uncertainty.bootstrap`.

    A cell of which one task was not judged has no mean: NaN.
    """
    names = list(scored(trials))
    tasks = task_scores(trials, scoring.attempts).assign(planned=1.0)
    sums = np.sum(list(resampled_sums(tasks, (*names, "planned"), scoring).values()), axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):  # a cell may plan no task of a resample
        means = sums[:, :-1] / sums[:, -1:]
    datasets = tasks.groupby("cell")["dataset"].first()
    return Draws(
        tuple(datasets.index),
        tuple(datasets),
        {name: means[0, at] for at, name in enumerate(names)},
        {name: means[1:, at] for at, name in enumerate(names)},
    )


def _half_1645(scores: pd.Series[float]) -> float:
    low, high = interval_1645_sd(scores)
    return (high - low) / 2


def averages(cells: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return the averages of Table 2: each model over its agents, each agent over its models, and over everything.

    `cells` has one row per pair of `model` and `agent`, with columns `names`. The index of the result is (model,
    agent), with `AVERAGE` in place of the one that is averaged over; its columns are `names`. An average is NaN if a
    pair is missing, since averages over different pairs do not compare.
    """
    values = cells.set_index(["model", "agent"])[list(names)]
    pairs = pd.MultiIndex.from_product(
        [cells["model"].unique(), cells["agent"].unique()], names=["model", "agent"]
    )
    grid = values.reindex(pairs)
    by_model = grid.groupby("model", sort=False).mean(skipna=False)
    by_agent = grid.groupby("agent", sort=False).mean(skipna=False)
    everything = by_model.mean(skipna=False).to_frame(AVERAGE).T.rename_axis("model")
    return pd.concat(
        [
            by_model.assign(agent=AVERAGE).set_index("agent", append=True),
            pd.concat({AVERAGE: by_agent}, names=["model"]),
            everything.assign(agent=AVERAGE).set_index("agent", append=True),
        ]
    )


def overhead(trials: pd.DataFrame, *, built: bool = False) -> pd.DataFrame:
    """Return what a trial took, over all **valid** trials; with `built`, over those whose tool installed (Table 3).

    The index is the cell. Columns: `trials` (the denominator); `unpriced`, those of unknown cost, which are not in the
    USD figures; and `<figure>_mean`, `<figure>_min` and `<figure>_max` for each of `OVERHEAD`, per trial: model calls,
    input tokens, output tokens, USD, and USD of the judge. Missing values are left out.
    """
    rows = trials[valid(trials)]
    if built:
        rows = rows[rows["build"] > 0]
    cells = rows.reindex(columns=list(OVERHEAD.values())).astype(float).groupby(rows["cell"])
    table = pd.DataFrame({"trials": cells.size(), "unpriced": cells.size() - cells["cost_usd"].count()})
    for what, column in OVERHEAD.items():
        for how, values in (("mean", cells.mean()), ("min", cells.min()), ("max", cells.max())):
            table[f"{what}_{how}"] = values[column]
    return table


def runtimes(trials: pd.DataFrame) -> pd.DataFrame:
    """Return the runtimes of each cell that has any, over its **valid** trials (Table 4); index cell.

    Columns: `tasks`, the number of tasks in which **every** such cell has a runtime; `reference` and `candidate`, the
    mean seconds of a case over these tasks; `relative` = candidate / reference; `cpu`, the mean of `cpu_median`. They
    are NaN without a common task. Both sides of a cell are timed on the same cases, so each cell has its own reference.
    """
    sides = ["runtime_reference", "runtime_candidate"]
    times = [*sides, "cpu_median"]
    rows = trials.loc[valid(trials)].reindex(columns=["cell", "task", *times]).dropna(subset=sides)
    each = rows.astype(dict.fromkeys(times, "float64")).groupby(["cell", "task"])[times].mean()
    cells = each.index.unique("cell")
    common = each.groupby("task").filter(lambda task: len(task) == len(cells)).groupby("cell")
    means = common[times].mean().set_axis(["reference", "candidate", "cpu"], axis=1).reindex(cells)
    relative = means["candidate"] / means["reference"]
    return means.assign(tasks=common.size().reindex(cells, fill_value=0), relative=relative)


def composition(trials: pd.DataFrame) -> pd.DataFrame:
    """Return the number of **planned** tasks and the mean lines of their references by stratum (Table 1).

    The index is (dimension, value): `tier`, `language` and `category`, as far as the table has them, with each of
    their values; tiers by rising lines, the others by name. Columns: `tasks`; `references`, the tasks whose
    reference's lines are known, which is the denominator of `lines`, their mean; NaN where none is known.
    """
    dimensions = [name for name in ("tier", "language", "category") if name in trials]
    tasks = trials.groupby(["dataset", "task"])[dimensions].first().join(_lines(trials))
    parts = []
    for name in dimensions:
        groups = tasks.groupby(name)["reference_lines"]
        part = pd.DataFrame({"tasks": groups.size(), "references": groups.count(), "lines": groups.mean()})
        parts.append(part.sort_values("lines", kind="stable") if name == "tier" else part)
    return pd.concat(parts, keys=dimensions, names=["dimension", "value"])


def by(trials: pd.DataFrame, attempts: str, stratum: str, score: str) -> pd.DataFrame:
    """Return the mean of a score over **planned** tasks by `stratum`: language, tier or category (Figure 2).

    The index is the cell; there is a column for each language, tier or category, which is the paper's domain.
    """
    tasks = task_scores(trials, attempts).groupby(["cell", stratum])[score].mean(skipna=False)
    return tasks.unstack(stratum)  # noqa: PD010 - nothing is left to aggregate


def loess(x: ArrayLike, y: ArrayLike, at: ArrayLike) -> np.ndarray:
    """Return LOESS of degree 1 without robustness steps (Cleveland 1979), evaluated at `at`; 1-D arrays.

    At each place a line is fitted by least squares to the nearest two thirds of the points, with tricube weights. If
    all of these have the same x, the value is their mean. Raises `ValueError` for fewer than two points.
    """
    xs, ys, places = (np.asarray(values, float) for values in (x, y, at))
    if len(xs) < 2:  # noqa: PLR2004 - what a line needs
        raise ValueError(f"{len(xs)} points do not make a curve; two are the minimum")
    distance = np.abs(places[:, None] - xs)
    reach = np.sort(distance, axis=1)[:, [ceil(2 / 3 * len(xs)) - 1]]
    far = np.divide(distance, reach, out=(distance > 0).astype(float), where=reach > 0)
    weights = (1 - np.minimum(far, 1) ** 3) ** 3
    # Several points may lie at the very edge of the reach, and none within it.
    weights = np.where(weights.sum(axis=1, keepdims=True) > 0, weights, far <= 1)
    weights /= weights.sum(axis=1, keepdims=True)
    centre, level = weights @ xs, weights @ ys
    off = xs - centre[:, None]
    spread = (weights * off**2).sum(axis=1)
    slope = np.divide(
        (weights * off) @ ys, spread, out=np.zeros_like(spread), where=spread > 1e-12 * np.ptp(xs) ** 2
    )
    return np.asarray(level + slope * (places - centre))


def tokens_and_score(trials: pd.DataFrame, score: str) -> pd.DataFrame:
    """Return the points of Figure 4: `cell`, `tokens` and `score` of each **valid** trial that has both."""
    points = pd.DataFrame({"tokens": trials["tokens"].astype(float), "score": trial_scores(trials)[score]})
    return points.dropna().assign(cell=trials["cell"])


def quadrants(points: pd.DataFrame) -> pd.DataFrame:
    """Return the cells' quadrants of tokens and score (section 4.3); index cell.

    `points` is the result of `tokens_and_score`, or the part of it for one agent, as in the paper; its means separate
    cheap from dear and good from poor. Columns: mean
    `tokens` and `score`; `trials`; `quadrant`, that of the two means; and the share of the cell's trials in each of
    `QUADRANTS`.
    """
    cells, middle = points.groupby("cell"), points[["tokens", "score"]].mean()
    table = cells[["tokens", "score"]].mean()
    places = pd.Series(_quadrant(points, middle), index=points.index)
    shares = pd.crosstab(points["cell"], places, normalize="index")
    table = table.assign(trials=cells.size(), quadrant=_quadrant(table, middle))
    return table.join(shares.reindex(columns=list(QUADRANTS.values()), fill_value=0.0))


def _quadrant(points: pd.DataFrame, middle: pd.Series[float]) -> list[str]:
    dear, good = points["tokens"] > middle["tokens"], points["score"] >= middle["score"]
    return [QUADRANTS[bool(more), bool(better)] for more, better in zip(dear, good, strict=True)]


def sizes(trials: pd.DataFrame, what: Literal["files", "lines", "depth"]) -> dict[str | None, np.ndarray]:
    """Return `workspace_<what>` of the **valid** trials by cell, and under None `reference_<what>`, one per task.

    The arrays are ascending (section 4.4); missing values are left out. Depth is the number of folders above the
    deepest file. Lines are all lines of a workspace's files, but only lines of code of a reference.
    """
    own, human = f"workspace_{what}", f"reference_{what}"
    rows = trials[valid(trials)].reindex(columns=["cell", own])
    found: dict[str | None, np.ndarray] = {
        str(cell): np.sort(values.dropna().to_numpy(float)) for cell, values in rows.groupby("cell")[own]
    }
    measured = trials.reindex(columns=["dataset", "task", human]).dropna()
    references = measured.drop_duplicates(["dataset", "task"])[human]
    return {None: np.sort(references.to_numpy(float)), **found}


def robustness(trials: pd.DataFrame) -> pd.DataFrame:
    """Return the agreement on positive and on negative cases (section 5.1); index cell.

    Columns: `positive`, the share of cases with success on both sides among those in which the reference succeeds;
    `negative`, the share with failure on both sides among those in which it fails. Both are means over the **valid**
    trials whose task has such cases; `positive_trials` and `negative_trials` count these.
    """
    rows = trials[valid(trials)]
    names = {"positive": "positive_agreement", "negative": "negative_agreement"}
    values = rows.reindex(columns=list(names.values())).astype(float).set_axis(list(names), axis=1)
    cells = values.groupby(rows["cell"])
    return cells.mean().join(cells.count().add_suffix("_trials"))


def unstable(trials: pd.DataFrame) -> dict[str, int]:
    """Return task -> number of cases in which the reference itself varies; tasks without one are left out."""
    cases = trials.reindex(columns=["task", "unstable_cases"]).groupby("task")["unstable_cases"].max()
    return {str(task): int(count) for task, count in cases.items() if count > 0}


def funnel(trials: pd.DataFrame) -> pd.DataFrame:
    """Count the valid cases that ended in each `Phase`, over all **valid** trials (section 5.2).

    The index is the cell; there is a column for each phase.
    """
    rows = trials[valid(trials)]
    counts = (
        rows.reindex(columns=[f"ended_{phase}" for phase in Phase])
        .astype(float)
        .set_axis(list(Phase), axis=1)
    )
    return counts.groupby(rows["cell"]).sum()
