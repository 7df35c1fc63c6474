"""Results of tests that frameworks print for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

    from runner.environments import Outcomes, Reading

FRAMEWORKS: Final = frozenset(
    "pytest unittest jest mocha vitest node go cargo surefire gradle ctest automake tap".split()
)


def read_output(text: str, frameworks: Collection[str] = FRAMEWORKS) -> tuple[Reading, ...]:
    """Every run of one of these frameworks that the output of a test program shows, in their order."""
    raise NotImplementedError


def read_text(framework: str, text: str) -> Outcomes | None:
    """All runs of one framework in a text, together; None: the text is no result of it."""
    raise NotImplementedError
