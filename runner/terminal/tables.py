"""Lay out tables and paragraphs so that they fit the width of the terminal.

A table takes the first form that fits: all columns with whole names; names wrapped at their joints (`_`, `-`, `/`);
some columns left out, by `Column.leaves`; a block of lines for each row, with all columns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from io import StringIO
from typing import NamedTuple

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from runner.terminal.escaping import WIDTH, one_line, printable

PROSE = WIDTH
"""Widest line of a paragraph, since longer lines are hard to read on any terminal."""
_NAME = 12
"""Narrowest wrapped name, in characters. Columns are left out before names become narrower."""
_GAPS = (2, 1)
"""Blanks between two columns, with and without room to spare."""
_PIECE = re.compile(r"[^\s_\-./·:]*[\s_\-./·:]+|[^\s_\-./·:]+")
"""Pattern of a part of a name, up to and including the next joint."""

Row = Sequence[str]


class Column(NamedTuple):
    """A column of a table."""

    head: str
    """Heading; may have several lines."""
    is_name: bool = False
    """True if the column holds names, which are left-aligned and may wrap. Figures are right-aligned and never wrap."""
    leaves: int = 0
    """Order in which columns are left out if the table is too wide: 1 goes first, 0 is never left out."""


class TableText(NamedTuple):
    """A table laid out as text."""

    text: str
    left_out: tuple[str, ...]
    """Headings of the columns that were left out."""


def table(columns: Sequence[Column], rows: Sequence[Row], width: int, title: str = "") -> TableText:
    """Lay out a table. Cells may have several lines; control characters are shown as escapes."""
    rows = [[printable(cell).replace("\t", " ") for cell in row] for row in rows]
    wanted = [_longest_line([column.head, *cells]) for column, *cells in zip(columns, *rows, strict=True)]
    leaving = sorted(
        (at for at, column in enumerate(columns) if column.leaves), key=lambda at: columns[at].leaves
    )
    heading = paragraph(title, width)
    for count in range(len(leaving) + 1):
        left_out = leaving[:count]
        chosen = [at for at in range(len(columns)) if at not in left_out]
        if fit := _widths([columns[at] for at in chosen], [wanted[at] for at in chosen], width):
            fitting = [[row[at] for at in chosen] for row in rows]
            text = _draw([columns[at] for at in chosen], fitting, *fit)
            heads = tuple(_head(columns[at]) for at in sorted(left_out))
            return TableText("\n".join([*heading, text]), heads)
    blocks = [line for row in rows for line in _block(columns, row, width)]
    return TableText("\n".join([*heading, *blocks]), ())


def paragraph(text: str, width: int) -> list[str]:
    """Return the lines of a text, broken at blanks. Lines after the first of an indented text get two more blanks."""
    if not text:
        return []
    room, body = min(width, PROSE), one_line(text.lstrip())
    indent = len(text) - len(text.lstrip())
    hang = indent + 2 if indent else 0
    console = Console(file=StringIO(), width=room, color_system=None)
    first, *_ = Text(body).wrap(console, room - indent, overflow="fold")
    if len(first.plain) >= len(body.rstrip()):
        return [" " * indent + body.rstrip()]
    rest = body[len(first.plain) :].lstrip()
    others = Text(rest).wrap(console, room - hang, overflow="fold")
    return [" " * indent + first.plain.rstrip(), *(" " * hang + line.plain.rstrip() for line in others)]


def _longest_line(cells: Sequence[str]) -> int:
    return max(cell_len(line) for cell in cells for line in cell.split("\n"))


def _widths(columns: Sequence[Column], wanted: Sequence[int], width: int) -> tuple[list[int], int] | None:
    """Return the width of each column and of the gaps; None if names would become too narrow."""
    for gap in _GAPS:
        room = width - gap * (len(columns) - 1)
        if sum(wanted) <= room:
            return list(wanted), gap
    least = [
        min(size, _NAME) if column.is_name else size for column, size in zip(columns, wanted, strict=True)
    ]
    if sum(least) > room:
        return None
    widths, spare = least, room - sum(least)
    while spare:
        narrowest = min(size for size, full in zip(widths, wanted, strict=True) if size < full)
        for at, size in enumerate(widths):
            if spare and narrowest == size < wanted[at]:
                widths[at], spare = size + 1, spare - 1
    return widths, gap


def _draw(columns: Sequence[Column], rows: Sequence[Row], widths: Sequence[int], gap: int) -> str:
    drawn = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, gap - 1, 0, 0))
    for column, size in zip(columns, widths, strict=True):
        side = "left" if column.is_name else "right"
        drawn.add_column(Text(_wrap(column.head, size)), justify=side, width=size, overflow="fold")  # type: ignore[arg-type]
    for row in rows:  # as Text: a name may look like rich's markup
        drawn.add_row(*(Text(_wrap(cell, size)) for cell, size in zip(row, widths, strict=True)))
    page = StringIO()
    total = sum(widths) + gap * (len(widths) - 1)
    Console(file=page, width=total, color_system=None, force_terminal=False).print(drawn)
    return "\n".join(line.rstrip() for line in page.getvalue().rstrip("\n").split("\n"))


def _wrap(name: str, width: int) -> str:
    """Break a name at its joints so that its lines fit. A piece that is too long is left for rich to fold."""
    lines: list[str] = []
    for part in name.split("\n"):
        lines.append("")
        for piece in _PIECE.findall(part):
            if lines[-1] and cell_len(lines[-1] + piece.rstrip()) > width:
                lines.append("")
            lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def _block(columns: Sequence[Column], row: Row, width: int) -> list[str]:
    """Return a row as a block of lines: the names at its beginning, then each other cell after its heading."""
    first = named = next((at for at, column in enumerate(columns) if column.is_name), 0)
    while named < len(columns) and columns[named].is_name:
        named += 1
    cells = [(column, _on_one_line(cell, column)) for column, cell in zip(columns, row, strict=True)]
    names = " · ".join(cell for _, cell in cells[first:named])
    rest = [f"{_head(column)}: {cell}" for column, cell in cells[named:] if cell]
    return [
        *paragraph(" ".join([*row[:first], names]).strip(), width),
        *paragraph(f"  {'; '.join(rest)}", width),
    ]


def _head(column: Column) -> str:
    """Return a heading on one line."""
    return column.head.replace("\n/", "/").replace("\n", " ")


def _on_one_line(cell: str, column: Column) -> str:
    """Join a cell's lines: names one after the other; a figure, with the text that qualifies it in brackets."""
    first, *others = [line for line in cell.split("\n") if line] or [""]
    if not column.is_name:
        return f"{first} ({' '.join(others)})" if others else first
    return "".join([first, *(f" {line}" if line.startswith("(") else f" · {line}" for line in others)])
