"""Import other people's trials as a sweep, by a mapping of columns, words and units. Nothing is invented."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping as Named
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import compute
from pydantic import Field, PositiveFloat

from metrics.checks import AMOUNTS, MOST_ATTEMPTS, check, flags
from metrics.errors import TableError
from runner import __version__
from runner.errors import ConfigError
from runner.files import no_room, write_atomically
from runner.locks import exclusive
from runner.records import Record, Scoring
from runner.report.trial_sources import MISSING, cells_of, read_table
from runner.report.trials_table import never_run
from runner.sweeps import sweep_file
from runner.sweeps.sweep_file import IMPORTED, Imported, SweepFile
from runner.terminal.suggestions import suggest

NAMES = ("agent", "model", "dataset", "budget", "task", "tier", "category", "language", "source", "status")
OTHERS = ("attempt", "reward", "passed", "started_at", "finished_at", "reason")
COLUMNS = (*NAMES, *OTHERS, *AMOUNTS)
"""Names that a mapping may give to a column or a constant."""
DEFAULTS = {
    "budget": "default",
    "attempt": 1,
    "tier": "unknown",
    "category": "unknown",
    "language": "unknown",
    "source": "unknown",
}
"""Values of columns that a mapping may leave out."""
NEEDED = ("agent", "model", "dataset", "task", "status")
ANY = "*"
"""Key in `words` that stands for every word that is not listed."""
_ROWS_AT_ONCE = 100_000
"""Rows whose identities are in memory at a time."""


class Mapping(Record):
    """The meaning of a foreign table's columns."""

    columns: dict[str, str] = Field(min_length=1)
    """Our column -> their column."""
    constants: dict[str, str | int | float | bool] = {}
    """Our column -> one value for all rows."""
    words: dict[str, dict[str, str | int | float | bool | None]] = {}
    """Ours -> their word -> our value (null: missing); `*` is every other word. A word that is not listed stays."""
    per_unit: dict[str, PositiveFloat] = {}
    """Ours -> how many of their units make one of ours: 100 cents a USD, 6.77 CNY a USD, 1000 ms a second."""
    components: dict[str, str] = {}
    """Figures of a verifier beside the reward: name -> their column."""
    missing: tuple[str, ...] = ("-", *MISSING)
    """Their words for a missing value, in components and in columns without `words`."""
    pass_threshold: float = 1.0
    """Least reward of a pass, for a table without a column `passed`. Without a column `reward`, a pass has reward 1."""
    planned: Literal["rows", "grid"] = "rows"
    """rows: what the table lists was planned. grid: every cell planned every task of its dataset, and what is not
    listed was not run, and so contributes 0."""


def import_trials(file: Path, mapping: Mapping, sweep: Path, scoring: Scoring) -> tuple[SweepFile, int]:
    """Write the folder of a sweep with a table's trials; return its plan and the number of planned trials that the
    table lacks.

    `imported.parquet` has the trials in our columns, `sweep.json` their origin. Raises `ConfigError` for a
    mapping that does not fit the table and `TableError` for rows (numbered from 1) that cannot be scored; nothing is
    written then.
    """
    ours = check(_ours(read_table(file), mapping))
    content = _digest(file, mapping.model_dump_json().encode())
    known = _filled(never_run(_identity(ours, content)), ours)
    absent = _absent(ours) if mapping.planned == "grid" else ours[:0]
    parts = [known, never_run(_identity(absent, content))] if len(absent) else [known]
    table = pd.concat(parts, ignore_index=True)
    plan = SweepFile(
        name=sweep.name,
        created=datetime.now(UTC),
        scoring=scoring,
        versions={"assay": __version__},
        imported=Imported(
            file=file.name,
            digest=file_digest(file),
            mapping=mapping.model_dump(mode="json"),
            rows=len(ours),
            unpriced=int(ours["cost_usd"].isna().sum()),
        ),
    )
    try:
        sweep.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise no_room(sweep, error) from error
    with exclusive(sweep):  # else one of two imports may write the table and the other one its origin
        write_atomically(sweep / IMPORTED, table.to_parquet(index=False))
        sweep_file.write(sweep, plan)
    return plan, len(absent)


def file_digest(file: Path) -> str:
    """Return the SHA-256 of a file's content. Raises `ConfigError` when it cannot be read."""
    try:
        return _digest(file, b"")
    except OSError as error:
        raise ConfigError(f"{file} cannot be read ({error.strerror}).") from error


def _digest(file: Path, behind: bytes) -> str:
    """Return the SHA-256 of a file's content with these bytes behind it."""
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256")
    digest.update(behind)
    return digest.hexdigest()


