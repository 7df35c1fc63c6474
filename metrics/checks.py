"""Checks that a trials table can be scored: each rule names the rows that break it, and no row is repaired."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
import pandas as pd

from metrics.ams import Scoring
from metrics.errors import TableError, listed
from metrics.table import FINISHED, categorized, moments

REQUIRED = (
    *("cell", "dataset", "tier", "task", "attempt", "status", "finished_at"),
    *("reward", "passed", "tokens", "cost_usd", "turns"),
)
"""Columns without which nothing is scored."""
NAMES = ("cell", "dataset", "tier", "task", "status")
"""Text columns without missing values; `attempt` has none either."""
PARTS = ("agent", "model", "budget")
"""Optional text columns; one that exists has no missing values."""
AMOUNTS = (
    *("input_tokens", "cache_creation_tokens", "cache_hit_tokens", "output_tokens", "tokens"),
    *(
        "cost_usd",
        "turns",
        "interactions",
        "wall_seconds",
        "agent_seconds",
        "workspace_files",
        "workspace_lines",
    ),
)
"""Number columns, all but the required ones optional; a value is missing, or finite and not negative."""
MOST = 2.0**53
"""Largest amount accepted: floats above it no longer hold exact counts."""
MOST_ATTEMPTS = 1_000_000
"""Largest attempt number accepted."""
STATUSES = (*FINISHED, "infra_invalid", "cancelled")


def check(
    trials: pd.DataFrame,
    scoring: Scoring | None = None,
    *,
    one_dataset: bool = False,
    columns: Sequence[str] = (),
) -> pd.DataFrame:
    """Return the table with proper types: names str, amounts float, `passed` boolean, `finished_at` UTC.

    Names that are categories of str stay so. `columns` are required beside `REQUIRED`. Raises `TableError`, which names
    every row at fault, for: no rows; missing columns; a missing name; a value that is not a number, is negative,
    infinite or above 2^53; a reward outside [0, 1]; a `passed` that is not 0, 1 or missing; an unknown status; a time
    that is not ISO 8601; two rows of one (cell, task, attempt); a cell of several datasets, agents, models or budgets;
    a task of several tiers; names that differ only in spaces or invisible characters; with `scoring`, a cell without a
    task in a tier that has weight; with `one_dataset`, several datasets.
    """
    if absent := [name for name in (*REQUIRED, *columns) if name not in trials]:
        raise TableError({f"No column {', '.join(absent)}": ()})
    if not len(trials):
        raise TableError({"No trials": ()})
    typed, unread = _typed(trials)
    coded = categorized(typed, (*NAMES, *PARTS))
    problems = chain(
        unread.items(),
        _values(typed),
        _keys(coded),
        _datasets(coded) if one_dataset else (),
        _tiers(coded, scoring) if scoring is not None else (),
    )
    if found := {problem: trials.index[rows] for problem, rows in problems if rows.any()}:
        raise TableError(found)
    return typed


def relabel(trials: pd.DataFrame, labels: Mapping[str, str]) -> pd.DataFrame:
    """Return the table with its `tier` replaced by `labels` (task -> tier).

    Raises `TableError` for a task without a label.
    """
    tier = trials["task"].map(dict(labels))
    if tier.isna().any():
        names = listed(sorted(trials.loc[tier.isna(), "task"].unique()))
        raise TableError({f"Tasks without a tier ({names})": trials.index[tier.isna()]})
    return trials.assign(tier=tier)


def _typed(trials: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, pd.Series[bool]]]:
    """Return the table with proper types, and problem -> whether a row's value cannot be converted."""
    words = [name for name in (*NAMES, *PARTS) if name in trials]
    columns: dict[str, pd.Series] = {name: _texts(trials[name]) for name in words}
    problems = {}
    for name in ("attempt", "reward", *AMOUNTS):
        if name in trials:
            columns[name] = pd.to_numeric(trials[name], errors="coerce").astype(float)
            problems[f"{name} is not a number"] = columns[name].isna() & trials[name].notna()
    problems["attempt is not a whole number"] = (columns["attempt"] % 1 != 0) & columns["attempt"].notna()
    columns["passed"] = flags(trials["passed"])
    problems["passed is neither true (1) nor false (0)"] = columns["passed"].isna() & trials["passed"].notna()
    columns["finished_at"] = moments(trials["finished_at"])
    read = columns["finished_at"].notna() & ~_bare_numbers(trials["finished_at"])
    problems["finished_at is not an ISO 8601 time"] = ~read & trials["finished_at"].notna()
    return trials.assign(**columns), problems


def _texts(names: pd.Series) -> pd.Series:
    """Return names as str; categories that are str stay categories, which take a tenth of the memory."""
    categories = names.cat.categories if isinstance(names.dtype, pd.CategoricalDtype) else None
    return names if categories is not None and categories.dtype == "str" else names.astype("str")


