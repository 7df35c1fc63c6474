r"""Tables of a report as files: CSV for programs, LaTeX for papers.

Each table of the page becomes two files, in whichever section it stands. A CSV file has more than the page shows: the
number behind each figure, and the ends of each interval that the page draws. Its columns are explained in `MEANINGS`.
A LaTeX file is a table for `\input` (`runner/report/latex_tables.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from runner.report.blocks import Column, Table, Value
from runner.report.csv_cells import texts_to_csv
from runner.report.latex_tables import FiledTable, latex

FOLDER = "tables"
"""Folder of these files in that of the report."""
MEANINGS = "about_columns.csv"
"""File with the caption of each table and the meaning of its columns. No section can have this name."""


def files(tables: Sequence[FiledTable]) -> dict[str, bytes]:
    """Return the content of each file by its path in the report's folder."""
    contents = {MEANINGS: _meanings(tables)}
    for each in tables:
        contents[f"{each.name}.csv"] = _csv(each.table)
        contents[f"{each.name}.tex"] = latex(each)
    return {f"{FOLDER}/{name}": content.encode() for name, content in contents.items()}


def _meanings(tables: Sequence[FiledTable]) -> str:
    """Return a CSV file with a row for each column of each table."""
    rows = [
        (f"{each.name}.csv", each.about, each.table.caption, title, column.about)
        for each in tables
        for title, column in zip(_titles(each.table.columns), each.table.columns, strict=True)
    ]
    heads = ("file", "section", "caption", "column", "meaning")
    return texts_to_csv(heads, rows)


def _csv(table: Table) -> str:
    """Return a CSV file with the texts and the numbers of a table; a missing number is empty."""
    titles, entries = [], []
    for at, (title, column) in enumerate(zip(_titles(table.columns), table.columns, strict=True)):
        for name, values in _parts(column, [row[at] for row in table.rows]):
            titles.append(f"{title} ({name})" if name else title)
            entries.append(values)
    return texts_to_csv(_different(titles), zip(*entries, strict=True))


def _titles(columns: Sequence[Column]) -> list[str]:
    """Return the titles of the columns in a CSV file, of which no two are the same.

    Of several columns with one title, such as "min", each is named after the column to which it belongs: the last one
    before it whose title is its own.
    """
    titles = [column.title or "column" for column in columns]
    owner, names = "", []
    for title in titles:
        if titles.count(title) == 1:
            owner = title
        names.append(f"{owner}: {title}" if owner and owner != title else title)
    return _different(names)


def _different(titles: Iterable[str]) -> list[str]:
    """Return the titles, each repeated one with a number behind it."""
    seen: dict[str, None] = {}
    for title in titles:
        name, times = title, 1
        while name in seen:
            times += 1
            name = f"{title} {times}"
        seen[name] = None
    return list(seen)


def _parts(column: Column, values: Sequence[Value]) -> Iterator[tuple[str, list[str]]]:
    """Yield the columns that a column of the page becomes in a CSV file, each with its name."""
    strips = [value.strip or (None, None, None) for value in values]
    if any(value.strip for value in values):
        for name, numbers in zip(("low", "value", "high"), zip(*strips, strict=True), strict=True):
            yield name, [_exact(number) for number in numbers]
        return
    yield "", [value.text for value in values]
    if not column.text:
        yield "number", [_exact(value.order) for value in values]
    if any(value.beneath for value in values):
        yield "beneath", [value.beneath for value in values]


def _exact(number: float | str | None) -> str:
    """Return a number to 15 digits; what is not a number is empty."""
    return "" if number is None or isinstance(number, str) else f"{float(number):.15g}"
