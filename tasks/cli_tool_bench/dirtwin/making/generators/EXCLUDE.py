"""Leave entries out."""

from __future__ import annotations

from _twins import VIEWS, compared, failing, odd, patterns
from fuzz import Case, Draw

PREP = ""
WRONG: tuple[str, ...] = ("-x -c", "-a --exclude -c", "-x --csv", "--exclude -w -a", "-x -d")


def option(draw: Draw) -> str:
    """Return the options of a case."""
    view = draw.choice(VIEWS)
    return draw.choice(
        (
            f"-x {patterns(draw)} {view}",
            f"{view} --exclude {patterns(draw)}",
            f"--exclude={patterns(draw)} {view}",
            f"-x {patterns(draw)} -w {view}",
            f"-x {patterns(draw)} -f {patterns(draw)} {view}",
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
