"""What a report is made of: sections of tables, pictures and text, as plain values.

A section is a function of `Findings` that returns a `Section`, or None where it has nothing to say. It knows neither
HTML nor files: all text in these values is shown as it is, whatever it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from runner.report.findings import Findings


class Value(NamedTuple):
    """One entry of a table."""

    text: str
    order: float | str | None = None
    """What it sorts by; None is missing and comes last, whichever way."""
    beneath: str = ""
    """Smaller, on a second line."""
    strip: tuple[float, float, float] | None = None
    """Low end, value and high end within [0, 1], drawn as a mark on its interval."""
    tone: Literal["", "best", "muted"] = ""


class Column(NamedTuple):
    """A column's head."""

    title: str
    about: str = ""
    """What it means and its denominator; shown under the table."""
    text: bool = False
    """Words, so aligned to the left."""


class Table(NamedTuple):
    """Rows under heads; the first entry of a row says what the row is about."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Value]]
    template: str = "table.html"


class Picture(NamedTuple):
    """A drawing, made only when it is shown."""

    name: str
    """Of its files, without ending: `[a-z_]+`."""
    caption: str
    alt: str
    """What it shows, for who cannot see it."""
    draw: Callable[[], Figure]
    template: str = "picture.html"


class Text(NamedTuple):
    """A paragraph."""

    text: str
    template: str = "text.html"


Block = Table | Picture | Text


class Section(NamedTuple):
    """One heading with what stands beneath it."""

    name: str
    """Of its anchor: `[a-z-]+`."""
    title: str
    blocks: Sequence[Block]


SectionOf = Callable[["Findings"], Section | None]
"""What makes a section; `runner.report.page` lists them in their order."""


def where(told: Callable[[pd.DataFrame], object]) -> Callable[[SectionOf], SectionOf]:
    """For a section that is made only of trials that tell something of it."""

    def of(make: SectionOf) -> SectionOf:
        @wraps(make)
        def section(found: Findings) -> Section | None:
            return make(found) if told(found.trials) else None

        return section

    return of
