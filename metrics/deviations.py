"""How far tests of a set-up project are from the truth (ExecutionAgent, sections 3.1.2 and 3.2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

CLOSE = 10.0
"""Per cent; a smaller deviation is close to the truth (section 3.2)."""


class Deviations(NamedTuple):
    """How far an agent's numbers of tests are from the truth, in per cent of the truth."""

    passed: float
    failed: float
    skipped: float
    """NaN where the truth is 0 and the agent's number is not: undefined."""
    mean: float
    """The deviation: mean of those of the three that are defined, to 12 decimals; NaN if none is."""
    total: float
    """Σ|agent − truth| / Σ truth × 100; NaN only where the truth has no test at all and the agent has some."""

    @property
    def close(self) -> bool:
        """Whether the deviation is below `CLOSE`; an undefined one is not."""
        return self.mean < CLOSE


def deviations(truth: Sequence[int], agent: Sequence[int]) -> Deviations:
    """Of an agent's (passed, failed, skipped) from the true ones; every number is at least 0."""
    away = [abs(ours - theirs) for ours, theirs in zip(agent, truth, strict=True)]
    passed, failed, skipped = (_percent(*pair) for pair in zip(away, truth, strict=True))
    defined = [value for value in (passed, failed, skipped) if not math.isnan(value)]
    mean = round(sum(defined) / len(defined), 12) if defined else math.nan  # 10 must not be a little less
    return Deviations(passed, failed, skipped, mean, _percent(sum(away), sum(truth)))


def _percent(away: int, truth: int) -> float:
    if truth == 0:
        return math.nan if away else 0.0
    return away / truth * 100
