"""Draft a document with a model, entry by entry. Each answer is a file in `making/`, and asked for once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from runner.benchmarks.nl2repo.construction import answer_checks, questions
from runner.benchmarks.nl2repo.construction.document import UNWRITTEN, Facts, document
from runner.benchmarks.nl2repo.published_folder import DOCUMENT, MAKING
from runner.benchmarks.nl2repo.specification.entries import Entry
from runner.benchmarks.nl2repo.specification.used_names import TestFile, used_names
from runner.benchmarks.sources.answers import BY_HAND, PROVENANCE, Answers, Question
from runner.benchmarks.sources.rejections import RejectedError
from runner.errors import ConfigError
from runner.files import write_atomically

Check = Callable[[str], str]


class Material(NamedTuple):
    """The material that a model is shown."""

    facts: Facts
    root: Path
    """Folder below which the files of the entries lie."""
    readme: str
    tests: Sequence[TestFile]


class Draft(NamedTuple):
    """A document and what is missing in it."""

    text: str
    failures: list[str]
    """Reasons why entries were not written; the document has `UNWRITTEN` in their place."""


def entries_to_describe(
    entries: Sequence[Entry], tests: Sequence[TestFile], attributes: set[str]
) -> list[Entry]:
    """Return the public entries, the private ones that tests use, and their modules; each name once."""
    used = {use.name for use in used_names(tests, entries, attributes)}
    chosen = {
        entry.name: entry
        for entry in reversed(entries)  # of several definitions, the first counts
        if entry.public or (entry.kind != "module" and entry.short in used and not entry.short.endswith("__"))
    }
    modules = {entry.file for entry in chosen.values()}
    return [
        entry
        for entry in dict.fromkeys(entries)
        if chosen.get(entry.name) is entry or (entry.kind == "module" and entry.file in modules)
    ]


def asked(material: Material) -> list[tuple[Question, Check]]:
    """Return every question of a document with the check of its answer, in the order in which they are asked."""
    facts, name = material.facts, material.facts.name
    found: list[tuple[Question, Check]] = [
        (questions.overview_question(name, material.readme, facts.entries), answer_checks.checked_prose)
    ]
    for entry in facts.entries:
        if entry.kind != "module":
            code = questions.entry_source(material.root, entry)
            hidden = "" if entry.kind == "constant" else questions.file_source(material.root, entry)
            check = partial(answer_checks.checked_entry, entry=entry, source=hidden)
            found.append((questions.entry_question(name, entry, code, material.tests), check))
    examples = questions.examples_question(name, facts.imports, material.tests)
    return [*found, (examples, answer_checks.checked_examples)]


def draft(material: Material, answers: Answers, say: Callable[[str], None]) -> Draft:
    """Get every answer and put the document together.

    Raises `JudgeError` when the model does not answer or the cap is reached; what is written by then is kept.
    """
    texts: dict[str, str] = {}
    failures = []
    every = asked(material)
    for number, (question, check) in enumerate(every, start=1):
        due = answers.is_due(question)
        try:
            texts[question.file] = answers.get(question, check)
        except RejectedError as error:
            failures.append(error.rejection.reason)
            texts[question.file] = UNWRITTEN
        if due:
            outcome = "REJECTED" if texts[question.file] == UNWRITTEN else "written"
            say(f"[{number}/{len(every)}] {question.file}: {outcome}")
    examples = texts[questions.EXAMPLES]
    text = document(
        material.facts,
        texts[questions.OVERVIEW],
        UNWRITTEN if examples == UNWRITTEN else f"```python\n{examples.strip()}\n```",
        lambda entry: texts[f"entries/{entry.name}.md"],
    )
    return Draft(text, failures)


def skeleton(facts: Facts) -> str:
    """Return the document with `UNWRITTEN` wherever somebody has to write."""
    return document(facts, UNWRITTEN, UNWRITTEN, lambda _: UNWRITTEN)


def write_document(folder: Path, text: str, author: str) -> None:
    """Write `start.md` and note its author, unless a person has changed it since it was written last.

    Raises `ConfigError` in that case.
    """
    file, notes = folder / DOCUMENT, folder / MAKING / PROVENANCE
    known = json.loads(notes.read_bytes()) if notes.is_file() else {}
    mine = known.get(DOCUMENT, {}).get("question", "")
    if file.is_file() and _digest(file.read_text("utf-8")) not in (mine, _digest(text)):
        raise ConfigError(
            f"{file} was changed by hand, and is not overwritten: move it away, or change the answers in "
            f"{folder / MAKING} instead."
        )
    write_atomically(file, text.encode())
    known[DOCUMENT] = {"by": author, "question": _digest(text)}
    notes.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(notes, (json.dumps(dict(sorted(known.items())), indent=1) + "\n").encode())


def author_of(answers: Answers) -> str:
    """Return the authors of the answers, in words."""
    return ", ".join(answers.authors) or BY_HAND


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
