"""Tables as CSV files in which no text is a formula or a control sequence.

Names in tables are other people's. A text that a spreadsheet would read as a formula gets an apostrophe in front,
unless it is a number. A text that already has apostrophes before such a sign gets one more, so that `read_cell`
restores the original. The same goes for text after a semicolon, because spreadsheets split lines there where the comma
is the decimal sign. Control characters become escapes (`terminal.escaping.one_line`), which are not undone. Parquet and
JSON hold texts unchanged.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import compute

from runner.terminal.escaping import one_line

_SIGNS = "=+\\-@\N{FULLWIDTH EQUALS SIGN}\N{FULLWIDTH PLUS SIGN}\N{FULLWIDTH HYPHEN-MINUS}\N{FULLWIDTH COMMERCIAL AT}"
_FORMULA = re.compile(rf"(\A|;)(?='*\s*[{_SIGNS}|%])")
_WRITTEN = re.compile(rf"(\A|;)'(?='*\s*[{_SIGNS}|%])")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|nan)|[+-]", re.ASCII)

_PLAIN = r"[A-Za-z0-9][A-Za-z0-9 _./:-]*"
"""Texts that `cell` does not change: it need not look at each of a million keys."""
_ROWS_AT_ONCE = 100_000
"""Rows whose text is in memory at a time."""
_MISSING = "\x01"
"""Text that pandas writes for a missing value: a control character, which no harmless text contains."""

_EMPTY = '""'
"""Text of a row with one empty value, since an empty line would not be a row."""


def cell(value: Any) -> Any:
    """Return a value in the form for a file: a text is made harmless, anything else is unchanged."""
    if not isinstance(value, str):
        return value
    text = one_line(value)
    return text if _NUMBER.fullmatch(text) else _FORMULA.sub(r"\1'", text)


def read_cell(value: Any) -> Any:
    """Return the value from which `cell` made this text."""
    return _WRITTEN.sub(r"\1", value) if isinstance(value, str) else value


def to_csv(table: pd.DataFrame, *, index: bool) -> str:
    """Return the text of a CSV file."""
    if not index:
        return "".join(csv_pieces(table))
    harmless = pd.DataFrame({at: _harmless(table.iloc[:, at]).array for at in range(table.shape[1])})
    harmless.columns = pd.Index(_heads(table))
    harmless.index = pd.Index(
        [tuple(map(cell, key)) if isinstance(key, tuple) else cell(key) for key in table.index],
        name=None if table.index.nlevels > 1 else table.index.name,
    )
    if table.index.nlevels > 1:
        harmless.index = pd.MultiIndex.from_tuples(list(harmless.index), names=table.index.names)
    return str(harmless.to_csv())


def texts_to_csv(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return the text of a CSV file of texts, the same as `to_csv` of a table of them.

    It makes no table, which would cost a small file most of its time.
    """
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows([cell(text) for text in row] for row in (heads, *rows))
    return written.getvalue()


def csv_pieces(table: pd.DataFrame) -> Iterator[str]:
    """Yield the text of a CSV file without the index, piece by piece: the text of a million trials is large."""
    yield str(pd.DataFrame(columns=_heads(table)).to_csv(index=False, lineterminator="\n"))
    for start in range(0, len(table), _ROWS_AT_ONCE):
        rows = table.iloc[start : start + _ROWS_AT_ONCE]
        fields = [_fields(rows.iloc[:, at]) for at in range(table.shape[1])]
        if len(fields) == 1:
            fields = [pa.array([field or _EMPTY for field in fields[0].to_pylist()], pa.large_string())]
        if fields:
            yield _lines(fields)


def _lines(fields: Sequence[pa.Array]) -> str:
    """Return the text of rows: Arrow keeps the texts of an array one behind the other, each with its line's end."""
    comma, end, nothing = (pa.scalar(sign, pa.large_string()) for sign in (",", "\n", ""))
    last = compute.binary_join_element_wise(fields[-1], nothing, end)
    joined = compute.binary_join_element_wise(*fields[:-1], last, comma)
    _, ends, text = joined.buffers()
    return str(memoryview(text)[: np.frombuffer(ends, "int64")[len(joined)]], "utf-8")


def _heads(table: pd.DataFrame) -> list[Any]:
    return [cell(name) for name in table.columns]


