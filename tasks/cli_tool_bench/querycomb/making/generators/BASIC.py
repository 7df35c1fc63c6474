"""Lay out SQL with the defaults."""

from __future__ import annotations

from _sql import failing, laid, rare, script
from fuzz import Case, Draw

WRONG: tuple[str, ...] = ()


def option(draw: Draw) -> str:
    """Return the option in one of its forms, with others at times."""
    return draw.choice((("", "", "", "", "-l sql", "-i 2")))


def common(draw: Draw) -> Case:
    """Lay out ordinary statements."""
    return laid(draw, option(draw), script(draw, 1, 2))


def boundary(draw: Draw) -> Case:
    """Lay out odd texts, or use rare values."""
    if draw.chance(0.6):
        return laid(draw, option(draw), rare(draw))
    return laid(draw, draw.choice((("", "-l sql", "-i 0"))), script(draw, 1, 3))


def error(draw: Draw) -> Case:
    """Fail."""
    return failing(draw, option(draw), WRONG)
