"""How agents work, from the gateway's record and so the same for all (NL2Repo-Bench, section 4.3).

Columns read beside those of `metrics.table`: `tool_kinds`, the kinds of a trial's tool calls in their order, one word
each with a space between; `own_finish`, whether the agent ended its work itself. Everything is over **valid** trials,
every attempt, of cells with a model.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pandas as pd

from metrics.table import summary, valid

KINDS = ("edit", "execute", "plan", "read", "search", "finish", "other")
EARLY = 100
"""Turns; who finishes in fewer stops early (section 4.3.3)."""
LOOK = ("read", "search")
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
    """Whether some trial's tool calls were recorded by kind."""
    return "tool_kinds" in trials and bool(trials["tool_kinds"].fillna("").astype(str).str.len().any())


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
    table["score"] = summary(trials, attempts)["mean_reward"].reindex(table.index)
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


def _words(rows: pd.DataFrame) -> list[list[str]]:
    """The kinds of each trial's calls; a word that is no kind is `other`."""
    return [
        [word if word in KINDS else "other" for word in str(text).split()]
        for text in rows["tool_kinds"].fillna("")
    ]