def _ours(theirs: pd.DataFrame, mapping: Mapping) -> pd.DataFrame:
    """Return their table in our columns, with only words and units changed. Raises `ConfigError`."""
    _check_names(theirs, mapping)
    _check_complete(mapping)
    ours = pd.DataFrame(DEFAULTS | mapping.constants, index=theirs.index)
    for name, column in mapping.columns.items():
        ours[name] = _column(theirs[column], name, mapping)
    for name in ("category", "language", "source"):
        ours[name] = ours[name].fillna("unknown")
    for name in (*AMOUNTS, "finished_at", "started_at"):
        if name not in ours:
            ours[name] = pd.NaT if name.endswith("_at") else float("nan")
    numbers = {name: _column(theirs[column], name, mapping) for name, column in mapping.components.items()}
    bad = {f"component {name} is not a number": _no_number(values) for name, values in numbers.items()}
    attempt = pd.to_numeric(ours["attempt"], errors="coerce").astype(float)
    bad["attempt is not a whole number"] = ours.index[attempt.mod(1) != 0]
    bad[f"attempt is above {MOST_ATTEMPTS}"] = ours.index[attempt > MOST_ATTEMPTS]
    started = pd.to_datetime(ours["started_at"], utc=True, errors="coerce", format="ISO8601")
    bad["started_at is not a time"] = ours.index[started.isna() & ours["started_at"].notna()]
    if found := {problem: rows for problem, rows in bad.items() if len(rows)}:
        raise TableError(found)
    ours = ours.assign(started_at=started, attempt=attempt.astype(int))
    ours = ours.assign(**{name: pd.to_numeric(values) for name, values in numbers.items()})
    ours["cell"] = cells_of(ours)
    return _with_tokens(_with_reward(ours, mapping.pass_threshold))


def _check_names(theirs: pd.DataFrame, mapping: Mapping) -> None:
    """Raise `ConfigError` for names that the table or our columns lack."""
    for part in ("columns", "constants", "words", "per_unit"):
        for name in getattr(mapping, part):
            if name not in COLUMNS:
                raise ConfigError(f"mapping.{part}: trials have no '{name}'. {suggest(name, COLUMNS)}")
            if part in ("words", "per_unit") and name not in mapping.columns:
                raise ConfigError(
                    f"mapping.{part}.{name}: mapping.columns does not say which column that is."
                )
    for name in (*mapping.columns.values(), *mapping.components.values()):
        if name not in theirs:
            raise ConfigError(
                f"mapping: the table has no column '{name}'. {suggest(name, map(str, theirs.columns))}"
            )


def _check_complete(mapping: Mapping) -> None:
    """Raise `ConfigError` for names that are given twice, and for required ones that are missing."""
    given = [*mapping.columns, *mapping.constants]
    if twice := set(mapping.columns) & set(mapping.constants):
        raise ConfigError(f"mapping: {', '.join(sorted(twice))} is both a column and a constant.")
    if taken := set(mapping.components) & {*COLUMNS, "cell", "tokens"}:
        raise ConfigError(
            f"mapping.components: {', '.join(sorted(taken))} is a column of its own; choose another name."
        )
    if absent := [name for name in NEEDED if name not in given]:
        raise ConfigError(f"mapping: say what {', '.join(absent)} is, as a column or a constant.")
    if "reward" not in given and "passed" not in given:
        raise ConfigError("mapping: say what reward or passed is; without either nothing can be scored.")


def _column(theirs: pd.Series, name: str, mapping: Mapping) -> pd.Series:
    """Return a column in our words and units. What is not a number stays, for `check` to name its row."""
    if not isinstance(theirs.dtype, pd.StringDtype):
        return _meant(theirs, name, mapping)
    codes, words = pd.factorize(theirs)  # each different word is read once
    each = pd.concat([pd.Series(words), pd.Series([None], dtype=theirs.dtype)], ignore_index=True)
    meant = _meant(each, name, mapping)
    if name in NAMES:
        meant = meant.astype("str")
    elif name in (*AMOUNTS, "reward"):
        numbers = pd.to_numeric(meant, errors="coerce")
        meant = meant if (numbers.isna() & meant.notna()).any() else numbers
    return meant.iloc[codes].set_axis(theirs.index)  # the code of a missing one is -1


def _meant(theirs: pd.Series, name: str, mapping: Mapping) -> pd.Series:
    words = theirs.astype("string").str.strip()
    if meanings := mapping.words.get(name):
        words = words.fillna("")
        meant = {word: _word(word, meanings) for word in words.unique()}
        return words.astype(object).map(meant).astype(object)
    values = (words if name in NAMES else theirs).astype(object)
    values = values.mask(words.isin(mapping.missing) | words.isna(), None)
    if per := mapping.per_unit.get(name):
        numbers = pd.to_numeric(values, errors="coerce")
        values = values.mask(numbers.notna(), numbers / per)
    return values


