"""Write keywords in upper case."""

from __future__ import annotations

from _sql import failing, laid, rare, script
from fuzz import Case, Draw

WRONG: tuple[str, ...] = ("-u=1", "-u --bogus", "-U", "--uppercase=yes", "-u -l none", "-ux", "--uppercases")


def option(draw: Draw) -> str:
    """Return the option in one of its forms, with others at times."""
    return draw.choice(
        (("-u", "--uppercase", "-u", "--uppercase", "-u -i 4", "-u -t", "-u -l sql", "--uppercase -i 3"))
    )


def common(draw: Draw) -> Case:
    """Lay out ordinary statements."""
    return laid(draw, option(draw), script(draw, 1, 2))


def boundary(draw: Draw) -> Case:
    """Lay out odd texts, or use rare values."""
    if draw.chance(0.6):
        return laid(draw, option(draw), rare(draw))
    return laid(draw, draw.choice((("-u", "-u -u", "-u --lines-between-queries 2"))), script(draw, 1, 3))


def error(draw: Draw) -> Case:
    """Fail."""
    return failing(draw, option(draw), WRONG)
