"""Tables as CSV files in which no text is a formula or a control sequence.

Names in tables are other people's. A text that a spreadsheet would read as a formula gets an apostrophe in front,
unless it is a number. A text that already has apostrophes before such a sign gets one more, so that `read_cell`
restores the original. The same goes for text after a semicolon, because spreadsheets split lines there where the comma
is the decimal sign. Control characters become escapes (`terminal.escaping.one_line`), which are not undone. Parquet and
JSON hold texts unchanged.
"""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

from runner.terminal.escaping import one_line

_SIGNS = "=+\\-@\N{FULLWIDTH EQUALS SIGN}\N{FULLWIDTH PLUS SIGN}\N{FULLWIDTH HYPHEN-MINUS}\N{FULLWIDTH COMMERCIAL AT}"
_FORMULA = re.compile(rf"(\A|;)(?='*\s*[{_SIGNS}|%])")
_WRITTEN = re.compile(rf"(\A|;)'(?='*\s*[{_SIGNS}|%])")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|nan)|[+-]", re.ASCII)


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
    harmless = table.copy()
    for at, dtype in enumerate(table.dtypes):
        if pd.api.types.is_object_dtype(dtype) or isinstance(dtype, pd.StringDtype):
            harmless.isetitem(at, table.iloc[:, at].astype(object).map(cell).to_numpy())
    harmless.columns = pd.Index([cell(name) for name in table.columns])
    if index:
        harmless.index = pd.Index(
            [tuple(map(cell, key)) if isinstance(key, tuple) else cell(key) for key in table.index],
            name=None if table.index.nlevels > 1 else table.index.name,
        )
        if table.index.nlevels > 1:
            harmless.index = pd.MultiIndex.from_tuples(list(harmless.index), names=table.index.names)
    return str(harmless.to_csv(index=index))


def read_texts(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table from `pandas.read_csv(dtype=str)` with the original texts, as they were before `to_csv`."""
    return table.map(read_cell).rename(columns=read_cell)
