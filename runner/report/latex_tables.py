r"""Set a table of a report in LaTeX as papers do: rules of booktabs, the best in bold, a caption that explains it.

The file is for `\input` and needs the packages `booktabs` and `graphicx`. A table that is wider than the line is
narrowed to it. One that would become too small to read lies on its side, which needs `rotating`, and one that is longer
than a page continues on the next. Widths and heights are estimated for the class `article`; LaTeX then narrows by what
it measures.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from runner.report.blocks import Column, Table, Value
from runner.report.latex import escaped, figure

_LONG = 48
"""Longest text in a cell that LaTeX does not break, in characters, as on the page."""
_NARROWED = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
"""Opens a box that LaTeX narrows to the line, but never widens."""
_SPAN = re.compile(r"([\d.]+[kM%]?)-([\d.]+[kM%]?)")
_LINE, _PAGE = 345.0, 550.0
"""Width and height of the text of `article`, in points."""
_SIGN, _GAP, _ROW = 4.6, 12.0, 11.0
"""Mean width of a sign, space between two columns, and height of a row, in points of `\\small`."""
_PARAGRAPH, _FILLED = 148.0, 0.8
"""Width of a column whose texts LaTeX breaks (16em), in points, and the share of its lines that words fill."""
_COMMAND = re.compile(r"\\[a-zA-Z]+(?:\{\})?|\\.|[{}$]")
_BENEATH = 0.8
"""Scale of the text beneath an entry."""
_SPACE = 60.0
"""Height of a page that rules and the space around a caption take, in points."""
_RAGGED = r"\rightskip0pt plus1fil\relax "
"""Keeps LaTeX from spreading the words of a narrow column."""
_PIECE = re.compile(r"\s+|[^\s_·/:]{1,24}[_·/:]?|[_·/:]")
"""Pieces of a text between which LaTeX may begin a new line: words, and parts of very long ones."""
_SMALLEST = 0.6
"""Scale beneath which a table lies on its side: letters of `\\small` are then less than 5.4 points high."""


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


@dataclass(frozen=True)
class _Columns:
    """The columns of a table that can be set, each with its place in the table."""

    table: Table
    shown: Sequence[int]

    @cached_property
    def widest(self) -> Mapping[int, int]:
        """Length of the longest entry of each column that is shown, in characters."""
        return {at: self._widest(at) for at in self.shown}

    @cached_property
    def broken(self) -> frozenset[int]:
        """Columns whose texts LaTeX breaks into lines."""
        return frozenset(at for at in self.shown if any(len(row[at].text) > _LONG for row in self.table.rows))

    def is_text(self, at: int) -> bool:
        """Return whether a column holds words."""
        return self.table.columns[at].text or at == 0

    def head(self, at: int) -> list[str]:
        """Return the lines of a column's head, broken between words where it is longer than the entries."""
        lines: list[str] = []
        for word in self.table.columns[at].title.split(" "):
            if lines and len(lines[-1]) + 1 + len(word) <= self.widest[at]:
                lines[-1] += f" {word}"
            else:
                lines.append(word)
        return lines

    def width(self) -> float:
        """Return the estimated width of the table, in points."""
        return sum(self._width(at) + _GAP for at in self.shown)

    def lines(self, row: Sequence[Value]) -> int:
        """Return the number of lines that a row takes."""
        line = _PARAGRAPH * _FILLED / _SIGN
        broken = (_signs(row[at].text) / line for at in self.broken)
        return math.ceil(max(broken, default=1.0)) + any(row[at].beneath for at in self.shown)

    def _widest(self, at: int) -> int:
        entries = {(row[at].text, row[at].beneath) for row in self.table.rows}
        return max(
            (max(_signs(text), int(_signs(beneath) * _BENEATH)) for text, beneath in entries), default=0
        )

    def _width(self, at: int) -> float:
        if at in self.broken:
            return _PARAGRAPH
        return max(self.widest[at], *map(len, self.head(at))) * _SIGN


@lru_cache(4096)
def _signs(text: str) -> int:
    """Return the number of signs that LaTeX prints for a text."""
    return len(_COMMAND.sub(lambda found: "x" if found[0].startswith("\\") else "", escaped(text)))


def latex(filed: FiledTable) -> str:
    """Return a table in LaTeX, in as many parts as it needs pages."""
    table = filed.table
    columns = _Columns(table, [at for at in range(len(table.columns)) if _has_text(table, at)])
    sideways = columns.width() * _SMALLEST > _LINE
    packages = "booktabs,graphicx,rotating" if sideways else "booktabs,graphicx"
    lines = [f"% Needs \\usepackage{{{packages}}}. Each report of the sweep writes this file again."]
    caption = _caption(filed, columns.shown)
    title = [caption, f"\\label{{tab:{filed.name}}}"]
    for rows in _parts(columns, len(caption), sideways=sideways):
        lines += _float(columns, rows, title, "sidewaystable" if sideways else "table")
        title = [r"\tablename~\thetable{} (continued)\par\medskip"]
    return "".join(f"{line}\n" for line in lines)


