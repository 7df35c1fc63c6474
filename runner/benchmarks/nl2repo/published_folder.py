"""Read a folder of NL2Repo-Bench's public data, and find its defects."""

from __future__ import annotations

import json
import re
from pathlib import Path

from runner.benchmarks.nl2repo.suite import covered, runs_tests, targets
from runner.benchmarks.sources.reviews import UNREVIEWED, is_reviewed
from runner.errors import TaskError
from runner.records import Record

DOCUMENT, COUNT, COMMANDS, FILES = PARTS = (
    "start.md",
    "test_case_count.txt",
    "test_commands.json",
    "test_files.json",
)
NOTE = "start.md.download_failed.txt"
"""Name of a file that some folders have in place of the document."""
SHORT = 1000
"""Length, in characters, below which a document that mentions a failed download counts as a note about it."""
_TESTS = re.compile(r"tests?|test_.*\.py|.*_tests?\.py")
"""Names of folders and files that hold only tests."""
NOT_DELETED = "tests_not_deleted"
"""Flag: a collected test is in no deleted file, so the authors' own scoring would count an agent's version."""
NO_INSTALL = "no_install_step"
"""Flag: no command installs anything."""
NO_TRUTH = "no_ground_truth"
"""Flag: it cannot be checked here that upstream's code passes the hidden tests."""
COUNT_DIFFERS = "count_differs"
"""Flag: upstream passes another number of tests here than is published, and that number is the denominator."""
IN_BACKGROUND = "background_install"
"""Flag: a published command starts an installation in the background, and the tests would not wait for its end."""
PAPER_INSTRUCTION = "paper_instruction"
"""Flag: the agent gets the paper's instruction, which neither warns of hidden tests nor says that nobody answers."""
REMARKS = {
    PAPER_INSTRUCTION: "its agent gets the paper's instruction, which neither warns of hidden tests nor says that "
    "nobody answers questions (dataset.instruction=paper)",
    UNREVIEWED: "its document was made here, and two people have not confirmed it; making/written_by.json names its "
    "author",
    IN_BACKGROUND: "one of its commands installs in the background, with `&`; here the tests wait for its end",
    COUNT_DIFFERS: "upstream passes another number of tests here than is published; scores are over the tests that it "
    "passes, and the score over the published number stands beside them",
    NOT_DELETED: "its deletion list leaves out tests that its commands collect; upstream's replace them, and no other "
    "test counts",
    NO_INSTALL: "none of its commands installs anything; they run as published",
    NO_TRUTH: "its tests are in the authors' image and upstream's code is not available, so nobody has seen them pass; "
    "every test in one of the authors' files counts",
}
"""Flag -> the defect and its treatment."""


MAKING = "making"
"""Folder of a task that was made here: authors of its document, and the file of its reviews."""
QUESTIONS = ("faithful", "complete")
"""Questions to the reviewers of a document (section 3.1.4), as columns of `making/reviews.csv`: does all that it says
agree with the code, and does it say all that the tests use."""


class Published(Record):
    """Content of the three files beside the document."""

    count: int
    commands: tuple[str, ...]
    """Commands as published, except that none installs in the background."""
    deleted: tuple[str, ...]
    """Paths to delete, as published."""
    flags: tuple[str, ...]
    """Defects that are corrected here: `NOT_DELETED`, `NO_INSTALL`, `IN_BACKGROUND`."""

    @property
    def hidden(self) -> tuple[str, ...]:
        """Published paths, and other paths of tests that the commands collect.

        Folders such as `src` are left out: with their tests, upstream's library would replace the agent's.
        """
        return tuple(dict.fromkeys([*self.deleted, *_uncovered(self.commands, self.deleted)]))


def folders(root: Path) -> list[Path]:
    """Return the sorted folders that are tasks, or so similar to tasks that leaving them out would hide a mistake."""
    if not root.is_dir():
        return []
    return sorted(
        child for child in root.iterdir() if any((child / part).exists() for part in (*PARTS, NOTE))
    )


