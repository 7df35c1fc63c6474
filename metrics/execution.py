"""Scores of set-up projects (ExecutionAgent, section 3.1.2): deviations from the truth, size of a script."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from metrics.shell import called, commands

CLOSE = 10.0
"""Per cent; a smaller deviation is close to the truth (section 3.2)."""
NOT_COUNTED = ("echo",)
"""Commands that are no part of a script's size."""


class Deviations(NamedTuple):
    """How far an agent's numbers of tests are from the truth, in per cent of the truth."""

    passed: float
    failed: float
    skipped: float
    """NaN where the truth is 0 and the agent's number is not: undefined."""
    mean: float
    """The deviation: mean of those of the three that are defined; NaN if none is."""
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
    mean = sum(defined) / len(defined) if defined else math.nan
    return Deviations(passed, failed, skipped, mean, _percent(sum(away), sum(truth)))


def _percent(away: int, truth: int) -> float:
    if truth == 0:
        return math.nan if away else 0.0
    return away / truth * 100


def script_size(text: str) -> int:
    """Number of commands of a shell script, parts of composite ones each, without `NOT_COUNTED` (see `commands`)."""
    return sum(next(iter(called(command)), "") not in NOT_COUNTED for command in commands(text))
