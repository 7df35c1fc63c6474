"""Regard the case of prefixes."""

from __future__ import annotations

from _messages import failing, odd, ordinary
from _prefixes import BROKEN, LISTS, option, words
from fuzz import Case, Draw

FLAG = "--issue-prefixes-case-sensitive"
LETTERS = tuple(one for one in LISTS if any(letter.isalpha() for letter in one))


def both(draw: Draw, prefixes: str) -> str:
    """Return the flag and the option for prefixes, in any order."""
    given = option(draw, prefixes)
    return draw.choice((f"{FLAG} {given}", f"{given} {FLAG}"))


def common(draw: Draw) -> Case:
    """Refer to issues with prefixes in both cases."""
    prefixes = draw.choice(LETTERS) if draw.chance(0.7) else f"{draw.word().capitalize()}-"
    return ordinary(draw, both(draw, prefixes), words(prefixes))


def boundary(draw: Draw) -> Case:
    """Use the flag alone, or strange messages."""
    prefixes = draw.choice(LETTERS)
    return odd(draw, FLAG if draw.chance(0.2) else both(draw, prefixes), words(prefixes))


def error(draw: Draw) -> Case:
    """Fail."""
    return failing(draw, both(draw, draw.choice(LETTERS)), [f"{FLAG} {option(draw, one)}" for one in BROKEN])
