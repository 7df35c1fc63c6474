"""Tell whether folders are identical, and count."""

from __future__ import annotations

from _twins import compared, failing, odd
from fuzz import Case, Draw

PREP = ""
WRONG: tuple[str, ...] = ("-v", "--quiet")


def option(draw: Draw) -> str:
    """Return the options of a case."""
    return draw.choice(("", "", "", "--nocolors", "--async"))


def common(draw: Draw) -> Case:
    """Compare ordinary folders."""
    return compared(draw, option(draw), PREP, draw.choice((0.4, 0.4, 0.6, 0)))


def boundary(draw: Draw) -> Case:
    """Compare odd folders."""
    return odd(draw, option(draw), PREP)


def error(draw: Draw) -> Case:
    """Fail, or find differences."""
    return failing(draw, option(draw), PREP, WRONG)
