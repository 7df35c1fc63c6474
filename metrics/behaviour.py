"""Working style of agents: turns, tool calls, endings, phases (NL2Repo-Bench, section 4.3; ExecutionAgent, 3.5).

The data come from the gateway's records, so they mean the same for every agent. Columns read beside those of
`metrics.table`: `tool_kinds`, the kinds of a trial's tool calls in order, separated by spaces; `tool_names` and
`tool_phases`, their names and phases, likewise; `tool_counts`, a JSON object of the calls by name; `actions`, what the
calls did (`metrics.actions`), missing in records of earlier versions; `programs`, what its terminal ran, by `;`;
`own_finish`, whether the agent ended its work itself; `context_window`, the model's in tokens; `file_reads` and
`repeated_reads`, how often it read files, and read again what it had read. All figures are over the **valid** trials,
every attempt, of cells with a model.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pandas as pd

from metrics.actions import WORK
from metrics.table import summary, valid
from metrics.terminal import PHASES

KINDS = ("edit", "execute", "plan", "read", "search", "finish", "other")
EARLY = 100
"""Turns below which an agent that finishes by itself has stopped early (section 4.3.3)."""
_PHASES = [*PHASES, *(f"{phase}_at" for phase in PHASES), "in_order"]
PATTERNS = {
    "edit_test": [("edit", "test"), ("test", "edit")],
    "navigation": [("look", "look")],
    "blind_editing": [("edit", "edit")],
}
"""Pattern -> the transitions between actions that make it up (section 4.3.6): edits and tests in turn; looking on and
on, with no edit between; an edit upon an edit, with no test between."""
NAMES = 12
"""Number of tools that are shown by name: those called most. A model can invent any number of names."""


def recorded(trials: pd.DataFrame) -> bool:
    """Return whether the tool calls of any valid trial were recorded by kind."""
    return "tool_kinds" in trials and bool(_rows(trials)["tool_kinds"].fillna("").astype(str).str.len().any())


def _rows(trials: pd.DataFrame) -> pd.DataFrame:
    return trials[valid(trials) & (trials["model"] != "none")]


def turns(trials: pd.DataFrame, attempts: str) -> pd.DataFrame:
    """Return the turns of each cell (Table 6); index cell.

    Columns: `trials`; `mean`, `sd` (n − 1; NaN for one trial) and `max` of the answered model calls per trial;
    `score`, the mean reward over **planned** tasks; `turns_per_score` = mean / score, infinite if the score is 0.
    """
    rows = _rows(trials)
    grouped = rows["turns"].astype(float).groupby(rows["cell"])
    table = pd.DataFrame(
        {"trials": grouped.size(), "mean": grouped.mean(), "sd": grouped.std(), "max": grouped.max()}
    )
    table["score"] = summary(trials, attempts)["mean_reward"]
    table["turns_per_score"] = (table["mean"] / table["score"].replace(0, np.nan)).fillna(np.inf)
    return table


def tool_calls(trials: pd.DataFrame) -> pd.DataFrame:
    """Return the mean tool calls per trial of each cell (Tables 5 and 7).

    The index is the cell. There is a column for each of `KINDS`, their `total`, and `trials`, the denominator.
    """
    rows = _rows(trials)
    counted = pd.DataFrame(
        [{kind: words.count(kind) for kind in KINDS} for words in _words(rows)],
        index=rows.index,
        columns=list(KINDS),
    )
    table = counted.assign(total=counted.sum(axis=1)).groupby(rows["cell"]).mean()
    return table.assign(trials=rows.groupby("cell").size())


def shares(trials: pd.DataFrame) -> pd.DataFrame:
    """Return how the tool calls of each cell divide into kinds (Table 7, Figure 6); index cell.

    Columns: for each of `KINDS` its share of `calls`, all calls of the cell's trials together; `edit_execute`, edits
    for each execution (section 4.3.4), NaN where nothing was executed. Cells without a call are left out.
    """
    means = tool_calls(trials)
    means = means[means["total"] > 0]
    kinds = means[list(KINDS)]
    return kinds.div(means["total"], axis=0).assign(
        calls=(means["total"] * means["trials"]).round(),
        edit_execute=kinds["edit"] / kinds["execute"].where(kinds["execute"] > 0),
    )


def calls_and_score(trials: pd.DataFrame, attempts: str) -> pd.DataFrame:
    """Return the tool calls and the score of each cell (Figure 7); index cell.

    Columns: `calls`, mean per valid trial; `score`, mean reward over **planned** tasks; `score_per_100_calls`, NaN
    without a call.
    """
    table = pd.DataFrame({"calls": tool_calls(trials)["total"]})
    table["score"] = summary(trials, attempts)["mean_reward"].reindex(table.index)
    return table.assign(score_per_100_calls=100 * table["score"] / table["calls"].replace(0, np.nan))


def windows(trials: pd.DataFrame, attempts: str) -> pd.DataFrame:
    """Return context window and score of each cell whose model's window is known (Figure 8); index cell.

    Columns: `context_window`, in tokens, and `score`, mean reward over **planned** tasks.
    """
    rows = trials[trials["model"] != "none"].reindex(columns=["cell", "context_window"]).dropna()
    table = pd.DataFrame({"context_window": rows.groupby("cell")["context_window"].first().astype(float)})
    return table.assign(score=summary(trials, attempts)["mean_reward"].reindex(table.index))


def reads(trials: pd.DataFrame) -> pd.DataFrame:
    """Return how often files were read again (AgentMeter, section 1), over trials whose reads were counted; index cell.

    Columns: `trials`, the denominator; `reads` and `repeated`, means per trial; `share`, repeated reads / reads of all
    these trials (NaN without a read); `most`, the repeated reads of the trial with the most. A read is repeated if an
    earlier one of the trial had the same tool and the same arguments.
    """
    rows = _rows(trials).reindex(columns=["cell", "file_reads", "repeated_reads"]).dropna()
    counts = rows[["file_reads", "repeated_reads"]].astype(float).set_axis(["reads", "repeated"], axis=1)
    grouped = counts.groupby(rows["cell"])
    sums = grouped.sum()
    table = grouped.mean().assign(trials=grouped.size(), most=grouped["repeated"].max())
    return table.assign(share=sums["repeated"] / sums["reads"].where(sums["reads"] > 0))


def correlations(trials: pd.DataFrame, attempts: str) -> pd.DataFrame:
    """Return how calls of each kind correlate with the score across cells; index: each of `KINDS`, and `total`.

    Columns: `r`, Pearson's correlation of mean calls per trial with mean reward over planned tasks (NaN for fewer than
    three cells, or if either is the same in all cells); `unused`, the cells without such a call; `cells`, all cells.
    """
    return _correlated(tool_calls(trials).drop(columns="trials"), trials, attempts)


def correlations_by_name(trials: pd.DataFrame, attempts: str) -> pd.DataFrame:
    """Return the same for each of the `NAMES` tools that were called most, by name (Table 5)."""
    return _correlated(calls_by_name(trials), trials, attempts)


def calls_by_name(trials: pd.DataFrame) -> pd.DataFrame:
    """Return the mean calls per trial of the `NAMES` tools that were called most, a column each; index cell."""
    rows = _rows(trials).reindex(columns=["cell", "tool_counts"])
    counts = [json.loads(text) if isinstance(text, str) and text else {} for text in rows["tool_counts"]]
    total: Counter[str] = Counter()
    for count in counts:
        total.update(count)
    names = [name for name, _ in sorted(total.items(), key=lambda one: (-one[1], one[0]))[:NAMES]]
    table = pd.DataFrame(
        [[float(count.get(name, 0)) for name in names] for count in counts], index=rows.index, columns=names
    )
    return table.groupby(rows["cell"]).mean()


def _correlated(calls: pd.DataFrame, trials: pd.DataFrame, attempts: str) -> pd.DataFrame:
    score = summary(trials, attempts)["mean_reward"].reindex(calls.index)
    found = {}
    for name in calls:
        varies = len(calls) > 2 and np.ptp(calls[name]) > 0 and np.ptp(score) > 0  # noqa: PLR2004 - two lie on a line
        found[name] = {
            "r": float(np.corrcoef(calls[name], score)[0, 1]) if varies else np.nan,
            "unused": int((calls[name] == 0).sum()),
            "cells": len(calls),
        }
    return pd.DataFrame(found).T


def endings(trials: pd.DataFrame) -> pd.DataFrame:
    """Return how the trials of each cell ended (Figure 5); index cell.

    Columns: `trials`, the denominator; `early_stop`, the share that the agent itself finished in fewer than `EARLY`
    turns; `non_finish`, the share that it did not finish itself: it halted, waited for an answer, or was stopped.
    """
    rows = _rows(trials)
    own = rows["own_finish"].fillna(value=False).astype(bool)
    early = own & (rows["turns"].astype(float) < EARLY)
    shares = pd.DataFrame({"early_stop": early, "non_finish": ~own}).groupby(rows["cell"]).mean()
    return shares.assign(trials=rows.groupby("cell").size())


def endings_by_agent(trials: pd.DataFrame) -> pd.DataFrame:
    """Return how the trials of each agent ended, with any model; index agent.

    Columns: `trials`, the denominator of the shares; `finished`, by the agent itself; `non_finish`, the others, which
    are `halted` (it exited well and had not said that it was done), `limited` (time or budget ended it) or `failed`.
    """
    rows = _rows(trials)
    own = rows["own_finish"].fillna(value=False).astype(bool)
    limited = ~own & rows["status"].isin(["timeout", "budget_exceeded"])
    halted = ~own & (rows["status"] == "completed")
    ends = {"finished": own, "non_finish": ~own, "halted": halted, "limited": limited}
    found = pd.DataFrame({**ends, "failed": ~(own | limited | halted)}).groupby(rows["agent"])
    return found.mean().assign(trials=found.size())


def transitions(trials: pd.DataFrame) -> pd.DataFrame:
    """Count pairs of consecutive actions on the project within a trial (section 4.3.6).

    Planning, finishing and actions of unknown kind are passed over: not every agent has tools for them. The index is
    (cell, first action), the columns are the second ones (`metrics.actions.WORK`). Cells in which no trial's actions
    were recorded are left out.
    """
    rows = _with(trials, "actions")
    done = [[word for word in text.split() if word in WORK] for text in rows["actions"]]
    return _pairs(rows["cell"], done, WORK)


def transitions_by_name(trials: pd.DataFrame) -> pd.DataFrame:
    """Count pairs of consecutive calls by the names of the tools, as section 4.3.6 does; index (cell, first name).

    The `NAMES` tools that were called most are told apart; the others are `(other)`, which is not the name of a tool.
    """
    rows = _with(trials, "tool_names")
    called = [text.split() for text in rows["tool_names"]]
    total = Counter(name for names in called for name in names)
    names = [name for name, _ in sorted(total.items(), key=lambda one: (-one[1], one[0]))]
    shown = names[:NAMES]
    told = [[name if name in shown else "(other)" for name in words] for words in called]
    return _pairs(rows["cell"], told, [*shown, "(other)"] if len(names) > NAMES else shown)


def _with(trials: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the valid rows that have a value in this column, which may be missing, with `cell`."""
    rows = _rows(trials).reindex(columns=["cell", column]).dropna(subset=column)
    return rows.astype({column: str})


