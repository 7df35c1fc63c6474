"""Ignore the case of names."""

from __future__ import annotations

from _twins import VIEWS, compared, failing, odd, patterns
from fuzz import Case, Draw

PREP = ""
WRONG: tuple[str, ...] = ("-I", "--ignorecase", "--ignore-cases")


def option(draw: Draw) -> str:
    """Return the options of a case."""
    view = draw.choice(VIEWS)
    return draw.choice(
        (
            f"-i {view}",
            f"{view} --ignore-case",
            f"-i {view}",
            f"-i -c {view}",
            f"-i -w {view}",
            f"-i {view} -x {patterns(draw)}",
            "-i",
        )
    )


def common(draw: Draw) -> Case:
    """Compare ordinary folders."""
    return compared(draw, option(draw), PREP, draw.choice((0.4, 0.4, 0.6, 0)))


def boundary(draw: Draw) -> Case:
    """Compare odd folders."""
    return odd(draw, option(draw), PREP)


def error(draw: Draw) -> Case:
    """Fail, or find differences."""
    return failing(draw, option(draw), PREP, WRONG)
