"""Results of the steps of a construction, each in a file whose key covers everything that the step depends on.

A construction that was stopped repeats no step that has ended. A rejection is a result like any other. Other failures,
such as that of an engine that went away, are not stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from runner.benchmarks.sources.rejections import RejectedError, Rejection
from runner.benchmarks.sources.task_files import digest
from runner.files import write_atomically
from runner.records import Record

R = TypeVar("R", bound=Record)
FORMAT = 1
"""Version of the stored results. Results of another version are made again."""


class Stored(Record):
    """The file of one step: its key, and either its result or the rejection of the tool."""

    key: str
    result: dict[str, Any] | None = None
    rejection: Rejection | None = None


class Steps:
    """The steps of one tool, in a folder of its own that can be deleted at any time."""

    def __init__(self, folder: Path, say: Callable[[str], None] = lambda _: None) -> None:
        """`say` is told the name of each step that is carried out."""
        self._folder, self._say = folder, say

    def get(self, name: str, depends: Sequence[Any], kind: type[R], make: Callable[[], R]) -> R:
        """Return the stored result of a step, or make and store it.

        `depends`: JSON values that can change the result. Raises `RejectedError`, also for a stored rejection.
        """
        key, file = digest([FORMAT, name, *depends]), self._folder / f"{name}.json"
        stored = _read(file)
        if stored is None or stored.key != key:
            self._say(name)
            stored = _carried_out(key, make)
            write_atomically(file, stored.model_dump_json().encode())
        if stored.rejection:
            raise RejectedError(stored.rejection)
        return kind.model_validate(stored.result)

    def has(self, name: str, depends: Sequence[Any]) -> bool:
        """Return whether `get` would find a stored result."""
        stored = _read(self._folder / f"{name}.json")
        return stored is not None and stored.key == digest([FORMAT, name, *depends])


def _carried_out(key: str, make: Callable[[], Record]) -> Stored:
    try:
        return Stored(key=key, result=make().model_dump(mode="json"))
    except RejectedError as error:
        return Stored(key=key, rejection=error.rejection)


def _read(file: Path) -> Stored | None:
    try:
        return Stored.model_validate_json(file.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None
