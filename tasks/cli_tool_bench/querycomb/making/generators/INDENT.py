"""Indent by a number of blanks."""

from __future__ import annotations

from _sql import failing, laid, rare, script
from fuzz import Case, Draw

WRONG: tuple[str, ...] = (
    "-i -1",
    "-i x",
    "-i",
    "--indent",
    "-i 2.5",
    "-i 4 -t",
    "-i --",
    "-i -9",
)


def option(draw: Draw) -> str:
    """Return the option in one of its forms, with others at times."""
    return draw.choice(
        (
            (
                f"-i {draw.integer(1, 9)}",
                f"--indent {draw.integer(1, 9)}",
                f"--indent={draw.integer(1, 9)}",
                f"-i{draw.integer(1, 9)}",
                "-i 4 -u",
            )
        )
    )


def common(draw: Draw) -> Case:
    """Lay out ordinary statements."""
    return laid(draw, option(draw), script(draw, 1, 2))


def boundary(draw: Draw) -> Case:
    """Lay out odd texts, or use rare values."""
    if draw.chance(0.6):
        return laid(draw, option(draw), rare(draw))
    return laid(
        draw,
        draw.choice((("-i 0", "-i 1", "-i 40", "--indent=0", "-i 007", "-i 3 -i 1"))),
        script(draw, 1, 3),
    )


def error(draw: Draw) -> Case:
    """Fail."""
    return failing(draw, option(draw), WRONG)