def _word(word: str, meanings: Named[str, Any]) -> Any:
    """Return the meaning of a word: as listed, as for `*`, or itself. An empty word is missing unless it is listed."""
    return meanings.get(word, meanings.get(ANY, word) if word else None)


def _no_number(values: pd.Series) -> pd.Index:
    return values.index[pd.to_numeric(values, errors="coerce").isna() & values.notna()]


def _with_reward(ours: pd.DataFrame, threshold: float) -> pd.DataFrame:
    """Add `reward` or `passed` where the table lacks it, from the other; missing values stay missing."""
    if "passed" not in ours:
        reward = pd.to_numeric(ours["reward"], errors="coerce")
        return ours.assign(passed=(reward >= threshold).astype("boolean").mask(reward.isna()))
    if "reward" not in ours:
        return ours.assign(reward=flags(ours["passed"]).astype(float))
    return ours


def _with_tokens(ours: pd.DataFrame) -> pd.DataFrame:
    """Add `tokens` = input + output where the table has these and no total."""
    parts = [pd.to_numeric(ours[name], errors="coerce") for name in ("input_tokens", "output_tokens")]
    return ours.assign(tokens=parts[0] + parts[1]) if ours["tokens"].isna().all() else ours


def _identity(ours: pd.DataFrame, content: str) -> pd.DataFrame:
    """Return the identity of each row's trial, with its key.

    The key also digests the imported content: another import has other keys for the same cells and tasks.
    """
    names = [
        "agent",
        "model",
        "dataset",
        "budget",
        "task",
        "attempt",
        "tier",
        "category",
        "language",
        "source",
    ]
    rows = ours[names].reset_index(drop=True).assign(attempt=ours["attempt"].to_numpy(int))
    order = [*(name for name in NAMES if name not in ("source", "status")), "attempt"]
    parts = [pa.array(rows[name].astype("str").array, pa.large_string()) for name in order]
    identities = compute.binary_join_element_wise(*parts, pa.scalar("\n", pa.large_string()))
    before, each = f"imported\n{content}\n".encode(), identities.cast(pa.large_binary())
    digests = b"".join(
        hashlib.sha256(before + identity).digest()[:16]
        for start in range(0, len(each), _ROWS_AT_ONCE)
        for identity in each.slice(start, _ROWS_AT_ONCE).to_pylist()
    )
    rows.insert(0, "key", _in_hexadecimal(digests, 16))
    return rows.assign(cell=ours["cell"].array)


def _in_hexadecimal(digests: bytes, size: int) -> pd.Series[str]:
    """Return each digest of `size` bytes as a text; no text is an object of its own, which a million would feel."""
    ends = np.arange(0, 2 * len(digests) + 1, 2 * size, dtype="int64")
    text = pa.py_buffer(digests.hex().encode())
    keys = pa.LargeStringArray.from_buffers(len(ends) - 1, pa.py_buffer(ends), text)
    return pd.Series(keys, dtype="str")


def _absent(ours: pd.DataFrame) -> pd.DataFrame:
    """Return the tasks of its dataset that each cell lacks, as first attempts."""
    cells = ours.drop_duplicates("cell")[["cell", "agent", "model", "dataset", "budget"]]
    tasks = ours.drop_duplicates(["dataset", "task"])[
        ["dataset", "task", "tier", "category", "language", "source"]
    ]
    grid = cells.merge(tasks, on="dataset").assign(attempt=1)
    there = pd.MultiIndex.from_frame(ours[["cell", "task"]])
    return grid[~pd.MultiIndex.from_frame(grid[["cell", "task"]]).isin(there)]


def _filled(empty: pd.DataFrame, ours: pd.DataFrame) -> pd.DataFrame:
    """Return the table of planned trials with their known values, in its own types."""
    known = ours.drop(columns=["cell", "attempt", *(name for name in NAMES if name != "status")])
    known = known.set_axis(empty.index)
    for name in known:
        if name in empty and str(empty[name].dtype) == "Int64":
            # Units such as millions leave binary fractions.
            known[name] = pd.to_numeric(known[name]).round()
    passed = known["passed"]
    words = pd.Series("failed", known.index, dtype="str").mask(passed.fillna(value=False), "passed")
    words = words.mask(passed.isna(), None)
    ended = known["status"].where(known["status"] != "completed")
    outcome = words.where(ended.isna(), words + " (" + ended + ")").fillna(known["status"])
    reason = known["reason"].fillna("") if "reason" in known else ""
    values = {str(name): known[name] for name in known}
    return empty.assign(**values | {"outcome": outcome, "reason": reason, "ran": True}).astype(empty.dtypes)
