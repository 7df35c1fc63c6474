"""Whether a trials table can be scored at all: each rule here names the rows that break it, and nothing is mended."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from metrics.ams import Scoring
from metrics.errors import TableError, listed
from metrics.table import FINISHED, moments

REQUIRED = (
    *("cell", "dataset", "tier", "task", "attempt", "status", "finished_at"),
    *("reward", "passed", "tokens", "cost_usd", "turns"),
)
"""Columns without which nothing is scored."""
NAMES = ("cell", "dataset", "tier", "task", "status")
"""Columns of words. None is ever missing, nor is `attempt`."""
PARTS = ("agent", "model", "budget")
"""Columns of words that need not be there; none is missing where they are."""
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
"""Columns that are missing, or finite and not negative."""
MOST = 2.0**53
"""Above which a count is no longer exact, and no amount makes sense."""
MOST_ATTEMPTS = 1_000_000
"""Greatest number of an attempt."""
STATUSES = (*FINISHED, "infra_invalid", "cancelled")


def check(
    trials: pd.DataFrame,
    scoring: Scoring | None = None,
    *,
    one_dataset: bool = False,
    columns: Sequence[str] = (),
) -> pd.DataFrame:
    """The table with proper types (names str, amounts float, `passed` boolean, `finished_at` UTC), if it can be scored.

    Raises `TableError` that names every row at fault, for: no rows; missing columns; a missing name; values that are
    no number, negative or infinite; reward outside [0, 1]; `passed` that is not 0, 1 or missing; an unknown status;
    an unreadable time; two rows of one (cell, task, attempt); a cell of several datasets, agents, models or budgets; a
    task of several tiers; names that differ in spaces or unseen characters alone; amounts above 2^53.
    With `scoring`: a cell without tasks in a tier that has weight. With `one_dataset`: trials of several. `columns`
    are needed beside `REQUIRED`.
    """
    if absent := [name for name in (*REQUIRED, *columns) if name not in trials]:
        raise TableError({f"No column {', '.join(absent)}": ()})
    if not len(trials):
        raise TableError({"No trials": ()})
    typed, problems = _typed(trials)
    problems |= dict(_values(typed))
    problems |= dict(_keys(typed))
    if one_dataset:
        problems |= dict(_datasets(typed))
    if scoring is not None:
        problems |= dict(_tiers(typed, scoring))
    if found := {problem: trials.index[rows] for problem, rows in problems.items() if rows.any()}:
        raise TableError(found)
    return typed


def relabel(trials: pd.DataFrame, labels: Mapping[str, str]) -> pd.DataFrame:
    """The table with `tier` from a calibration's labels (task -> tier). Raises `TableError` for a task without one."""
    tier = trials["task"].map(dict(labels))
    if tier.isna().any():
        names = listed(sorted(trials.loc[tier.isna(), "task"].unique()))
        raise TableError({f"Tasks without a tier ({names})": trials.index[tier.isna()]})
    return trials.assign(tier=tier)


def _typed(trials: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, pd.Series[bool]]]:
    """The table in proper types, and the rows whose values have none."""
    words = [name for name in (*NAMES, *PARTS) if name in trials]
    columns: dict[str, pd.Series] = {name: trials[name].astype("str") for name in words}
    problems = {}
    for name in ("attempt", "reward", *AMOUNTS):
        if name in trials:
            columns[name] = pd.to_numeric(trials[name], errors="coerce").astype(float)
            problems[f"{name} is no number"] = columns[name].isna() & trials[name].notna()
    problems["attempt is no whole number"] = (columns["attempt"] % 1 != 0) & columns["attempt"].notna()
    columns["passed"] = flags(trials["passed"])
    problems["passed is neither true (1) nor false (0)"] = columns["passed"].isna() & trials["passed"].notna()
    columns["finished_at"] = moments(trials["finished_at"])
    read = columns["finished_at"].notna() & ~_bare_numbers(trials["finished_at"])
    problems["finished_at is no ISO 8601 time"] = ~read & trials["finished_at"].notna()
    return trials.assign(**columns), problems


def _bare_numbers(values: pd.Series) -> pd.Series[bool]:
    """What may be seconds, milliseconds or a year, also as text."""
    if values.dtype.kind == "M":
        return pd.Series(data=False, index=values.index)
    return pd.to_numeric(values.astype("str"), errors="coerce").notna()


def flags(values: pd.Series) -> pd.Series[bool]:
    """True and False, also as a CSV spells them; NA for the rest."""
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
            alike = trials[name].isin(_alike(trials[name]))
            words = listed(repr(word) for word in sorted(trials.loc[alike, name].unique()))
            yield f"Names of {name} that look alike ({words})", alike
    unknown = ~trials["status"].isin(STATUSES) & trials["status"].notna()
    said = _each(trials.loc[unknown, "status"])
    yield f"Unknown status ({said}); there are {', '.join(STATUSES)}", unknown
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
    tasks = pd.MultiIndex.from_frame(trials[["dataset", "task"]])
    at_fault = tasks.isin(pd.MultiIndex.from_frame(torn))  # a task of this name elsewhere is another task
    yield f"One task in several tiers ({_each(torn['task'])})", pd.Series(at_fault, index=trials.index)


def _alike(names: pd.Series[str]) -> set[str]:
    """Names that differ from another in spaces, or in characters that nobody sees, alone."""
    looks: dict[str, list[str]] = {}
    for name in names.dropna().unique():
        seen = "".join(letter for letter in name if unicodedata.category(letter) != "Cf")
        looks.setdefault(" ".join(unicodedata.normalize("NFC", seen).split()), []).append(name)
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
    """The first of them, each once."""
    return listed(sorted(names.dropna().unique()))
