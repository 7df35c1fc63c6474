"""Recognise repeated calls as the authors' code does: by the last six calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

SPAN: Final = 6
"""Number of calls that are compared."""
PATTERNS: Final = ("AAAAAA", "ABABAB", "ABCABC", "AAABBB")
"""Refused patterns. Equal letters stand for equal calls. Different letters may stand for equal calls, too."""


def repetition(calls: Sequence[str]) -> str | None:
    """Return the pattern that the last six calls form, including the one to be made; None if they form none."""
    last = calls[-SPAN:]
    if len(last) < SPAN:
        return None
    return next((pattern for pattern in PATTERNS if _fits(last, pattern)), None)


def _fits(calls: Sequence[str], pattern: str) -> bool:
    stands_for = dict(zip(pattern, calls, strict=True))
    return all(stands_for[letter] == call for letter, call in zip(pattern, calls, strict=True))
