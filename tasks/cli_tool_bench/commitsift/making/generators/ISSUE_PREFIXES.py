"""Use other prefixes of issues."""

from __future__ import annotations

from _messages import failing, odd, ordinary
from _prefixes import BROKEN, LISTS, option, words
from fuzz import Case, Draw


def common(draw: Draw) -> Case:
    """Refer to issues with them."""
    prefixes = (
        draw.choice(LISTS)
        if draw.chance(0.7)
        else ",".join(f"{word}-" for word in draw.words(draw.integer(1, 2)))
    )
    return ordinary(draw, option(draw, prefixes), words(prefixes))


def boundary(draw: Draw) -> Case:
    """Use rare lists."""
    prefixes = draw.choice((*LISTS, "a", ":", "#,,", " # ", "\\$", "🙂", "@", "/"))
    return odd(draw, option(draw, prefixes), words(prefixes))


def error(draw: Draw) -> Case:
    """Fail."""
    return failing(draw, option(draw, draw.choice(LISTS)), [option(draw, one) for one in BROKEN])
