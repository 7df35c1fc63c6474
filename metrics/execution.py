"""Scores of set-up projects: deviations from the truth, and the tables of ExecutionAgent (sections 3.1.2 to 3.5).

Columns read beside those of `metrics.table`: `language`; the verifier's `built`, `tests_executed` and `close` (0 or 1);
`truth_<outcome>` and `agent_<outcome>` for each of `OUTCOMES` (numbers of tests); `deviation` and `total_deviation`
(per cent); `script_size` (commands); `refused` (1 if the results do not count); `claim_differs` (1 if the agent's own
account differs from what was observed, else 0); `agent_seconds`.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from metrics.shell import called, commands
from metrics.table import per_task, select, valid
from metrics.uncertainty import wilson

OUTCOMES = ("passed", "failed", "skipped")
"""Outcomes of a test."""
STEPS = ("built", "executed", "close", "identical")
"""Steps of setting up a project: image and project built; at least one test executed; a deviation below
`metrics.deviations.CLOSE`; no deviation."""

NOT_COUNTED = ("echo",)
"""Commands that do not count towards the size of a script."""


def script_size(text: str) -> int:
    """Return the number of commands in a shell script, without `NOT_COUNTED` (section 3.1.2; see `commands`)."""
    return sum(next(iter(called(command)), "") not in NOT_COUNTED for command in commands(text))


def scored(trials: pd.DataFrame) -> bool:
    """Return whether the table holds trials of project setup."""
    return "tests_executed" in trials and bool(trials["tests_executed"].notna().any())


def steps(trials: pd.DataFrame) -> pd.DataFrame:
    """Return which of `STEPS` each trial completed, as bool, on the index of `trials`; a missing value counts as no.

    `identical` holds if all three numbers of tests are the true ones (section 3.2).
    """
    reported = trials.reindex(columns=["built", "tests_executed", "close"]).astype(float) > 0
    same = [_column(trials, f"agent_{name}") == _column(trials, f"truth_{name}") for name in OUTCOMES]
    return reported.set_axis(list(STEPS[:3]), axis=1).assign(identical=np.logical_and.reduce(same))


def _column(trials: pd.DataFrame, name: str) -> pd.Series[float]:
    """Return a column as floats; all NaN if the table does not have it."""
    return trials.reindex(columns=[name])[name].astype(float)


def project_steps(trials: pd.DataFrame, attempts: str) -> pd.DataFrame:
    """Return a row for each **planned** (cell, task): cell, dataset, tier, task, `valid`, language, `STEPS`.

    The steps are 0 without a valid trial. Of several attempts the latest counts if `attempts` is latest_completed, and
    otherwise their mean: there is no best of k.
    """
    rows = select(trials, attempts if attempts == "latest_completed" else "mean")
    taken = steps(trials).loc[rows.index].astype(float)
    tasks = per_task(trials, rows[["cell", "task", "weight"]].join(taken), STEPS)
    return tasks.join(trials.groupby(["dataset", "task"])["language"].first(), on=["dataset", "task"])


def overall(trials: pd.DataFrame, attempts: str, confidence: float = 0.95) -> pd.DataFrame:
    """Return how many projects reached each of `STEPS` (Table 2); index cell.

    Columns: a count of projects for each step; `planned`, the denominator; `<step>_low` and `<step>_high`, the Wilson
    interval of the step's share, in [0, 1].
    """
    table = project_steps(trials, attempts).groupby("cell")[list(STEPS)].agg("sum")
    table = table.assign(planned=trials.groupby("cell")["task"].nunique())
    for step in STEPS:
        ends = [wilson(*pair, confidence) for pair in zip(table[step], table["planned"], strict=True)]
        table[[f"{step}_low", f"{step}_high"]] = ends
    return table


def by_language(trials: pd.DataFrame, attempts: str) -> pd.DataFrame:
    """Count the `planned` projects of each language, and those `built` and `executed` (Figure 8).

    The index is (cell, language).
    """
    groups = project_steps(trials, attempts).groupby(["cell", "language"])
    return groups[["built", "executed"]].sum().assign(planned=groups.size())


def distances(trials: pd.DataFrame) -> pd.DataFrame:
    """Return how far results are from the truth (section 3.2); index cell.

    The figures are over **valid** trials that executed tests of a project with a known truth. Columns: `trials`, their
    number; `identical`, the number of those without any deviation; `deviation` and `total_deviation`, means over the
    others for which they are defined, in per cent; `undefined`, the number of trials in which the deviation of an
    outcome is undefined (the truth is 0 and the agent's number is not).
    """
    rows = trials[valid(trials) & steps(trials)["executed"] & _column(trials, "truth_passed").notna()]
    identical, cells = steps(rows)["identical"], rows["cell"]
    undefined = np.logical_or.reduce(
        [(_column(rows, f"truth_{name}") == 0) & (_column(rows, f"agent_{name}") > 0) for name in OUTCOMES]
    )
    figures = pd.DataFrame({"identical": identical, "undefined": undefined, "trials": 1}).groupby(cells).sum()
    rest = {name: _column(rows, name).where(~identical) for name in ("deviation", "total_deviation")}
    return figures.join(pd.DataFrame(rest).groupby(cells).mean())


def spent(trials: pd.DataFrame) -> pd.DataFrame:
    """Return what the **valid** trials of each cell took, every attempt (sections 3.3 and 3.5.3); index cell.

    Columns: `trials`; `usd`, the mean cost per trial; `usd_executed` and `usd_rest`, the same for trials that did and
    did not execute tests (Figure 9), NaN without such a trial or if one's cost is unknown; `seconds`, the agent's mean
    time; `script`, `script_min` and `script_max`, the mean, least and greatest size (commands) of scripts that executed
    tests; and numbers of trials: `refused`, `accounts` that could be read, and `wrong` ones among these.
    """
    rows = trials[valid(trials)]
    cells, executed = rows["cell"], steps(rows)["executed"]
    scripts = _column(rows, "script_size").where(executed).groupby(cells)
    claims = _column(rows, "claim_differs").groupby(cells)
    cost = _column(rows, "cost_usd")
    return pd.DataFrame(
        {
            "trials": cells.groupby(cells).size(),
            "usd": _mean(cost, cells),
            "usd_executed": _mean(cost[executed], cells),
            "usd_rest": _mean(cost[~executed], cells),
            "seconds": _column(rows, "agent_seconds").groupby(cells).mean(),
            "script": scripts.mean(),
            "script_min": scripts.min(),
            "script_max": scripts.max(),
            "refused": _column(rows, "refused").groupby(cells).sum(),
            "accounts": claims.count(),
            "wrong": claims.sum(),
        }
    )


def _mean(values: pd.Series[float], cells: pd.Series[str]) -> pd.Series[float]:
    """Return the mean of each cell; one NaN makes it NaN."""
    groups = values.groupby(cells.loc[values.index])
    return groups.sum(skipna=False) / groups.size()


def projects(trials: pd.DataFrame) -> pd.DataFrame:
    """Return the results of each planned project (Table 1); index (cell, task).

    Columns: `language`; `truth_<outcome>`, from the first trial that has it; `agent_<outcome>` of the latest valid
    trial; and its `mark`: empty if it executed tests, `+` if it only built the project, `-` if it did not build it,
    NaN without a valid trial.
    """
    truths = [f"truth_{name}" for name in OUTCOMES]
    rows = trials.reindex(columns=[*trials, *(name for name in truths if name not in trials)])
    planned = rows.drop_duplicates(["cell", "task"])[["cell", "dataset", "task", "language"]]
    planned = planned.join(rows.groupby(["dataset", "task"])[truths].first(), on=["dataset", "task"])
    latest = trials.loc[select(trials, "latest_completed").index]
    taken = steps(latest)
    marks = np.select([taken["executed"], taken["built"]], ["", "+"], "-")
    numbers = {
        f"agent_{name}": _column(latest, f"agent_{name}").where(taken["executed"]) for name in OUTCOMES
    }
    found = latest[["cell", "task"]].assign(mark=marks, **numbers)
    return (
        planned.merge(found, on=["cell", "task"], how="left")
        .set_index(["cell", "task"])
        .drop(columns="dataset")
    )
