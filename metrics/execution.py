"""Scores of set-up projects (ExecutionAgent, sections 3.1.2 to 3.5): deviations from the truth, and its tables.

Columns read beside those of `metrics.table`: `language`; the verifier's `built`, `tests_executed`, `close` (0 or 1),
`truth_<outcome>`, `agent_<outcome>` (numbers of tests, of `OUTCOMES`), `deviation`, `total_deviation` (per cent),
`script_size`, `refused` (1 where results do not count), `claim_differs` (1 where the agent's own account is not what
was seen, 0 where it is); `agent_seconds`.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from metrics.shell import called, commands
from metrics.table import per_task, select, valid
from metrics.uncertainty import wilson

OUTCOMES = ("passed", "failed", "skipped")
"""Of a test."""
STEPS = ("built", "executed", "close", "identical")
"""How far a project was brought: its image and itself, one test at least, a deviation below `CLOSE`, no deviation."""

NOT_COUNTED = ("echo",)
"""Commands that are no part of a script's size."""


def script_size(text: str) -> int:
    """Number of commands of a shell script, parts of composite ones each, without `NOT_COUNTED` (see `commands`)."""
    return sum(next(iter(called(command)), "") not in NOT_COUNTED for command in commands(text))


def scored(trials: pd.DataFrame) -> bool:
    """Whether the table is of projects that were to be set up."""
    return "tests_executed" in trials and bool(trials["tests_executed"].notna().any())


def steps(trials: pd.DataFrame) -> pd.DataFrame:
    """Which of `STEPS` each trial took, as bool, on its index; one that says nothing of a step has not taken it.

    `identical`: every one of the three numbers is the true one (section 3.2).
    """
    said = trials.reindex(columns=["built", "tests_executed", "close"]).astype(float) > 0
    same = [_column(trials, f"agent_{name}") == _column(trials, f"truth_{name}") for name in OUTCOMES]
    return said.set_axis(list(STEPS[:3]), axis=1).assign(identical=np.logical_and.reduce(same))


def _column(trials: pd.DataFrame, name: str) -> pd.Series[float]:
    """All missing where no verdict has it."""
    return trials.reindex(columns=[name])[name].astype(float)


def project_steps(trials: pd.DataFrame, attempts: str) -> pd.DataFrame:
    """One row per **planned** (cell, task): cell, dataset, tier, task, `valid`, language, `STEPS`.

    0 without a valid trial: what was not run was not built. Of several attempts the latest where `attempts` says so,
    else their mean: there is no best of k.
    """
    rows = select(trials, attempts if attempts == "latest_completed" else "mean")
    taken = steps(trials).loc[rows.index].astype(float)
    tasks = per_task(trials, rows[["cell", "task", "weight"]].join(taken), STEPS)
    return tasks.join(trials.groupby(["dataset", "task"])["language"].first(), on=["dataset", "task"])


def overall(trials: pd.DataFrame, attempts: str, confidence: float = 0.95) -> pd.DataFrame:
    """Table 2; index cell. Columns: `planned` projects; how many of them took each of `STEPS`; `<step>_low` and
    `<step>_high`, the Wilson interval of that share.
    """
    table = project_steps(trials, attempts).groupby("cell")[list(STEPS)].agg("sum")
    table = table.assign(planned=trials.groupby("cell")["task"].nunique())
    for step in STEPS:
        ends = [wilson(*pair, confidence) for pair in zip(table[step], table["planned"], strict=True)]
        table[[f"{step}_low", f"{step}_high"]] = ends
    return table


def by_language(trials: pd.DataFrame, attempts: str) -> pd.DataFrame:
    """Figure 8; index (cell, language). Columns: `planned` projects, and how many were `built` and `executed`."""
    groups = project_steps(trials, attempts).groupby(["cell", "language"])
    return groups[["built", "executed"]].sum().assign(planned=groups.size())


def distances(trials: pd.DataFrame) -> pd.DataFrame:
    """How far off (section 3.2), over **valid** trials that executed tests of a project with a truth; index cell.

    Columns: `trials`, the denominator; `identical` of them; of the others `deviation` and `total_deviation`, per cent,
    means of those that are defined; `undefined`, trials in which a kind's deviation is not (truth 0, and not found 0).
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
    """Sections 3.3 and 3.5.3, over **valid** trials, every attempt; index cell.

    Columns: `trials`; `usd`, mean, and `usd_executed` and `usd_rest` of those that did and did not execute tests
    (Figure 9), NaN where there is none or one's cost is unknown; `seconds` of the agent, mean; `script`, `script_min`,
    `script_max`: size of the scripts that executed tests; `refused`; `accounts` that could be read, and those `wrong`.
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
    """By cell; one NaN makes it NaN."""
    groups = values.groupby(cells.loc[values.index])
    return groups.sum(skipna=False) / groups.size()


def projects(trials: pd.DataFrame) -> pd.DataFrame:
    """Table 1; index (cell, task), planned ones. Columns: language, `truth_<outcome>` from whichever trial says so,
    `agent_<outcome>` of the latest valid trial, and its `mark`: empty where it executed tests, `+` where it only built
    the project, `-` where not even that; NaN without a valid trial.
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
