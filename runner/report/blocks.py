"""The parts of a report as plain values: sections of tables, pictures and text.

A section is a function of `Findings` that returns a `Section`, or None where it has nothing to say. It knows neither
HTML nor files: the page escapes all text in these values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from runner.report.findings import Findings


class Value(NamedTuple):
    """One entry of a table."""

    text: str
    order: float | str | None = None
    """Sort key; None is a missing value and comes last in either direction."""
    beneath: str = ""
    """Smaller text on a second line."""
    strip: tuple[float, float, float] | None = None
    """Low end, value and high end within [0, 1], drawn as a mark on its interval."""
    tone: Literal["", "best", "muted"] = ""


class Column(NamedTuple):
    """The head of a column."""

    title: str
    about: str = ""
    """Meaning and denominator; shown under the table."""
    text: bool = False
    """Whether the column holds words, which are aligned to the left."""


class Table(NamedTuple):
    """Rows under heads; the first entry of a row names its subject."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Value]]
    template: str = "table.html"
    grouped: bool = False
    """Whether rows with the same first entry stand together; in LaTeX they are set as a group."""


class Picture(NamedTuple):
    """A drawing, made only when it is needed."""

    name: str
    """Name of its files, without ending: `[a-z_]+`."""
    caption: str
    alt: str
    """Description for readers who cannot see it."""
    draw: Callable[[], Figure]
    template: str = "picture.html"


class Text(NamedTuple):
    """A paragraph."""

    text: str
    template: str = "text.html"


Block = Table | Picture | Text


class Section(NamedTuple):
    """A heading and the blocks beneath it."""

    name: str
    """Name of its anchor: `[a-z-]+`."""
    title: str
    blocks: Sequence[Block]


SectionMaker = Callable[["Findings"], Section | None]
"""Function that makes a section; `runner.report.page` lists the general ones in their order."""


class Sections(NamedTuple):
    """The sections that a benchmark adds to the report."""

    dataset: Sequence[SectionMaker] = ()
    """Made of each dataset by itself; they follow the scores."""
    sweep: Sequence[SectionMaker] = ()
    """Made of the whole sweep; they come first there."""


@runtime_checkable
class HasSections(Protocol):
    """A class of datasets whose results need sections of their own."""

    @classmethod
    def report_sections(cls) -> Sections:
        """Return its sections. They are made of other datasets of the sweep too, where they must return None."""


def where(applies: Callable[[pd.DataFrame], object]) -> Callable[[SectionMaker], SectionMaker]:
    """Return a decorator for sections that are left out unless `applies` is true of the trials."""

    def decorate(make: SectionMaker) -> SectionMaker:
        @wraps(make)
        def section(found: Findings) -> Section | None:
            return make(found) if applies(found.trials) else None

        return section

    return decorate
