"""The parts of a report as plain values: sections of tables, pictures and text.

A section is a function of `Findings` that returns a `Section`, or None where it has nothing to say. It knows neither
HTML nor files: the page escapes all text in these values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from matplotlib.figure import Figure

    from runner.records import TrialRecord
    from runner.report.findings import Findings
    from runner.report.trial_states import State
    from runner.report.workspace_changes import Changes


class Value(NamedTuple):
    """One entry of a table."""

    text: str
    order: float | str | None = None
    """Sort key. None is a missing value, which comes last in either direction."""
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
    """True if the column holds words, which are aligned to the left."""


class Table(NamedTuple):
    """Rows under heads; the first entry of a row names its subject."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Value]]
    template: str = "table.html"
    grouped: bool = False
    """True if rows with the same first entry stand together; in LaTeX they are set as a group."""


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


class SignedTrial(NamedTuple):
    """One trial in a box of a matrix."""

    state: State
    link: str
    """Path of its page, relative to the report; empty if it has no page."""
    about: str


class Box(NamedTuple):
    """The trials of one task in one cell. A box without trials is empty."""

    trials: Sequence[SignedTrial]
    passes: str
    usd: str
    order: float | None
    """Share of passes; None if no trial was judged."""


class MatrixColumn(NamedTuple):
    """The head of a cell's column."""

    title: str
    beneath: str
    passes: str
    usd: str


class MatrixRow(NamedTuple):
    """One task in each cell."""

    task: str
    tier: str
    solved: str
    order: float
    boxes: Sequence[Box]


class Matrix(NamedTuple):
    """A table with a row for each task, a column for each cell, and the outcomes of the trials in the boxes."""

    caption: str
    columns: Sequence[MatrixColumn]
    rows: Sequence[MatrixRow]
    template: str = "matrix.html"


class Code(NamedTuple):
    """A text that is shown as it is, with its line breaks."""

    title: str
    text: str
    is_open: bool = True
    """True if the text is unfolded from the start."""
    template: str = "code.html"


class TimelineStep(NamedTuple):
    """One step of a trial."""

    name: str
    kind: str
    """Kind of the step, in small letters."""
    began: str
    lasted: str
    spent: str
    """Tokens and USD; empty if it is not a model call."""
    bar: tuple[float, float]
    """Beginning and end on the trial's clock, within [0, 1]."""
    error: str
    texts: Sequence[tuple[str, str]]
    """Long texts, each with its name."""
    facts: Sequence[tuple[str, str]]
    """Short texts, each with its name."""


class Timeline(NamedTuple):
    """The steps of a trial in their order."""

    steps: Sequence[TimelineStep]
    template: str = "timeline.html"


class DiffBlock(NamedTuple):
    """The changed files of a workspace."""

    changes: Changes
    template: str = "changes.html"


Block = Table | Picture | Text | Matrix | Code | Timeline | DiffBlock


class Section(NamedTuple):
    """A heading and the blocks beneath it."""

    name: str
    """Name of its anchor: `[a-z-]+`."""
    title: str
    blocks: Sequence[Block]


SectionMaker = Callable[["Findings"], Section | None]
"""Function that makes a section; `runner.report.page` lists the general ones in their order."""


TrialSectionMaker = Callable[["TrialFolder"], Section | None]
"""Function that makes a section of a trial's page."""


class TrialFolder(NamedTuple):
    """A trial and its files, which may be missing. Their texts are hostile; the page escapes them."""

    record: TrialRecord
    folder: Path
    redacted: Callable[[str], str]
    """Function that removes secrets and control characters from a text, and the middle from a very long one."""


class Sections(NamedTuple):
    """The sections that a benchmark adds to the report."""

    dataset: Sequence[SectionMaker] = ()
    """Makers of sections on a single dataset, which follow its scores."""
    sweep: Sequence[SectionMaker] = ()
    """Makers of sections on the whole sweep, which come first there."""
    trial: Sequence[TrialSectionMaker] = ()
    """Makers of sections of a trial's page, which follow the verdict. They must return None for trials of other
    datasets."""


@runtime_checkable
class HasSections(Protocol):
    """A class of datasets whose results need sections of their own."""

    @classmethod
    def report_sections(cls) -> Sections:
        """Return its sections. Their makers are called for the sweep's other datasets too, and must return None
        there.
        """


def where(applies: Callable[[pd.DataFrame], object]) -> Callable[[SectionMaker], SectionMaker]:
    """Return a decorator for sections that are left out unless `applies` is true of the trials."""

    def decorate(make: SectionMaker) -> SectionMaker:
        @wraps(make)
        def section(found: Findings) -> Section | None:
            return make(found) if applies(found.trials) else None

        return section

    return decorate
