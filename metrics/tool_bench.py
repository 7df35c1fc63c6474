"""The analyses of CLI-Tool-Bench (sections 4 and 5) over any trials table that holds its scores.

Columns read beside those of `metrics.table`: the scores of a task (`SCORES`, eq. 4), `language`, `reference_lines`,
`reference_files` and `reference_depth` (of the human-written tool), `runtime_reference` and `runtime_candidate` (mean
seconds of a case that both sides finished), `positive_agreement`, `negative_agreement`, `ended_<phase>` (valid cases),
`workspace_files`, `workspace_lines`, `workspace_depth`, `turns`, `input_tokens`, `output_tokens`, `tokens`, `cost_usd`,
`judge_usd`, `unstable_cases`. Shares are in [0, 1]; NaN is missing.
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
from metrics.uncertainty import Resampling, interval_1645_sd, percentiles, resampled_sums

SCORES = ("build", *METRICS)
"""As Table 2 has them, and `state`."""
AVERAGE = ""
"""In place of a name, and nobody's: over all of them."""
OVERHEAD = {
    "steps": "turns",
    "prompt": "input_tokens",
    "completion": "output_tokens",
    "usd": "cost_usd",
    "judge": "judge_usd",
}
"""What Table 3 shows -> column of the trials table; and what the judge cost, which is nothing of the agent's."""
QUADRANTS = {
    (False, True): "cheap and good",
    (True, True): "dear and good",
    (False, False): "cheap and poor",
    (True, False): "dear and poor",
}
"""(more tokens than the mean, at least the mean score) -> its name (section 4.3)."""


def scored(trials: pd.DataFrame) -> tuple[str, ...]:
    """Which of `SCORES` some trial has; empty where the table is not of such a benchmark."""
    known = tuple(name for name in SCORES if name in trials and trials[name].notna().any())
    return known if {"build", "exec"} <= set(known) else ()


def main_score(trials: pd.DataFrame) -> str:
    """What the paper's figures show: `semantic_match` where all that was installed was judged, else `exact_match`."""
    judged = "semantic_match" in scored(trials) and trial_scores(trials)["semantic_match"].notna().all()
    return "semantic_match" if judged else "exact_match"


def trial_scores(trials: pd.DataFrame) -> pd.DataFrame:
    """`scored` of the **valid** trials, on their index: all 0 where the tool could not be installed (eq. 4)."""
    values = trials.loc[valid(trials), list(scored(trials))].astype(float)
    return values.where(values["build"] > 0, 0.0)


def task_scores(trials: pd.DataFrame, attempts: str) -> pd.DataFrame:
    """One row per **planned** (cell, task): cell, dataset, tier, task, language, `valid`, `reference_lines`, `scored`.

    0 without a valid trial. Of several attempts the latest where `attempts` says so, else their mean: these scores
    have no best of k. NaN: installed, but nobody gave that score.
    """
    names = scored(trials)
    rows = select(trials, attempts if attempts == "latest_completed" else "mean")
    values = trial_scores(trials).loc[rows.index]
    tasks = per_task(trials, rows[["cell", "task", "weight"]].join(values), names)
    strata = trials.groupby(["dataset", "task"])[["language"]].first().join(_lines(trials))
    return tasks.join(strata, on=["dataset", "task"])


def _lines(trials: pd.DataFrame) -> pd.Series[float]:
    """Lines of the reference by (dataset, task), from whichever trial says so."""
    said = trials.reindex(columns=["dataset", "task", "reference_lines"])
    return said.astype({"reference_lines": "float64"}).groupby(["dataset", "task"])["reference_lines"].first()


def overall(trials: pd.DataFrame, scoring: Resampling, confidence: float = 0.95) -> pd.DataFrame:
    """Table 2; index cell. For each of `scored`: its mean over **planned** tasks; `<score>_low` and `<score>_high`, the
    percentile bootstrap over tasks; `<score>_1645`, the half width 1.645·SD/√n that the paper prints.
    """
    names = list(scored(trials))
    tasks = task_scores(trials, scoring.attempts).assign(planned=1.0)
    sums = np.sum(list(resampled_sums(tasks, (*names, "planned"), scoring).values()), axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):  # a cell may plan no task of a resample
        means = sums[:, :-1] / sums[:, -1:]
    ends = percentiles(means[1:], confidence)
    halves = tasks.groupby("cell")[names].agg(_half_1645)
    parts = {"": means[0], "_low": ends[0], "_high": ends[1], "_1645": halves.to_numpy().T}
    columns = {f"{name}{part}": values[at] for at, name in enumerate(names) for part, values in parts.items()}
    return pd.DataFrame(columns, index=halves.index)


def _half_1645(scores: pd.Series[float]) -> float:
    low, high = interval_1645_sd(scores)
    return (high - low) / 2


