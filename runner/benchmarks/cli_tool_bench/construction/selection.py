"""The choice of a balanced set among finished tasks, and its Table 1 (end of section 2.3)."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean

from runner.records import Record

DIMENSIONS = ("tier", "language", "category")
"""Properties over which a choice is balanced: the three of Table 1."""
TIERS = {"easy": "Easy (≤ 1500 LOC)", "medium": "Medium (1500 - 4000 LOC)", "hard": "Hard (≥ 4000 LOC)"}


class Finished(Record):
    """Properties of a finished task on which its choice depends."""

    name: str
    tier: str
    language: str
    category: str
    lines: int
    """Lines of the reference's code."""


class Row(Record):
    """One row of Table 1."""

    dimension: str
    value: str
    count: int
    lines: float
    """Mean lines of code."""


def choose(tasks: Sequence[Finished], count: int, seed: int) -> list[Finished]:
    """Return `count` tasks, or all if there are fewer, as evenly spread over `DIMENSIONS` as a greedy choice can.

    Each step takes the task whose values have been chosen least often so far; the seed decides between equal tasks.
    """
    chosen: list[Finished] = []
    taken: Counter[tuple[str, str]] = Counter()
    left = sorted(tasks, key=lambda one: hashlib.sha256(f"{seed}/{one.name}".encode()).digest())
    while left and len(chosen) < count:
        best = min(left, key=lambda one: sum(2 * taken[key] + 1 for key in _keys(one)))
        left.remove(best)
        chosen.append(best)
        taken.update(_keys(best))
    return sorted(chosen, key=lambda one: one.name)


def table_1(tasks: Iterable[Finished]) -> list[Row]:
    """Return the distribution of a set of tasks, as the paper's Table 1 gives it."""
    tasks = list(tasks)
    return [
        Row(dimension=dimension, value=value, count=len(some), lines=fmean(one.lines for one in some))
        for dimension in DIMENSIONS
        for value in sorted({getattr(one, dimension) for one in tasks}, key=_rank)
        if (some := [one for one in tasks if getattr(one, dimension) == value])
    ]


def _rank(value: str) -> tuple[int, str]:
    return (list(TIERS).index(value), "") if value in TIERS else (len(TIERS), value)


def _keys(task: Finished) -> list[tuple[str, str]]:
    return [(dimension, getattr(task, dimension)) for dimension in DIMENSIONS]
