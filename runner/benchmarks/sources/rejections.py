"""Rejections in a construction: the step that rejects a tool or a document, and the reason."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from pydantic import Field

from runner.errors import ProgramError, SpoiledMachine, TaskError, VerifierError
from runner.records import Record

Step = Literal[
    "candidate", "entry", "schema", "classes", "generator", "golden", "prompt", "acceptance", "document"
]
"""Steps of the construction of a command-line tool, in their order, and the one that writes a library's document."""


class Rejection(Record):
    """Rejection of a tool, of a part of a tool, or of a document, by a step."""

    step: Step
    reason: str = Field(min_length=1, max_length=2_000)
    """One sentence that says what is wrong and, if anything can be done, what to do. Funnels count rejections by the
    part of it before the first colon."""


class RejectedError(TaskError):
    """Refusal of a tool or a document by a step of the construction."""

    def __init__(self, rejection: Rejection) -> None:
        super().__init__(f"{rejection.step}: {rejection.reason}")
        self.rejection = rejection


def rejected(step: Step, reason: str) -> RejectedError:
    """Return the exception for a step and its reason; a reason that is too long loses its end."""
    return RejectedError(Rejection(step=step, reason=reason[:2_000]))


@contextmanager
def breaking(step: Step) -> Iterator[None]:
    """Reject the tool if, within this block, it breaks its own machine or cannot be installed or judged."""
    try:
        yield
    except (SpoiledMachine, ProgramError, VerifierError) as error:
        raise rejected(step, f"machine: {error}") from error
