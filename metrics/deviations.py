"""Deviation of a set-up project's test results from the truth (ExecutionAgent, sections 3.1.2 and 3.2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

CLOSE = 10.0
"""Deviation, in per cent, below which results are close to the truth (section 3.2)."""


class Deviations(NamedTuple):
    """Deviations of an agent's numbers of tests from the true ones, in per cent of the true ones."""

    passed: float
    """|agent − truth| / truth × 100 for the passed tests. NaN (undefined) if the truth is 0 and the agent's is not."""
    failed: float
    """The same for the failed tests."""
    skipped: float
    """The same for the skipped tests."""
    mean: float
    """The paper's deviation: mean of those of these three that are defined, to 12 decimals; NaN if none is."""
    total: float
    """Σ|agent − truth| / Σ truth × 100; NaN only if the truth has no test at all and the agent has some."""

    @property
    def close(self) -> bool:
        """Return whether `mean` is below `CLOSE`; an undefined one is not."""
        return self.mean < CLOSE


def deviations(truth: Sequence[int], agent: Sequence[int]) -> Deviations:
    """Return the deviations of an agent's (passed, failed, skipped) tests from the true ones; all are at least 0.

    Raises `ValueError` if the two are not equally long.
    """
    away = [abs(ours - theirs) for ours, theirs in zip(agent, truth, strict=True)]
    passed, failed, skipped = (_percent(*pair) for pair in zip(away, truth, strict=True))
    defined = [value for value in (passed, failed, skipped) if not math.isnan(value)]
    mean = round(sum(defined) / len(defined), 12) if defined else math.nan  # 10 must stay 10, not 9.99…
    return Deviations(passed, failed, skipped, mean, _percent(sum(away), sum(truth)))


def _percent(away: int, truth: int) -> float:
    if truth == 0:
        return math.nan if away else 0.0
    return away / truth * 100