def _float(
    columns: _Columns, rows: Sequence[Sequence[Value]], title: Sequence[str], environment: str
) -> list[str]:
    """Return the lines of one table of LaTeX with these rows."""
    return [
        f"\\begin{{{environment}}}[htbp]",
        r"\centering\small",
        *title,
        _NARROWED,
        f"\\begin{{tabular}}{{{''.join(_alignment(columns, at) for at in columns.shown)}}}",
        r"\toprule",
        _row([_head(columns, at) for at in columns.shown]),
        r"\midrule",
        *_body(columns, rows),
        r"\bottomrule",
        r"\end{tabular}}",
        f"\\end{{{environment}}}",
    ]


def _parts(columns: _Columns, caption: int, *, sideways: bool) -> Iterator[Sequence[Sequence[Value]]]:
    """Yield the rows page by page; `caption` is the number of signs above the first."""
    line, page = (_PAGE, _LINE) if sideways else (_LINE, _PAGE)
    height = _ROW * min(1.0, line / max(columns.width(), 1.0))
    heads = 2 + max((len(columns.head(at)) for at in columns.shown), default=0)
    free = page - _SPACE - heads * height
    room = free - _ROW * math.ceil(caption * _SIGN / line)
    part: list[Sequence[Value]] = []
    for row in columns.table.rows:
        used = columns.lines(row) * height
        if part and used > room:
            yield part
            part, room = [], free
        part.append(row)
        room -= used
    yield part


def _has_text(table: Table, at: int) -> bool:
    """Return whether a column can be set: intervals that the page draws cannot."""
    return not table.rows or any(row[at].text for row in table.rows)


def _alignment(columns: _Columns, at: int) -> str:
    if at in columns.broken:
        return "p{16em}"
    return "l" if columns.is_text(at) else "r"


def _head(columns: _Columns, at: int) -> str:
    """Return the head of a column, in several lines where that keeps the column narrow."""
    lines = [escaped(line) for line in columns.head(at)]
    if len(lines) == 1:
        return lines[0]
    side, stack = "l" if columns.is_text(at) else "r", r"\\".join(lines)
    return rf"\shortstack[{side}]{{{stack}}}"


def _caption(filed: FiledTable, shown: Sequence[int]) -> str:
    """Return the caption: content and origin of the table, the meaning of its columns, and its marks."""
    columns: list[Column] = [filed.table.columns[at] for at in shown]
    meanings = [rf"\emph{{{escaped(each.title)}}}: {escaped(each.about)}" for each in columns if each.about]
    sentences = [
        f"{escaped(filed.table.caption)} ({escaped(filed.about)}).",
        *([f"{'; '.join(meanings)}."] if meanings else []),
        *map(escaped, filed.notes),
    ]
    return f"\\caption[{{{escaped(filed.table.caption)}}}]{{{' '.join(sentences)}}}"


def _body(columns: _Columns, rows: Sequence[Sequence[Value]]) -> Iterator[str]:
    """Yield the rows, intervals in small type beneath them; a group of rows names its subject once."""
    group: str | None = None
    for row in rows:
        words = [_word(columns, row, at) for at in columns.shown]
        if columns.table.grouped and row[0].text == group:
            words[0] = ""
        elif columns.table.grouped and group is not None:
            yield r"\midrule"
        group = row[0].text
        yield _row(words)
        if any(row[at].beneath for at in columns.shown):
            yield _row([_beneath(row[at].beneath, text=columns.is_text(at)) for at in columns.shown])


def _row(words: Sequence[str]) -> str:
    return rf"{' & '.join(words)} \\"


def _word(columns: _Columns, row: Sequence[Value], at: int) -> str:
    """Return an entry, the best of a column in bold; the dash of a missing figure becomes longer."""
    value = row[at]
    if value.text == "-":
        return r"\textendash{}"
    if at in columns.broken:
        word = _RAGGED + r"\allowbreak{}".join(map(escaped, _PIECE.findall(value.text)))
    else:
        word = escaped(value.text) if columns.is_text(at) else figure(value.text)
    return rf"\textbf{{{word}}}" if value.tone == "best" else word


def _beneath(words: str, *, text: bool) -> str:
    """Return the text beneath an entry. The hyphen of an interval becomes a dash."""
    span = None if text else _SPAN.fullmatch(words)
    small = rf"{escaped(span[1])}\textendash{{}}{escaped(span[2])}" if span else escaped(words)
    return rf"{{\scriptsize {small}}}" if words else ""
