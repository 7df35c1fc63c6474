"""Scores of NL2Repo-Bench (sections 4.2, 4.3.7): pass rates, tasks that pass as a whole, and kinds of failures."""

from __future__ import annotations

import pandas as pd

from metrics.failures import FAILURES
from metrics.table import per_task, select, valid


def scored(trials: pd.DataFrame) -> bool:
    """Return whether the table holds trials that a hidden suite of published tests judged."""
    return "tests_published" in trials and bool(trials["tests_published"].notna().any())


def overall(trials: pd.DataFrame, attempts: str) -> pd.DataFrame:
    """Return the scores of each cell (Tables 3 and 4); index cell.

    Columns: `score`, the mean pass rate over **planned** tasks, a task without a valid trial counting 0; `whole`, the
    number of tasks that passed as a whole (Pass@1); `tasks`, the planned ones; `tier <name>` and `category <name>`,
    the score on these tasks alone.
    """
    tasks = per_task(trials, select(trials, attempts), ["reward", "passed"])
    strata = trials.drop_duplicates(["cell", "task"])[["cell", "task", "category"]]
    tasks = tasks.merge(strata, on=["cell", "task"])
    cells = tasks.groupby("cell")
    table = pd.DataFrame(
        {"score": cells["reward"].mean(), "whole": cells["passed"].sum(), "tasks": cells.size()}
    )
    for stratum in ("tier", "category"):
        by = tasks.groupby(["cell", stratum])["reward"].mean().unstack(stratum)  # noqa: PD010 - nothing to aggregate
        table = table.join(by.add_prefix(f"{stratum} "))
    return table


def counts(trials: pd.DataFrame) -> pd.DataFrame:
    """Return both numbers of tests of the tasks whose score is over another number than the published one; index task.

    Columns: `counted`, the tests that upstream passes where the trials ran, and `published`. Over **valid** trials.
    """
    if "tests_counted" not in trials:
        return pd.DataFrame(columns=["counted", "published"])
    rows = trials[valid(trials) & trials["tests_counted"].notna()]
    both = rows.groupby("task")[["tests_counted", "tests_published"]].first().astype(float)
    return both.set_axis(["counted", "published"], axis=1)


def by_either_count(trials: pd.DataFrame, attempts: str) -> pd.DataFrame:
    """Return the scores of each cell over the counted and over the published numbers of tests; index cell.

    Columns: `score`, as in `overall`, and `by_published`, the same with the published number of tests as denominator,
    at most 1 a task.
    """
    published = trials.reindex(columns=["score_by_published_count"])["score_by_published_count"].astype(float)
    other = trials.assign(reward=published.fillna(trials["reward"]))
    scores = [overall(each, attempts)["score"] for each in (trials, other)]
    return pd.concat(scores, axis=1, keys=["score", "by_published"])


def failures(trials: pd.DataFrame) -> pd.DataFrame:
    """Return why expected tests failed, over **valid** trials (section 4.3.7); index cell.

    Columns: `failed`, the expected tests that did not pass; `of`, all expected tests; and for each of `FAILURES` its
    share of `failed`, NaN if none failed.
    """
    rows = trials[valid(trials)]
    names = [f"failure_{kind}" for kind in FAILURES]
    counts = rows.reindex(columns=names).astype(float).set_axis(list(FAILURES), axis=1)
    sums = counts.groupby(rows["cell"]).sum()
    failed = sums.sum(axis=1)
    published = rows["tests_published"].astype(float)
    counted = rows["tests_counted"].astype(float).fillna(published) if "tests_counted" in rows else published
    of = counted.groupby(rows["cell"]).sum()
    return sums.div(failed.where(failed > 0), axis=0).assign(failed=failed, of=of)
