"""Leave out the content of subfolders."""

from __future__ import annotations

from _twins import VIEWS, compared, failing, odd
from fuzz import Case, Draw

PREP = ""
WRONG: tuple[str, ...] = ("-s", "--skip", "--skip-subdir")


def option(draw: Draw) -> str:
    """Return the options of a case."""
    view = draw.choice(VIEWS)
    return draw.choice(
        (f"-S {view}", f"{view} --skip-subdirs", f"-S {view}", f"-S -w {view}", f"-S -c {view}", "-S")
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
