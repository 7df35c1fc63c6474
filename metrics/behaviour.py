"""How agents work, from the gateway's record and so the same for all (NL2Repo-Bench, section 4.3; ExecutionAgent, 3.5).

Columns read beside those of `metrics.table`: `tool_kinds`, the kinds of a trial's tool calls in their order, one word
each with a space between; `tool_phases`, their phases likewise; `programs`, what its terminal's commands ran, with `;`
between; `own_finish`, whether the agent ended its work itself. Everything is over **valid** trials,
every attempt, of cells with a model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pandas as pd

from metrics.table import summary, valid
from metrics.terminal import PHASES

KINDS = ("edit", "execute", "plan", "read", "search", "finish", "other")
EARLY = 100
"""Turns; who finishes in fewer stops early (section 4.3.3)."""
LOOK = ("read", "search")
_PHASES = [*PHASES, *(f"{phase}_at" for phase in PHASES), "in_order"]
PATTERNS = {
    "edit_test": [("edit", "execute"), ("execute", "edit")],
    "navigation": [
        (a, b) for a in ("execute", *LOOK) for b in ("execute", *LOOK) if (a in LOOK) != (b in LOOK)
    ]
    + [(a, b) for a in LOOK for b in LOOK],
    "blind_editing": [("edit", "edit")],
}
"""Pattern -> the transitions that make it up (section 4.3.6): edits and runs in turn; looking about with runs in
between and no edit; edit upon edit with nothing run."""


def recorded(trials: pd.DataFrame) -> bool:
    """Whether some valid trial's tool calls were recorded by kind."""
    return "tool_kinds" in trials and bool(_rows(trials)["tool_kinds"].fillna("").astype(str).str.len().any())


def _rows(trials: pd.DataFrame) -> pd.DataFrame:
    return trials[valid(trials) & (trials["model"] != "none")]