def _bare_numbers(values: pd.Series) -> pd.Series[bool]:
    """Return which values are plain numbers, also as text: they may be seconds, milliseconds or a year."""
    if values.dtype.kind == "M":
        return pd.Series(data=False, index=values.index)
    codes, words = pd.factorize(values.astype("str"))  # times are often shared by many trials
    numbers = pd.to_numeric(pd.Series(words), errors="coerce").notna().to_numpy(bool)
    return pd.Series(
        np.append(numbers, False)[codes], index=values.index
    )  # the code of a missing value is -1


def flags(values: pd.Series) -> pd.Series[bool]:
    """Return the values as booleans, read from 0, 1, true and false in any spelling of a CSV; NA for any other."""
    if values.dtype.kind in "biuf":
        numbers = values.astype(float)
    else:
        text = values.astype("string").str.lower().replace({"true": "1", "false": "0"})
        numbers = pd.to_numeric(text, errors="coerce").astype(float)
    return numbers.where(numbers.isin((0.0, 1.0))).astype("boolean")


def _values(trials: pd.DataFrame) -> Iterator[tuple[str, pd.Series[bool]]]:
    for name in AMOUNTS:
        if name in trials:
            yield f"{name} is negative", trials[name] < 0
            yield f"{name} is infinite", np.isinf(trials[name])
            yield f"{name} is above 2^53", np.isfinite(trials[name]) & (trials[name] > MOST)
    yield "attempt is negative", trials["attempt"] < 0
    yield (
        f"attempt is above {MOST_ATTEMPTS}",
        np.isfinite(trials["attempt"]) & (trials["attempt"] > MOST_ATTEMPTS),
    )
    yield "reward is outside [0, 1]", (trials["reward"] < 0) | (trials["reward"] > 1)


def _keys(trials: pd.DataFrame) -> Iterator[tuple[str, pd.Series[bool]]]:
    for name in (*NAMES, *PARTS, "attempt"):
        if name in trials:
            yield f"{name} is missing", trials[name].isna()
    for name in ("cell", "dataset", "tier", "task", *PARTS):
        if name in trials:
            alike = trials[name].isin(_alike(trials[name].cat.categories))
            words = listed(repr(word) for word in sorted(trials.loc[alike, name].unique()))
            yield f"Names of {name} that look alike ({words})", alike
    unknown = ~trials["status"].isin(STATUSES) & trials["status"].notna()
    statuses = _each(trials.loc[unknown, "status"])
    yield f"Unknown status ({statuses}); there are {', '.join(STATUSES)}", unknown
    yield "Two rows of one cell, task and attempt", trials.duplicated(["cell", "task", "attempt"], keep=False)
    homes = trials[["cell", "dataset"]].drop_duplicates()
    spread = homes.loc[homes.duplicated("cell"), "cell"]
    yield f"One cell in several datasets ({_each(spread)})", trials["cell"].isin(spread)
    for part in PARTS:
        if part in trials:
            shared = trials[["cell", part]].dropna().drop_duplicates()
            merged = shared.loc[shared.duplicated("cell"), "cell"]
            yield f"One cell of several {part}s ({_each(merged)})", trials["cell"].isin(merged)
    strata = trials[["dataset", "task", "tier"]].drop_duplicates()
    torn = strata.loc[strata.duplicated(["dataset", "task"]), ["dataset", "task"]]
    at_fault = pd.Series(data=False, index=trials.index)
    if len(torn):  # the same name in another dataset is another task
        tasks = pd.MultiIndex.from_frame(trials[["dataset", "task"]])
        at_fault |= tasks.isin(pd.MultiIndex.from_frame(torn))
    yield f"One task in several tiers ({_each(torn['task'])})", at_fault


def _alike(names: Iterable[str]) -> set[str]:
    """Return the names that differ from another one only in spaces or in invisible characters."""
    looks: dict[str, list[str]] = {}
    for name in names:
        visible = "".join(letter for letter in name if unicodedata.category(letter) != "Cf")
        looks.setdefault(" ".join(unicodedata.normalize("NFC", visible).split()), []).append(name)
    return {name for names in looks.values() if len(names) > 1 for name in names}


def _datasets(trials: pd.DataFrame) -> Iterator[tuple[str, pd.Series[bool]]]:
    names = _each(trials["dataset"])
    others = trials["dataset"] != trials["dataset"].iloc[0]
    yield f"Trials of several datasets ({names}) where one is wanted", others


def _tiers(trials: pd.DataFrame, scoring: Scoring) -> Iterator[tuple[str, pd.Series[bool]]]:
    for name, tier in scoring.tiers.items():
        if tier.weight:
            filled = (trials["tier"] == name).groupby(trials["cell"]).transform("any")
            cells = _each(trials.loc[~filled, "cell"])
            yield f"No task of tier {name} in the cell of these ({cells})", ~filled


def _each(names: pd.Series[str]) -> str:
    """Return the first few distinct names, sorted, as text."""
    return listed(sorted(names.dropna().unique()))
