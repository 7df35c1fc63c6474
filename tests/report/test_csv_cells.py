"""CSV files of large tables: written value by value, and the same as pandas writes row by row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from runner.report import csv_cells
from runner.report.csv_cells import csv_pieces, texts_to_csv, to_csv
from runner.report.trial_sources import read_table


@pytest.fixture
def table() -> pd.DataFrame:
    """Columns of every type that a trials table has, and of some that other tables have."""
    rng, rows = np.random.default_rng(0), 400
    amounts = rng.standard_normal(rows) * 10.0 ** rng.integers(-9, 20, rows)
    return pd.DataFrame(
        {
            "float": np.where(rng.random(rows) < 0.3, np.nan, amounts),
            "zero": [0.0, -0.0] * (rows // 2),
            "infinite": [np.inf, -np.inf] * (rows // 2),
            "float32": np.arange(rows, dtype="float32") / 3,
            "Int64": pd.array([1, None, 2, 1] * (rows // 4), dtype="Int64"),
            "boolean": pd.array([True, False, None, True] * (rows // 4), dtype="boolean"),
            "moment": pd.to_datetime(rng.integers(0, 10**18, rows), utc=True),
            "midnight": pd.Timestamp("2026-01-01", tz="UTC"),
            "second": pd.to_datetime(rng.integers(-(10**9), 10**9, rows), unit="s", utc=True),
            "no_moment": pd.to_datetime(pd.Series(["1969-12-31T23:59:59Z", None] * (rows // 2)), utc=True),
            "elsewhere": pd.Timestamp("2026-01-01", tz="Europe/Paris"),
            "int": rng.integers(-9, 9, rows),
            "plain": pd.Series(["a-1", "", None, "b c/d:e"] * (rows // 4), dtype="str"),
            "text": pd.Series(
                ["a,b", 'q"x', "", None, "x", "plain", " lead", "né"] * (rows // 8), dtype="str"
            ),
            "mixed": pd.Series([1, True, 1.0, -0.0, None, "x;y", "", "1"] * (rows // 8), dtype=object),
            "none": None,
            "category": pd.Categorical(["u", "v"] * (rows // 2)),
        }
    )


def test_a_table_without_formulas_is_written_as_pandas_writes_it(table: pd.DataFrame) -> None:
    assert to_csv(table, index=False) == table.to_csv(index=False)
    assert to_csv(table, index=True) == table.to_csv()
    for name in table:
        assert to_csv(table[[name]], index=False) == table[[name]].to_csv(index=False), name
    for empty in (table.head(0), pd.DataFrame()):
        assert to_csv(empty, index=False) == empty.to_csv(index=False)


def test_pieces_are_the_whole(table: pd.DataFrame) -> None:
    twice = pd.concat([table] * (csv_cells._ROWS_AT_ONCE // len(table) + 1), ignore_index=True)
    pieces = list(csv_pieces(twice[["text", "plain", "Int64"]]))
    assert len(pieces) == 3  # the head, and more rows than one piece has
    assert "".join(pieces) == twice[["text", "plain", "Int64"]].to_csv(index=False)


def test_what_was_written_is_read_again(table: pd.DataFrame, tmp_path: Path) -> None:
    texts = table[["text"]].assign(formula=["=1+1", "'-x", "-5", "a;@b"] * (len(table) // 4))
    path = tmp_path / "t.csv"
    path.write_text(to_csv(texts, index=False))
    read = read_table(path)
    assert read["formula"].tolist() == texts["formula"].tolist()
    assert read["text"].tolist() == texts["text"].fillna("").tolist()


@pytest.mark.parametrize("columns", [1, 3])
def test_texts_are_written_as_a_table_of_them_is(columns: int) -> None:
    texts = ["=1+1", "a,b", 'q"x', "", "'=x", "x;-y", "-1.5", "line\nend\r", " lead", "né", "\x1b[2J", "None"]
    rows = [texts[at : at + columns] for at in range(len(texts) - columns + 1)]
    heads = ["=head", "", "b,c"][:columns]
    table = pd.DataFrame(rows, columns=pd.Index(heads, dtype=object), dtype=object)
    assert texts_to_csv(heads, rows) == to_csv(table, index=False)
    assert texts_to_csv(heads, []) == to_csv(table[:0], index=False)
