"""Suggest what to type instead of a word that does not exist."""

from __future__ import annotations

from collections.abc import Iterable


def suggest(word: str, valid: Iterable[str]) -> str:
    """Return a hint for a misspelt word: the nearest valid one, if one is near, and all of them."""
    from rapidfuzz import fuzz, process  # noqa: PLC0415 - only a mistake needs it

    valid = sorted(valid)
    near = process.extractOne(word, valid, scorer=fuzz.ratio, score_cutoff=60)
    hint = f"Did you mean '{near[0]}'? " if near else ""
    return f"{hint}Valid: {', '.join(valid) or '(none)'}"