def turns(trials: pd.DataFrame, attempts: str) -> pd.DataFrame:
    """Table 6; index cell. Columns: `trials`, `mean`, `sd` (n − 1, NaN for one), `max` of model calls answered;
    `score`, mean reward over **planned** tasks; `turns_per_score` = mean / score, infinite for no score.
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
    """Tables 5 and 7; index cell, a column a kind and `total`: calls a trial, mean; `trials` is the denominator."""
    rows = _rows(trials)
    counted = pd.DataFrame(
        [{kind: words.count(kind) for kind in KINDS} for words in _words(rows)],
        index=rows.index,
        columns=list(KINDS),
    )
    table = counted.assign(total=counted.sum(axis=1)).groupby(rows["cell"]).mean()
    return table.assign(trials=rows.groupby("cell").size())


def correlations(trials: pd.DataFrame, attempts: str) -> pd.DataFrame:
    """Table 5; index kind and `total`. Columns: `r`, Pearson's correlation across cells of mean calls a trial with mean
    reward (NaN for fewer than three cells, or where either is the same everywhere); `unused`, cells without such a
    call; `cells`.
    """
    calls = tool_calls(trials).drop(columns="trials")
    score = summary(trials, attempts)["mean_reward"].reindex(calls.index)
    found = {}
    for kind in calls:
        varies = len(calls) > 2 and np.ptp(calls[kind]) > 0 and np.ptp(score) > 0  # noqa: PLR2004 - two lie on a line
        found[kind] = {
            "r": float(np.corrcoef(calls[kind], score)[0, 1]) if varies else np.nan,
            "unused": int((calls[kind] == 0).sum()),
            "cells": len(calls),
        }
    return pd.DataFrame(found).T


def endings(trials: pd.DataFrame) -> pd.DataFrame:
    """Figure 5; index cell. Columns: `trials`; `early_stop`, share that the agent itself finished in fewer than `EARLY`
    turns; `non_finish`, share that it never finished: it halted, waited for an answer, or was ended.
    """
    rows = _rows(trials)
    own = rows["own_finish"].fillna(value=False).astype(bool)
    early = own & (rows["turns"].astype(float) < EARLY)
    shares = pd.DataFrame({"early_stop": early, "non_finish": ~own}).groupby(rows["cell"]).mean()
    return shares.assign(trials=rows.groupby("cell").size())


def transitions(trials: pd.DataFrame) -> pd.DataFrame:
    """Section 4.3.6; index (cell, kind), a column the kind that follows: counts of consecutive calls of one trial."""
    rows = _rows(trials)
    pairs = Counter(
        (cell, before, after)
        for cell, words in zip(rows["cell"], _words(rows), strict=True)
        for before, after in pairwise(words)
    )
    index = pd.MultiIndex.from_product([sorted(rows["cell"].unique()), KINDS], names=["cell", "kind"])
    counts = [[pairs[cell, before, after] for after in KINDS] for cell, before in index]
    return pd.DataFrame(counts, index=index, columns=list(KINDS), dtype=int)


def patterns(trials: pd.DataFrame) -> pd.DataFrame:
    """Index cell; a column a pattern of `PATTERNS`: its share of all transitions; `transitions`, the denominator."""
    table = transitions(trials)
    total = table.groupby("cell").sum().sum(axis=1)
    shares = {
        name: sum(table.xs(before, level="kind")[after] for before, after in steps) / total.replace(0, np.nan)
        for name, steps in PATTERNS.items()
    }
    return pd.DataFrame(shares).assign(transitions=total)


def programs(trials: pd.DataFrame, most: int = 10) -> pd.DataFrame:
    """ExecutionAgent's Figure 10; index cell, those whose terminals ran something. Columns: the `most` programs that
    all cells together ran most often, the most frequent first: share of what the cell ran; `commands`, the denominator.
    """
    rows = _rows(trials).reindex(columns=["cell", "programs"]).dropna(subset="programs")
    names = rows["programs"].astype(str).str.split(";").explode()
    names = names[names != ""]
    counts = names.groupby([rows["cell"].loc[names.index], names]).size().unstack(fill_value=0)  # noqa: PD010 - counts
    frequent = counts.sum().sort_values(ascending=False, kind="stable").index[:most]
    commands = counts.sum(axis=1)
    return counts[frequent].div(commands, axis=0).assign(commands=commands)


def phases(trials: pd.DataFrame) -> pd.DataFrame:
    """ExecutionAgent's section 3.5.2; index cell. Columns: `trials` that called tools; for each of `PHASES` its share
    of their calls, mean over trials, and `<phase>_at`, where in a trial its calls lie, from 0 (the first call) to 1
    (the last): mean over the trials that have it of their median; `in_order`, share of trials that have all three
    phases, their medians in this order.
    """
    rows = _rows(trials).reindex(columns=["cell", "tool_phases"])
    texts = rows["tool_phases"].dropna().astype(str)
    texts = texts[texts != ""]
    found = pd.DataFrame([_in_phases(text.split()) for text in texts], index=texts.index, columns=_PHASES)
    cells = found.astype(float).groupby(rows["cell"].loc[texts.index])
    return cells.mean().assign(trials=cells.size())


def _in_phases(words: Sequence[str]) -> dict[str, float]:
    """One trial's line of `phases`."""
    places = {phase: [at for at, word in enumerate(words) if word == phase] for phase in PHASES}
    last = max(len(words) - 1, 1)
    medians = [float(np.median(places[phase])) / last if places[phase] else np.nan for phase in PHASES]
    return {
        **{phase: len(places[phase]) / len(words) for phase in PHASES},
        **{f"{phase}_at": median for phase, median in zip(PHASES, medians, strict=True)},
        "in_order": float(medians[0] < medians[1] < medians[2]),
    }


def _words(rows: pd.DataFrame) -> list[list[str]]:
    """The kinds of each trial's calls; a word that is no kind is `other`."""
    return [
        [word if word in KINDS else "other" for word in str(text).split()]
        for text in rows["tool_kinds"].fillna("")
    ]
