"""Runs the cases of differential testing: one long-lived container a side, one clean machine a case.

Open a side (`open_cases`), give its box one case (`box.run`), many (`stream`), or two sides the same (`stream_pairs`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, Protocol

from runner.cases import Case, CaseResult, CaseSide


class CaseBox(Protocol):
    """One side, ready to run cases. A context manager gives it; leaving that removes its containers."""

    @property
    def how(self) -> Literal["overlay", "copy"]:
        """Which way was taken, as on each result."""

    def run(self, case: Case) -> CaseResult:
        """Run one case from the clean state; never raises for what the case does. Thread-safe, waits for a lane.

        Raises `EngineError` when the container cannot be reached.
        """


@contextmanager
def open_cases(side: CaseSide) -> Iterator[CaseBox]:
    """Start a side. Raises `EngineError`, and `ImageError` for an image without a shell."""
    raise NotImplementedError


def stream(
    box: CaseBox, cases: Sequence[Case], lanes: int, cancelled: Callable[[], bool] = lambda: False
) -> Iterator[tuple[int, CaseResult]]:
    """Index in `cases` and result of each, as they end; what `cancelled` stops is missing."""
    raise NotImplementedError


def stream_pairs(
    reference: CaseBox,
    candidate: CaseBox,
    cases: Sequence[Case],
    cancelled: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[int, CaseResult, CaseResult]]:
    """Index in `cases`, the reference's and the candidate's result; both sides of a case run at once."""
    raise NotImplementedError
