"""Report as CSV."""

from __future__ import annotations

from _twins import VIEWS, compared, failing, odd
from fuzz import Case, Draw

PREP = "find . -mindepth 1 -exec touch -d '2021-03-04 05:06:07 UTC' {} +; find . -name '*[ae].*' -path '*[bt2w]/*' -exec touch -d @1600000000 {} +"
WRONG: tuple[str, ...] = ("--csv -Z", "--csvs", "--tsv")


def option(draw: Draw) -> str:
    """Return the options of a case."""
    view = draw.choice(VIEWS)
    return draw.choice(
        (
            f"--csv {view}",
            f"{view} --csv",
            f"--csv {view} -c",
            f"--csv -w {view}",
            "--csv",
            f"--csv {view} -D",
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