def read(folder: Path) -> Published:
    """Read a folder. Raises `TaskError` that names what is missing or invalid."""
    count = _text(folder / COUNT).strip()
    if not count.isascii() or not count.isdigit() or int(count) < 1:
        raise TaskError(f"{COUNT} holds {count[:40]!r}, which is not a number of tests.")
    given, deleted = _strings(folder / COMMANDS), _strings(folder / FILES)
    commands = tuple(map(_in_foreground, given))
    if not any(map(runs_tests, commands)):
        raise TaskError(f"{COMMANDS} has no command that runs pytest, so nothing would be tested.")
    for path in deleted:
        if path.startswith("/") or ".." in Path(path).parts:
            raise TaskError(f"{FILES}: {path!r} leaves the workspace.")
    open_ones = [path for command in commands for path in targets(command)]
    installs = any(re.search(r"\b(install|setup\.py|poetry|uv|make)\b", command) for command in commands)
    flags = [NOT_DELETED] if any(not covered(path, deleted) for path in open_ones) else []
    flags += [] if installs else [NO_INSTALL]
    flags += [] if commands == given else [IN_BACKGROUND]
    return Published(count=int(count), commands=commands, deleted=deleted, flags=tuple(flags))


def flags_of_making(folder: Path) -> tuple[str, ...]:
    """Return the flag of a document that was made here and that too few people have confirmed. Raises `TaskError`."""
    making = folder / MAKING
    return () if not making.is_dir() or is_reviewed(making, QUESTIONS) else (UNREVIEWED,)


def _in_foreground(command: str) -> str:
    """Return a command that installs, with `;` in place of each `&` that sends a part of it into the background."""
    if runs_tests(command) or not re.search(r"\binstall\b", command) or re.search(r"[\"'`$\\]", command):
        return command
    return re.sub(r"(?<=\s)&(?=\s)", ";", command)


def documents(folders: list[Path]) -> dict[str, list[str]]:
    """Return document -> names of the tasks with exactly this document. Unreadable documents are left out."""
    owners: dict[str, list[str]] = {}
    for folder in folders:
        if (folder / DOCUMENT).is_file():
            text = (folder / DOCUMENT).read_text("utf-8", errors="replace")
            owners.setdefault(text, []).append(folder.name)
    return owners


def check_document(folder: Path, package: str, documents: dict[str, list[str]]) -> None:
    """Raise `TaskError` for a document that is a note of a failed download or belongs to another task."""
    if not (folder / DOCUMENT).exists() and (folder / NOTE).exists():
        raise TaskError(f"Its document was never downloaded: there is {NOTE} in place of {DOCUMENT}.")
    text = _text(folder / DOCUMENT)
    if len(text) < SHORT and re.search(r"fail|error|could not|not found", text, re.IGNORECASE):
        raise TaskError(
            f"{DOCUMENT} is not a document but a note of a failed download: {text.strip()[:80]!r}."
        )
    if not text.strip():
        raise TaskError(f"{DOCUMENT} is empty.")
    twins = [name for name in documents.get(text, []) if name != folder.name]
    mine = _mentions(text, folder.name, package)
    if twins and max(_mentions(text, twin) for twin in twins) > mine:
        raise TaskError(f"{DOCUMENT} is identical to that of {twins[0]}.")
    if not mine:
        raise TaskError(f"{DOCUMENT} never names {folder.name}: it belongs to another task.")


def _mentions(text: str, *names: str) -> int:
    """Count occurrences of the names in a text, whatever separates their words."""
    patterns = {re.sub(r"[-_.\s]+", "[-_. ]?", name) for name in names if name}
    return sum(len(re.findall(pattern, text, re.IGNORECASE)) for pattern in patterns)


def _uncovered(commands: tuple[str, ...], deleted: tuple[str, ...]) -> list[str]:
    return [
        path
        for command in commands
        for path in targets(command)
        if any(map(_TESTS.fullmatch, Path(path).parts)) and not covered(path, deleted)
    ]


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except FileNotFoundError as error:
        raise TaskError(f"{path.name} is missing.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"{path.name} cannot be read: {error}.") from error


def _strings(path: Path) -> tuple[str, ...]:
    try:
        values = json.loads(_text(path))
    except (ValueError, RecursionError) as error:
        raise TaskError(f"{path.name} is not JSON: {error}.") from error
    if not isinstance(values, list) or not all(isinstance(value, str) and value.strip() for value in values):
        raise TaskError(f"{path.name} must be a list of texts.")
    return tuple(values)