def _pairs(cells: pd.Series[str], sequences: list[list[str]], words: Sequence[str]) -> pd.DataFrame:
    """Count pairs of neighbours in the sequences of each cell."""
    found = Counter(
        (cell, before, after)
        for cell, sequence in zip(cells, sequences, strict=True)
        for before, after in pairwise(sequence)
    )
    index = pd.MultiIndex.from_product([sorted(cells.unique()), words], names=["cell", "first"])
    counts = [[found[cell, before, after] for after in words] for cell, before in index]
    return pd.DataFrame(counts, index=index, columns=list(words), dtype=int)


def patterns(trials: pd.DataFrame) -> pd.DataFrame:
    """Return the share of each of `PATTERNS` in the transitions of each cell (section 4.3.6); index cell.

    There is a column for each pattern, NaN without any transition; `transitions`, the denominator; and `trials`, those
    whose actions were recorded.
    """
    table = transitions(trials)
    if table.empty:
        return pd.DataFrame(columns=[*PATTERNS, "transitions", "trials"], dtype=float)
    total = table.groupby("cell").sum().sum(axis=1)
    shares = {
        name: sum(table.xs(before, level="first")[after] for before, after in steps)
        / total.replace(0, np.nan)
        for name, steps in PATTERNS.items()
    }
    return pd.DataFrame(shares).assign(
        transitions=total, trials=_with(trials, "actions").groupby("cell").size()
    )


