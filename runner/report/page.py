"""The report of a sweep: one self-contained HTML page, and its pictures and tables as files beside it.

Each section is a function in a list. Jinja escapes all text, since names of tasks and agents and messages of errors are
other people's. The page may run one script, its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup
from matplotlib.figure import Figure

from metrics.table import valid
from runner.files import write_atomically
from runner.report import (
    figures,
    sections_behaviour,
    sections_compared,
    sections_endings,
    sections_main,
    sections_matrix,
    sections_one_fixed,
    sections_pairs,
    sections_scores,
    sections_sweep,
    sections_trials,
    sections_verified,
)
from runner.report.benchmarks import added_sections
from runner.report.blocks import Block, Picture, Section, SectionMaker, Table
from runner.report.drawing import Artist
from runner.report.findings import Findings
from runner.report.html import render
from runner.report.latex_tables import FiledTable
from runner.report.leaderboard import judges_spend
from runner.report.table_files import files
from runner.report.trial_pages import list_pages
from runner.report.wording import MARKS, spend

SCORES: tuple[SectionMaker, ...] = (
    sections_scores.four_criteria,
    sections_scores.leaderboard,
    sections_scores.cost_quality,
    sections_scores.heat_map,
    sections_matrix.matrix,
    sections_one_fixed.same_model,
    sections_one_fixed.same_agent,
    sections_scores.tiers,
    sections_main.main_table,
)
"""Sections of each dataset, in this order; those that its benchmark adds follow."""
WORK: tuple[SectionMaker, ...] = (
    sections_behaviour.turns,
    sections_behaviour.tools,
    sections_behaviour.effort,
    sections_behaviour.workflow,
    sections_trials.pass_profile,
    sections_trials.sources,
    sections_trials.budgets,
    sections_pairs.pairs,
    sections_trials.effort,
    sections_trials.tokens_by_agent,
    sections_trials.attempts,
    sections_trials.caches,
)
"""Sections of each dataset that follow those of its benchmark."""
WHOLE: tuple[SectionMaker, ...] = (
    sections_compared.agreement,
    sections_compared.sensitivity,
    sections_sweep.coverage,
    sections_endings.how_trials_ended,
    sections_verified.verification,
    sections_sweep.audit,
    sections_sweep.what_ran,
)
"""Sections of the whole sweep, at the end; those that benchmarks add come before them."""

_MARKS = {
    "scripted": "(scripted): a fixed script in place of a language model; its dollars were charged to nobody.",
    "replayed": "(replayed): the model's answers are those of a recorded run; nobody was charged for this one.",
}
"""Meaning of each mark, for tables that stand in other documents than the page."""


Begin = Callable[[str, Callable[[], Figure]], None]
"""A function that begins to draw the picture of this name, by the function that makes its figure."""


class Chapter(NamedTuple):
    """The sections of one dataset, or of the whole sweep."""

    title: str
    about: str
    """Words beside the title."""
    suffix: str
    """Suffix of its anchors and pictures, so that those of two datasets differ."""
    sections: list[Section]


class Drawn(NamedTuple):
    """A picture that has been drawn for the page."""

    name: str
    caption: str
    alt: str
    svg: Markup
    files: dict[str, bytes]
    template: str


def write_report(found: Findings) -> Path:
    """Write `report/index.html`, its pictures and its tables into the sweep's folder; return the page.

    The same findings give the same bytes. Other pictures and tables of an earlier report are removed. Raises
    `OutputsError` when a file cannot be written.
    """
    folder = found.folder / "report"
    with Artist(folder, len(found.trials)) as artist:
        made = list(chapters_of(found, artist.begin))
        listed = list_pages(found)
        chapters = [_rendered(chapter, artist, _notes(found)) for chapter in made]
    blocks = [block for chapter in chapters for section in chapter["sections"] for block in section["blocks"]]
    drawn = [block for block in blocks if isinstance(block, Drawn)]
    contents = {name: content for picture in drawn for name, content in picture.files.items()}
    contents |= listed
    contents |= files([block for block in blocks if isinstance(block, FiledTable)])
    for name, content in {**contents, "index.html": _html(found, chapters).encode()}.items():
        write_atomically(folder / name, content)
    for old in (*folder.glob("*.svg"), *folder.glob("*.png"), *folder.glob("tables/*")):
        if str(old.relative_to(folder)) not in contents:
            old.unlink()
    return folder / "index.html"


def chapters_of(found: Findings, begin: Begin = lambda _name, _draw: None) -> Iterator[Chapter]:
    """Yield a chapter for each dataset, sorted by name, and one for the whole sweep.

    `begin` is given the name and the function of each picture as soon as its section is made.
    """
    added = added_sections(found.folder)
    for at, (name, own) in enumerate(found.by_dataset(), 1):
        about = f"dataset of {own.trials['task'].nunique()} tasks"
        suffix = f"-{at}" if at > 1 else ""
        sections = [*_sections((*SCORES, *added.dataset, *WORK), own, suffix, begin)]
        yield Chapter(name, about, suffix, sections)
    sections = [*_sections((*added.sweep, *WHOLE), found, "", begin)]
    yield Chapter("The sweep", "what its figures rest on", "", sections)


def _sections(
    makers: Iterable[SectionMaker], found: Findings, suffix: str, begin: Begin
) -> Iterator[Section]:
    """Yield the sections that are not empty, without tables that have no rows; their pictures are begun."""
    for section in (section for make in makers if (section := make(found))):
        blocks = [each for each in section.blocks if not isinstance(each, Table) or each.rows]
        for picture in (each for each in blocks if isinstance(each, Picture)):
            begin(f"{picture.name}{suffix}", picture.draw)
        yield section._replace(blocks=blocks)


def _html(found: Findings, chapters: list[dict[str, Any]]) -> str:
    return render(
        "page.html",
        ("tables.js", "matrix.js"),
        name=found.plan.name,
        facts=_facts(found),
        imported=found.plan.imported.text if found.plan.imported else "",
        marks=[mark for mark in MARKS if found.trials[mark].any()],
        chapters=chapters,
    )


def _rendered(chapter: Chapter, artist: Artist, notes: Sequence[str]) -> dict[str, Any]:
    """Return a chapter for the template, with its pictures drawn and its tables named as files."""
    sections = [
        {
            "anchor": f"{section.name}{chapter.suffix}",
            "title": section.title,
            "blocks": [
                _drawn(block, chapter.suffix, artist) if isinstance(block, Picture) else block
                for block in _filed(section, chapter, notes)
            ],
        }
        for section in chapter.sections
    ]
    return {"title": chapter.title, "about": chapter.about, "sections": sections}


def _filed(section: Section, chapter: Chapter, notes: Sequence[str]) -> Iterator[Block | FiledTable]:
    """Yield the blocks of a section; each table has files, named after the section and numbered from the second on."""
    tables = 0
    for block in section.blocks:
        if isinstance(block, Table):
            tables += 1
            name = f"{section.name}{f'_{tables}' if tables > 1 else ''}{chapter.suffix}"
            about = f"{section.title}; {chapter.title}, {chapter.about}"
            yield FiledTable(name, block, about, notes, block.template)
        else:
            yield block


def _notes(found: Findings) -> list[str]:
    """Return sentences on the marks of models and on the origin of the trials, which the page has at its top."""
    imported = found.plan.imported
    return [
        *(about for mark, about in _MARKS.items() if found.trials[mark].any()),
        *([f"Imported: {imported.text}."] if imported else []),
    ]


def _drawn(picture: Picture, suffix: str, artist: Artist) -> Drawn:
    """Return a picture with its drawing."""
    name = f"{picture.name}{suffix}"
    text, files = artist.drawing(name, picture.draw)
    markup = Markup(figures.inline(text, name))  # noqa: S704 - matplotlib escaped what it drew
    return Drawn(name, picture.caption, picture.alt, markup, files, picture.template)


def _facts(found: Findings) -> list[tuple[str, str]]:
    """Return the figures at the top of the page, each with its title."""
    trials, cells = found.trials, found.cells
    ran = int(trials["ran"].sum())
    spent = spend(float(cells["spend_usd"].sum()), int(cells["unpriced"].sum()), ran)
    judged = int(valid(trials).sum())
    others = {"of other tasks": cells["other_tasks"].sum(), "bounds": cells["bound"].sum()}
    return [
        (
            "cells",
            " + ".join([f"{len(found.contenders)}", *(f"{n} {name}" for name, n in others.items() if n)]),
        ),
        ("tasks", f"{len(trials.drop_duplicates(['dataset', 'task']))}"),
        ("trials judged", f"{judged} of {len(trials)}"),
        ("invalid", f"{len(trials) - judged} of {len(trials)}"),
        ("USD spent", spent),
        *([("USD of judges", paid)] if (paid := judges_spend(cells)) else []),
    ]
