r"""Tables of a report as files: CSV for programs, LaTeX for papers.

Each table of the page becomes two files, in whichever section it stands. A CSV file has more than the page shows: the
number behind each figure, and the ends of each interval that the page draws. Its columns are explained in `MEANINGS`.
A LaTeX file is one `table` for `\input`, which needs the packages `booktabs` and `graphicx`. It is narrowed to the
width of the line where it is wider. Its caption says what each column means, and over what it is counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import pandas as pd

from runner.report.blocks import Column, Table, Value
from runner.report.csv_cells import to_csv
from runner.report.latex import escaped, figure

FOLDER = "tables"
"""Folder of these files in that of the report."""
MEANINGS = "about_columns.csv"
"""File with the caption of each table and the meaning of its columns. No section can have this name."""
_LONG = 48
"""Longest text in a cell that LaTeX does not break, in characters, as on the page."""
_NARROWED = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
"""Opens a box that LaTeX narrows to the line, but never widens."""
_SPAN = re.compile(r"([\d.]+[kM%]?)-([\d.]+[kM%]?)")


class FiledTable(NamedTuple):
    """A table of the page with the name of its files."""

    name: str
    """Name of its files, without ending."""
    table: Table
    about: str
    """Origin of the table: its section and dataset, with the number of tasks."""
    notes: Sequence[str] = ()
    """Sentences on marks in the table, for readers who do not see the page."""
    template: str = "table.html"


def files(tables: Sequence[FiledTable]) -> dict[str, bytes]:
    """Return the content of each file by its path in the report's folder."""
    contents = {MEANINGS: _meanings(tables)}
    for each in tables:
        contents[f"{each.name}.csv"] = to_csv(_frame(each.table), index=False)
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
    return to_csv(pd.DataFrame(rows, columns=heads, dtype=object), index=False)


def _frame(table: Table) -> pd.DataFrame:
    """Return a table as texts and numbers; a missing number is empty."""
    titles, entries = [], []
    for at, (title, column) in enumerate(zip(_titles(table.columns), table.columns, strict=True)):
        for name, values in _parts(column, [row[at] for row in table.rows]):
            titles.append(f"{title} ({name})" if name else title)
            entries.append(values)
    rows = list(zip(*entries, strict=True))
    return pd.DataFrame(rows, columns=pd.Index(_different(titles), dtype=object), dtype=object)


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


def latex(filed: FiledTable) -> str:
    """Return a table in LaTeX, laid out as papers do: rules of booktabs, the best in bold."""
    table = filed.table
    shown = [at for at in range(len(table.columns)) if _has_text(table, at)]
    heads = [escaped(table.columns[at].title) for at in shown]
    lines = [
        r"% Needs \usepackage{booktabs,graphicx}. Each report of the sweep writes this file again.",
        r"\begin{table}[htbp]",
        r"\centering\small",
        _caption(filed, shown),
        f"\\label{{tab:{filed.name}}}",
        _NARROWED,
        f"\\begin{{tabular}}{{{''.join(_alignment(table, at) for at in shown)}}}",
        r"\toprule",
        _row(heads),
        r"\midrule",
        *_body(table, shown),
        r"\bottomrule",
        r"\end{tabular}}",
        r"\end{table}",
    ]
    return "".join(f"{line}\n" for line in lines)


def _has_text(table: Table, at: int) -> bool:
    """Return whether a column can be set: intervals that the page draws cannot."""
    return not table.rows or any(row[at].text for row in table.rows)


def _alignment(table: Table, at: int) -> str:
    if max((len(row[at].text) for row in table.rows), default=0) > _LONG:
        return "p{16em}"
    return "l" if table.columns[at].text or at == 0 else "r"


def _caption(filed: FiledTable, shown: Sequence[int]) -> str:
    """Return the caption: content and origin of the table, the meaning of its columns, and its marks."""
    columns = [filed.table.columns[at] for at in shown]
    meanings = [rf"\emph{{{escaped(each.title)}}}: {escaped(each.about)}" for each in columns if each.about]
    sentences = [
        f"{escaped(filed.table.caption)} ({escaped(filed.about)}).",
        *([f"{'; '.join(meanings)}."] if meanings else []),
        *map(escaped, filed.notes),
    ]
    return f"\\caption[{{{escaped(filed.table.caption)}}}]{{{' '.join(sentences)}}}"


def _body(table: Table, shown: Sequence[int]) -> Iterator[str]:
    """Yield the rows, intervals in small type beneath them; a group of rows names its subject once."""
    group: str | None = None
    for row in table.rows:
        texts = {at: table.columns[at].text or at == 0 for at in shown}
        words = [_word(row[at], text=texts[at]) for at in shown]
        if table.grouped and row[0].text == group:
            words[0] = ""
        elif table.grouped and group is not None:
            yield r"\midrule"
        group = row[0].text
        yield _row(words)
        if any(row[at].beneath for at in shown):
            yield _row([_beneath(row[at].beneath, text=texts[at]) for at in shown])


def _row(words: Sequence[str]) -> str:
    return rf"{' & '.join(words)} \\"


def _word(value: Value, *, text: bool) -> str:
    """Return an entry, the best of a column in bold; the dash of a missing figure becomes longer."""
    word = r"\textendash{}" if value.text == "-" else escaped(value.text) if text else figure(value.text)
    return rf"\textbf{{{word}}}" if value.tone == "best" else word


def _beneath(words: str, *, text: bool) -> str:
    """Return the text beneath an entry. The hyphen of an interval becomes a dash."""
    span = None if text else _SPAN.fullmatch(words)
    small = rf"{escaped(span[1])}\textendash{{}}{escaped(span[2])}" if span else escaped(words)
    return rf"{{\scriptsize {small}}}" if words else ""
