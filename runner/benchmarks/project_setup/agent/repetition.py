"""Going round in circles, as the authors' code recognises it: by the last six calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

SPAN: Final = 6
"""Calls that are looked at."""
PATTERNS: Final = ("AAAAAA", "ABABAB", "ABCABC", "AAABBB")
"""What is refused; equal letters are equal calls, and different letters may be equal calls too."""


def repetition(calls: Sequence[str]) -> str | None:
    """The pattern that the last six calls form, the one under consideration included; None if they form none."""
    last = calls[-SPAN:]
    if len(last) < SPAN:
        return None
    return next((pattern for pattern in PATTERNS if _fits(last, pattern)), None)


def _fits(calls: Sequence[str], pattern: str) -> bool:
    stands_for = dict(zip(pattern, calls, strict=True))
    return all(stands_for[letter] == call for letter, call in zip(pattern, calls, strict=True))
