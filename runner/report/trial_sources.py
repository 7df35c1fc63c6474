"""Sources of trials: the folder of a sweep, which may be imported, or a table from elsewhere."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import csv

from metrics.checks import check, relabel
from metrics.errors import TableError
from runner.errors import ConfigError
from runner.records import AXES, CELL_SEPARATOR, Scoring, TrialRecord
from runner.report.csv_cells import read_texts
from runner.report.trials_table import trials_table
from runner.sweeps import sweep_file
from runner.sweeps.store import Store
from runner.sweeps.sweep_file import IMPORTED, SweepFile
from runner.terminal.suggestions import suggest


def _read_csv(path: Path) -> pd.DataFrame:
    """Read a CSV file as texts, `NA` and empty ones included; the caller decides which are missing values.

    Raises `ValueError` for rows longer than the head, whose columns pandas would shift, and for two columns of the same
    name, of which it would rename the second.
    """
    table = _read_regular_csv(path)
    return read_texts(_read_any_csv(path) if table is None else table)


def _read_regular_csv(path: Path) -> pd.DataFrame | None:
    """Read a CSV file with Arrow, which reads a million rows in a second; None if pandas must have a closer look.

    Arrow refuses rows that are longer or shorter than the head.
    """
    text = csv.ConvertOptions(default_column_type=pa.string())
    try:
        table = csv.read_csv(
            path, parse_options=csv.ParseOptions(newlines_in_values=True), convert_options=text
        )
    except pa.ArrowInvalid:
        return None
    names = table.column_names
    if not (table.num_rows and all(names)) or len(set(names)) < len(names):
        return None
    texts: pd.DataFrame = table.to_pandas(
        types_mapper=lambda _: pd.StringDtype(na_value=np.nan), split_blocks=True
    )
    return texts


def _read_any_csv(path: Path) -> pd.DataFrame:
    """Read a CSV file with pandas, to say what is wrong with it. Raises as `_read_csv`."""
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    head = pd.read_csv(path, dtype=str, header=None, nrows=1).iloc[0].dropna()
    if head.duplicated().any():
        raise ValueError(f"its head has {', '.join(sorted(set(head[head.duplicated()])))} twice")
    if not table.index.equals(pd.RangeIndex(len(table))):
        raise ValueError("its rows have more fields than its head")
    return table


MISSING = (
    *("", "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>"),
    *("NaN", "nan", "-NaN", "-nan", "null", "NULL", "None"),
)
"""Words for a missing value in a file without a mapping."""
READERS: dict[str, Callable[[Path], pd.DataFrame]] = {
    ".csv": _read_csv,
    ".parquet": pd.read_parquet,
    ".json": lambda path: pd.read_json(path, dtype=False),
}
"""Ending of a file of trials -> its reader, which converts nothing: a task may be named 007. JSON is an array of
objects."""


class Source(NamedTuple):
    """Trials and their origin."""

    name: str
    """Name of the sweep or the file."""
    path: Path
    """The sweep's folder, or the file."""
    folder: Path | None
    """Folder of the sweep; None for a file."""
    scoring: Scoring | None
    """Scoring of the sweep; None for a file."""
    trials: pd.DataFrame
    """Trials of the records or the file, with the tasks' own tiers."""

    @property
    def digest(self) -> str:
        """Digest of the trials, rows and columns in their order."""
        return digest(self.trials)


def digest(trials: pd.DataFrame, scoring: Scoring | None = None) -> str:
    """Return the SHA-256 of a table, rows and columns in their order, and of the scoring."""
    rows = pd.util.hash_pandas_object(trials, index=False).to_numpy()
    rest = json.dumps([list(trials), scoring.model_dump(mode="json") if scoring else None])
    return hashlib.sha256(rows.tobytes() + rest.encode()).hexdigest()


def sweep_trials(sweep: Path, outputs: Path) -> tuple[SweepFile, dict[str, TrialRecord], pd.DataFrame]:
    """Return the plan of a sweep's folder, its records by key, and its trials, numbered from 1 as in `trials.csv`.

    The tiers are the tasks' own. An imported sweep has no records. Raises `ConfigError`.
    """
    plan = sweep_file.read(sweep)
    if plan.imported:
        return plan, {}, _numbered(pd.read_parquet(sweep / IMPORTED))
    store = Store(outputs)
    records = store.load([row.key for row in plan.planned])
    trials = trials_table(plan.planned, records, plan.not_started)
    damaged = [path.parent.name for path in store.damaged(trials.loc[~trials["ran"], "key"])]
    trials.loc[trials["key"].isin(damaged), ["outcome", "reason"]] = "record damaged"
    return plan, records, _numbered(trials)


def labelled(trials: pd.DataFrame, scoring: Scoring) -> pd.DataFrame:
    """Return trials with the tiers of the tiers file, if there is one. Raises `TableError` for tasks that it lacks."""
    return relabel(trials, scoring.labels) if scoring.labels else trials


def read_source(word: str, outputs: Path) -> Source:
    """Read trials of a sweep in `outputs`, of a sweep's folder elsewhere, or of a CSV, Parquet or JSON file.

    Raises `ConfigError` when there is no such thing, and `TableError` when the table cannot be scored.
    """
    path = Path(word).expanduser()
    folders = [folder for folder in (outputs / word, path) if sweep_file.exists(folder)]
    if folders:
        folder = folders[0].absolute()
        plan, _, trials = sweep_trials(folder, folder.parent)
        return Source(plan.name, folder, folder, plan.scoring, trials)
    if not path.is_file():
        if path.suffix in READERS:
            raise ConfigError(f"{path} is not a file, and {outputs} has no sweep of that name.")
        sweep_file.read(outputs / word)  # names the sweeps that there are
    trials = read_table(path)
    trials = trials.mask(trials.isin(MISSING))
    if "cell" not in trials and all(name in trials for name in AXES):
        trials = trials.assign(cell=cells_of(trials))
    return Source(path.name, path.absolute(), None, None, check(trials))


def cells_of(trials: pd.DataFrame) -> pd.Series[str]:
    """Return the name of each row's cell; a missing part is left out, for `check` to name."""
    parts = [trials[name].astype("string").fillna("") for name in AXES]
    return reduce(lambda before, part: before + CELL_SEPARATOR + part, parts)


def read_table(path: Path) -> pd.DataFrame:
    """Read a file as a table, one row a trial, numbered from 1. Raises `ConfigError` when it cannot be read, and
    `TableError` when it has no trial.
    """
    reader = READERS.get(path.suffix)
    if reader is None:
        raise ConfigError(f"{path} is not a table. {suggest(path.suffix, READERS)}")
    try:
        table = reader(path)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {' '.join(str(error).split())}") from error
    if table.empty:
        raise TableError({f"No trials in {path}": ()})
    return _numbered(table)


def _numbered(trials: pd.DataFrame) -> pd.DataFrame:
    """Number rows from 1."""
    return trials.set_axis(range(1, len(trials) + 1))
