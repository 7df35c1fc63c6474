"""Compare some files only."""

from __future__ import annotations

from _twins import VIEWS, compared, failing, odd, patterns
from fuzz import Case, Draw

PREP = ""
WRONG: tuple[str, ...] = ("-f -c", "-a --filter -c", "-f --csv", "--filter -w -a", "-f -d")


def option(draw: Draw) -> str:
    """Return the options of a case."""
    view = draw.choice(VIEWS)
    return draw.choice(
        (
            f"-f {patterns(draw)} {view}",
            f"{view} --filter {patterns(draw)}",
            f"--filter={patterns(draw)} {view}",
            f"-f {patterns(draw)} -w {view}",
            f"-f {patterns(draw)} -x {patterns(draw)} {view}",
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
