"""Tables as CSV: what a stranger named is never a formula where people open them, nor a control sequence.

A text that a spreadsheet would take for a formula gets an apostrophe in front, unless it is a number; one that has
apostrophes before such a sign gets one more, so that `read_cell` gives back what was. What follows a semicolon is
treated alike: where a comma is the decimal sign, spreadsheets split lines there. Control characters become escapes
(`runner.terminal.escaping.one_line`) and stay so. Parquet and JSON hold texts as they are.
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
    """A value as it is written: texts harmless, anything else unchanged."""
    if not isinstance(value, str):
        return value
    text = one_line(value)
    return text if _NUMBER.fullmatch(text) else _FORMULA.sub(r"\1'", text)


def read_cell(value: Any) -> Any:
    """What was written as this by `cell`."""
    return _WRITTEN.sub(r"\1", value) if isinstance(value, str) else value


def to_csv(table: pd.DataFrame, *, index: bool) -> str:
    """The text of a CSV file."""
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
    """A table of texts, as `pandas.read_csv(dtype=str)` gives it, with the texts that `to_csv` was given."""
    return table.map(read_cell).rename(columns=read_cell)