def averages(cells: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """The averages of Table 2; index (model, agent), of which `AVERAGE` stands for all of them; columns `names`.

    Each model over its agents, each agent over its models, and both. `cells` has columns `model`, `agent` and `names`,
    one row a pair. NaN where a pair is missing: means of different pairs do not compare.
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


def overhead(trials: pd.DataFrame) -> pd.DataFrame:
    """Table 3: what a trial took, over all **valid** trials; index cell.

    Columns: `trials` (the denominator), `unpriced` among them (in no figure in USD), and `<what>_mean`, `_min` and
    `_max` of each of `OVERHEAD`: model calls, tokens, tokens, USD, and USD of the judge's; missing ones are in none.
    """
    rows = trials[valid(trials)]
    cells = rows.reindex(columns=list(OVERHEAD.values())).astype(float).groupby(rows["cell"])
    table = pd.DataFrame({"trials": cells.size(), "unpriced": cells.size() - cells["cost_usd"].count()})
    for what, column in OVERHEAD.items():
        for how, values in (("mean", cells.mean()), ("min", cells.min()), ("max", cells.max())):
            table[f"{what}_{how}"] = values[column]
    return table


def runtimes(trials: pd.DataFrame) -> pd.DataFrame:
    """Table 4; index cell, those with a runtime. Columns: `tasks`, those in which **every** such cell has one;
    `reference` and `candidate`, mean seconds of a case over them; `relative` = candidate / reference; `cpu`, mean
    of `cpu_median` over them, NaN where it is not given.

    Both sides of a cell are timed on the same cases, so each cell has its own reference. No common task: NaN.
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


def by(trials: pd.DataFrame, attempts: str, stratum: str, score: str) -> pd.DataFrame:
    """Mean of a score over **planned** tasks (Figure 2); index cell, a column a language or tier (`stratum`)."""
    tasks = task_scores(trials, attempts).groupby(["cell", stratum])[score].mean(skipna=False)
    return tasks.unstack(stratum)  # noqa: PD010 - nothing is left to aggregate


def loess(x: ArrayLike, y: ArrayLike, at: ArrayLike) -> np.ndarray:
    """LOESS of degree 1 without robustness steps (Cleveland 1979), evaluated at `at`; 1-D arrays.

    A line is fitted at each place by least squares to the nearest two thirds of the points, with tricube weights. Where
    all of these have one and the same x it is their mean. Raises `ValueError` for fewer than two points.
    """
    xs, ys, places = (np.asarray(values, float) for values in (x, y, at))
    if len(xs) < 2:  # noqa: PLR2004 - what a line needs
        raise ValueError(f"{len(xs)} points make no curve; two are the least")
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
    """The points of Figure 4: `cell`, `tokens` and `score` of each **valid** trial that has both."""
    points = pd.DataFrame({"tokens": trials["tokens"].astype(float), "score": trial_scores(trials)[score]})
    return points.dropna().assign(cell=trials["cell"])


def quadrants(points: pd.DataFrame) -> pd.DataFrame:
    """Section 4.3; index cell, those of the points. Columns: `trials`; mean `tokens` and `score`; the `quadrant` of
    that mean trial; and the share of the cell's trials in each of `QUADRANTS`.

    `points` are those of `tokens_and_score`; their means divide cheap from dear and good from poor.
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
    """`workspace_<what>` of each **valid** trial by cell (section 4.4); under None `reference_<what>`, one per task; in
    ascending order. Workspaces and references that nobody measured are left out.

    Depth: folders above the deepest file. Lines: all those of a workspace's files, and only the code of a reference.
    """
    own, human = f"workspace_{what}", f"reference_{what}"
    rows = trials[valid(trials)].reindex(columns=["cell", own])
    found: dict[str | None, np.ndarray] = {
        str(cell): np.sort(values.dropna().to_numpy(float)) for cell, values in rows.groupby("cell")[own]
    }
    said = trials.reindex(columns=["dataset", "task", human]).dropna()
    references = said.drop_duplicates(["dataset", "task"])[human]
    return {None: np.sort(references.to_numpy(float)), **found}


def robustness(trials: pd.DataFrame) -> pd.DataFrame:
    """Section 5.1; index cell. `positive`: share of cases in which both succeed, of those in which the reference does;
    `negative`: share in which both fail, of those in which the reference fails. Means over the **valid** trials whose
    task has such cases, counted in `positive_trials` and `negative_trials`.
    """
    rows = trials[valid(trials)]
    names = {"positive": "positive_agreement", "negative": "negative_agreement"}
    values = rows.reindex(columns=list(names.values())).astype(float).set_axis(list(names), axis=1)
    cells = values.groupby(rows["cell"])
    return cells.mean().join(cells.count().add_suffix("_trials"))


def unstable(trials: pd.DataFrame) -> dict[str, int]:
    """Task -> its cases in which the reference does not do the same each time; only tasks that have some."""
    cases = trials.reindex(columns=["task", "unstable_cases"]).groupby("task")["unstable_cases"].max()
    return {str(task): int(count) for task, count in cases.items() if count > 0}


def funnel(trials: pd.DataFrame) -> pd.DataFrame:
    """Where valid cases ended (section 5.2), over all **valid** trials; index cell, a column a `Phase`, counts."""
    rows = trials[valid(trials)]
    counts = (
        rows.reindex(columns=[f"ended_{phase}" for phase in Phase])
        .astype(float)
        .set_axis(list(Phase), axis=1)
    )
    return counts.groupby(rows["cell"]).sum()