def programs(trials: pd.DataFrame, most: int = 10) -> pd.DataFrame:
    """Return which programs the agents ran in their terminals (ExecutionAgent, Figure 10).

    The index is the cell; cells that ran nothing are left out. The columns are the `most` programs that all cells
    together ran most often, most frequent first, each as a share of the cell's `commands`, the last column.
    """
    rows = _rows(trials).reindex(columns=["cell", "programs"]).dropna(subset="programs")
    names = rows["programs"].astype(str).str.split(";").explode()
    names = names[names != ""]
    counts = names.groupby([rows["cell"].loc[names.index], names]).size().unstack(fill_value=0)  # noqa: PD010 - counts
    frequent = counts.sum().sort_values(ascending=False, kind="stable").index[:most]
    commands = counts.sum(axis=1)
    return counts[frequent].div(commands, axis=0).assign(commands=commands)


def phases(trials: pd.DataFrame) -> pd.DataFrame:
    """Return when the agents worked on which phase (ExecutionAgent, section 3.5.2); index cell.

    Columns: `trials`, those with tool calls; for each of `PHASES`, its share of a trial's calls, mean over trials, and
    `<phase>_at`, the median position of its calls from 0 (the trial's first call) to 1 (the last), mean over the
    trials that have the phase; `in_order`, the share of trials with all three phases and their medians in this order.
    """
    rows = _rows(trials).reindex(columns=["cell", "tool_phases"])
    texts = rows["tool_phases"].dropna().astype(str)
    texts = texts[texts != ""]
    found = pd.DataFrame([_in_phases(text.split()) for text in texts], index=texts.index, columns=_PHASES)
    cells = found.astype(float).groupby(rows["cell"].loc[texts.index])
    return cells.mean().assign(trials=cells.size())


def _in_phases(words: Sequence[str]) -> dict[str, float]:
    """Return the values of one trial that `phases` averages."""
    places = {phase: [at for at, word in enumerate(words) if word == phase] for phase in PHASES}
    last = max(len(words) - 1, 1)
    medians = [float(np.median(places[phase])) / last if places[phase] else np.nan for phase in PHASES]
    return {
        **{phase: len(places[phase]) / len(words) for phase in PHASES},
        **{f"{phase}_at": median for phase, median in zip(PHASES, medians, strict=True)},
        "in_order": float(medians[0] < medians[1] < medians[2]),
    }


def _words(rows: pd.DataFrame) -> list[list[str]]:
    """Return the kinds of each trial's tool calls; an unknown word becomes `other`."""
    return [
        [word if word in KINDS else "other" for word in str(text).split()]
        for text in rows["tool_kinds"].fillna("")
    ]