def _fields(column: pd.Series) -> pa.Array:
    """Return the values of a column as they stand in a row of a CSV file; each different value is written once."""
    if column.isna().all():
        return pa.repeat(pa.scalar("", pa.large_string()), len(column))
    if (texts := _texts(column)) is not None:
        return compute.fill_null(texts, "")
    if column.dtype == "float64":
        return _numbers(column.to_numpy())
    if _is_text(column) and pd.api.types.infer_dtype(column, skipna=True) != "string":
        codes, values = np.arange(len(column)), column  # 1 equals True
    else:
        codes, words = pd.factorize(column)
        values = pd.Series(words)
    return _looked_up(codes, _written(values))


def _looked_up(codes: np.ndarray, texts: Sequence[str]) -> pa.Array:
    """Return the text of each code; it is empty for -1, the code of a missing value."""
    written = [*texts, ""]
    return pa.array(written, pa.large_string()).take(pa.array(np.where(codes < 0, len(written) - 1, codes)))


def _numbers(values: np.ndarray) -> pa.Array:
    """Return what pandas writes for these numbers: the shortest digits that stand for each, as Python's `repr` has it.

    Arrow writes the same for fractions from 0.0001 up to 10^9, of which a table may have a million. The others are
    looked up by their bits, since two zeros are equal and are written differently.
    """
    size = np.abs(values)
    with np.errstate(invalid="ignore"):  # a NaN that signals
        same = (size >= 1e-4) & (size < 1e9) & (values != np.floor(values))  # noqa: PLR2004 - see above
    codes, bits = pd.factorize(values[~same].view("int64"))
    others = _looked_up(codes, [_number(value) for value in bits.view("float64").tolist()])
    if len(others) == len(values):
        return others
    return compute.replace_with_mask(pa.array(values).cast(pa.large_string()), pa.array(~same), others)


def _number(value: float) -> str:
    return "" if value != value else repr(value)  # noqa: PLR0124 - NaN


def _texts(column: pd.Series) -> pa.Array | None:
    """Return what pandas writes for values that Arrow turns into the same text; None if pandas itself must do it."""
    if isinstance(column.dtype, pd.StringDtype):
        texts = pa.array(column.array, pa.large_string())
        if isinstance(texts, pa.ChunkedArray):
            texts = texts.combine_chunks()
        each = texts.dictionary_encode().dictionary  # many trials have the same
        plain = compute.match_substring_regex(each, rf"\A({_PLAIN})?\z")
        return texts if compute.all(plain).as_py() else None
    if pd.api.types.is_integer_dtype(column.dtype):
        return pa.array(column.array).cast(pa.large_string())
    if isinstance(column.dtype, pd.DatetimeTZDtype) and str(column.dtype.tz) == "UTC":
        try:
            seconds = pa.array(column.dt.tz_convert(None).to_numpy()).cast(pa.timestamp("s"))
        except pa.ArrowInvalid:  # a part of a second
            return None
        texts = seconds.cast(pa.large_string())
        return compute.binary_join_element_wise(
            texts, *(pa.scalar(part, pa.large_string()) for part in ("+00:00", ""))
        )
    return None


def _written(values: pd.Series) -> list[str]:
    """Return what pandas writes for each of these values; a missing one is empty."""
    harmless = _harmless(values)
    if isinstance(values.dtype, pd.StringDtype) and harmless is values and values.notna().all():
        return [*values]
    text = str(harmless.to_csv(header=False, index=False, na_rep=_MISSING, lineterminator="\n"))
    return ["" if line in (_MISSING, _EMPTY) else line for line in text.split("\n")[:-1]]


def _is_text(column: pd.Series) -> bool:
    return pd.api.types.is_object_dtype(column.dtype) or isinstance(column.dtype, pd.StringDtype)


def _harmless(column: pd.Series) -> pd.Series:
    if not _is_text(column):
        return column
    if isinstance(column.dtype, pd.StringDtype):
        plain = column.str.fullmatch(_PLAIN, na=True).astype(bool)
        return column if plain.all() else column.mask(~plain, column[~plain].map(cell))
    return column.map(cell)


def read_texts(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table from `pandas.read_csv(dtype=str)` with the original texts, as they were before `to_csv`."""
    columns = [_read_column(table.iloc[:, at]) for at in range(table.shape[1])]
    return pd.concat(columns, axis=1).rename(columns=read_cell)


def _read_column(column: pd.Series) -> pd.Series:
    """Return the original texts of a column; only those with an apostrophe can have changed."""
    changed = column.str.contains("'", regex=False, na=False)
    return column.mask(changed, column[changed].map(read_cell)) if changed.any() else column
