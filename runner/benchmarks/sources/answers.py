"""The answers that the construction of a task needs, such as a schema, a description or an entry of a document.

Each answer is a file beside the task. A model writes it through the gateway, metered and recorded; a person may write
the same file by hand. A file that exists is not asked for again, unless a model wrote it for another question.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from pydantic import ValidationError

from runner.benchmarks.sources.fences import RULE, enclosed, token_of
from runner.benchmarks.sources.rejections import Step, rejected
from runner.errors import TaskError
from runner.files import write_atomically
from runner.records import Record

BY_HAND = "by hand"
"""Author of files that no model wrote."""
PROVENANCE = "written_by.json"
MOST_BYTES = 1 << 20
"""Largest answer that is read, in bytes."""


class Question(Record):
    """A request for one file of an answer."""

    file: str
    """File of the answer, below the folder of answers."""
    step: Step
    """Step of the construction that needs the answer."""
    instruction: str
    """System prompt."""
    material: str
    """Texts on which the answer depends, each between fences."""

    @property
    def digest(self) -> str:
        """Digest of the question: 32 hex digits."""
        content = json.dumps([self.file, self.instruction, self.material])
        return hashlib.sha256(content.encode()).hexdigest()[:32]


class Written(Record):
    """Origin of a file: the model or the person that wrote it."""

    by: str
    """`by hand`, or the name of the model."""
    question: str = ""
    """Digest of the question that a model answered."""


Talk = Callable[[Sequence[dict[str, str]]], str]
"""Function that returns a model's answer to a conversation. Raises `JudgeError` when there is none."""


class AskModel(Protocol):
    """Puts questions to a model."""

    @property
    def name(self) -> str:
        """Name of the model, as recorded beside its answers."""

    def conversation(self, question: Question) -> AbstractContextManager[Talk]:
        """Open a conversation about one question."""


class Answers:
    """The answers of one task, in a folder beside it."""

    def __init__(self, folder: Path, model: AskModel | None, tries: int) -> None:
        """`model` is asked; None means that people write every answer. `tries` limits the attempts at one answer."""
        self.folder, self._model, self._tries = folder, model, tries

    @property
    def authors(self) -> tuple[str, ...]:
        """Names of all authors of answers, sorted."""
        files = [path for path in self.folder.rglob("*") if path.is_file() and _is_answer(path)]
        return tuple(sorted({self._author(path.relative_to(self.folder).as_posix()).by for path in files}))

    def shared(self) -> dict[str, str]:
        """Return name -> text of the files that generators may import. Only people write such files."""
        return {path.name: path.read_text("utf-8") for path in sorted(self.folder.glob("generators/_*.py"))}

    def author_of(self, question: Question) -> str:
        """Return the author of this answer: the one who wrote it, or who would."""
        if self._model is not None and self.is_due(question):
            return self._model.name
        return self._author(question.file).by

    def is_due(self, question: Question) -> bool:
        """Return whether getting this answer means asking a model."""
        if not (self.folder / question.file).is_file():
            return self._model is not None
        author = self._author(question.file)
        return author.by != BY_HAND and self._model is not None and author.question != question.digest

    def get(self, question: Question, check: Callable[[str], str]) -> str:
        """Return an answer that passes `check`, from its file or from the model.

        `check` returns the part of an answer to keep, or raises `ValueError` with the fault, which the model is told in
        the next attempt. Raises `RejectedError` when no attempt passes or nobody can write the answer.
        """
        file = self.folder / question.file
        if self._model is None or not self.is_due(question):
            return self._by_hand(file, question, check)
        kept, fault = self._from_model(self._model, question, check)
        if kept is None:
            reason = f"{question.file}: {self._model.name} failed {self._tries} times: {fault}"
            raise rejected(question.step, reason)
        write_atomically(file, kept.encode())
        return kept

    def _from_model(
        self, model: AskModel, question: Question, check: Callable[[str], str]
    ) -> tuple[str | None, str]:
        """Return the kept part of the first answer that passes, and no fault; or None and the fault of the last one."""
        messages = [
            {"role": "system", "content": question.instruction},
            {"role": "user", "content": question.material},
        ]
        fault = ""
        with model.conversation(question) as talk:
            for _ in range(self._tries):
                answer = talk(messages)
                try:
                    kept = check(answer)
                except ValueError as error:
                    fault = str(error)
                else:
                    self._note(question.file, Written(by=model.name, question=question.digest))
                    return kept, ""
                messages += [
                    {"role": "assistant", "content": answer},
                    {"role": "user", "content": _objection(fault)},
                ]
        return None, fault

    def _by_hand(self, file: Path, question: Question, check: Callable[[str], str]) -> str:
        """Return the answer that a person wrote. Raises `RejectedError` if it is missing or wrong."""
        try:
            return check(_small_text(file))
        except FileNotFoundError:
            reason = f"{question.file} is missing: write it by hand, or name a model= that writes it"
        except (OSError, ValueError) as error:
            reason = f"{question.file}: {error}"
        raise rejected(question.step, reason)

    def _author(self, name: str) -> Written:
        return self._authors().get(name, Written(by=BY_HAND))

    def _authors(self) -> dict[str, Written]:
        file = self.folder / PROVENANCE
        try:
            node = json.loads(file.read_bytes())
            return {name: Written.model_validate(author) for name, author in node.items()}
        except FileNotFoundError:
            return {}
        except (ValueError, AttributeError, ValidationError) as error:
            raise TaskError(
                f"{file.name} cannot be read: {error}. Remove it, and the files it names."
            ) from error

    def _note(self, name: str, author: Written) -> None:
        known = {**self._authors(), name: author}
        content = {key: value.model_dump() for key, value in sorted(known.items())}
        write_atomically(self.folder / PROVENANCE, (json.dumps(content, indent=1) + "\n").encode())


def _objection(fault: str) -> str:
    """Return the message to a model about the fault of its answer, which may quote a tool's or a generator's output."""
    token = token_of(fault=fault)
    rule = RULE.format(token=token)
    return f"That does not do, for this fault.\n{rule}{enclosed(token, fault=fault)}\nAnswer again, complete."


def fenced(answer: str) -> tuple[str, str]:
    """Return the label and the text of the fenced block in an answer, such as `python`; two empty texts for none.

    Models often put a sentence before a block, or behind it. The block ends at the last fence, because what is fenced
    may hold fences of its own.
    """
    lines = answer.split("\n")
    fences = [number for number, line in enumerate(lines) if line.lstrip().startswith("```")]
    if len(fences) < 2:  # noqa: PLR2004 - where it begins, and where it ends
        return "", ""
    first, last = fences[0], fences[-1]
    return lines[first].strip().lstrip("`").strip().lower(), "\n".join(lines[first + 1 : last]) + "\n"


def _small_text(file: Path) -> str:
    if file.stat().st_size > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES} bytes")
    return file.read_text("utf-8")


def _is_answer(path: Path) -> bool:
    """Return whether a file in the folder of answers is one, by its name."""
    return path.suffix in (".py", ".md") or path.name == "schema.json"
