"""Report folders, too."""

from __future__ import annotations

from _twins import VIEWS, compared, failing, odd
from fuzz import Case, Draw

PREP = ""
WRONG: tuple[str, ...] = ("-W", "--whole", "--whole-reports")


def option(draw: Draw) -> str:
    """Return the options of a case."""
    view = draw.choice(VIEWS)
    return draw.choice(
        (
            f"-w {view}",
            f"{view} --whole-report",
            f"-w {view}",
            f"-w {view} -c --reason",
            "-w",
            f"-w {view} -S",
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
