"""Endings of trials: statuses and flags by cell, for the terminal and the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pandas as pd

STATUSES = (
    *("completed", "agent_error", "timeout", "budget_exceeded"),
    *("infra_invalid", "cancelled", "not run", "refused"),
)
"""Statuses of records, and those of trials without a record."""


class Endings(NamedTuple):
    """Endings of the trials of one cell."""

    statuses: Counter[str]
    flags: Counter[str]
    """Flag -> number of trials that have it."""

    @property
    def is_plain(self) -> bool:
        """Return whether all trials that could run ended by themselves and have no flags."""
        return not self.flags and set(self.statuses) <= {"completed", "refused"}


def refused(trials: pd.DataFrame) -> pd.Series[bool]:
    """Return which trials were not run because their task cannot be run here."""
    return ~trials["ran"] & trials["reason"].str.startswith("refused: ")


def endings(trials: pd.DataFrame) -> dict[str, Endings]:
    """Return how the planned trials of each cell ended, by the cell's name."""
    words = trials["status"].mask(~trials["ran"], "not run").mask(refused(trials), "refused")
    flags = trials["flags"].fillna("") if "flags" in trials else pd.Series("", index=trials.index)
    found: dict[str, Endings] = {}
    counts = trials.groupby([trials["cell"], words, flags]).size()
    for key, count in zip(counts.index.to_list(), counts.to_list(), strict=True):
        cell, word, texts = map(str, key)
        own = found.setdefault(cell, Endings(Counter(), Counter()))
        own.statuses[word] += count
        own.flags.update(dict.fromkeys(texts.split(), count))
    return found


def ending_lines(trials: pd.DataFrame, cells: Iterable[str]) -> Iterator[str]:
    """Yield a line for each of these cells in which some trial did not end by itself or has a flag."""
    found = endings(trials)
    odd = {cell: found[cell] for cell in cells if not found[cell].is_plain}
    if odd:
        yield "How trials ended, where not all completed or some are flagged:"
    for cell, own in odd.items():
        flags = ", ".join(f"{flag} {count}" for flag, count in own.flags.most_common())
        texts = ", ".join(f"{word} {own.statuses[word]}" for word in STATUSES if own.statuses[word])
        yield f"  {cell}: {texts}{f'; flags: {flags}' if flags else ''}"
