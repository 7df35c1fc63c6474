"""Put empty lines between queries."""

from __future__ import annotations

from _sql import failing, laid, rare, script
from fuzz import Case, Draw

WRONG: tuple[str, ...] = (
    "--lines-between-queries",
    "--lines-between-queries x",
    "--lines-between-queries 1.5",
    "--lines-between-querie 2 -z",
    "-L 2",
    "--lines-between-queries=two",
)


def option(draw: Draw) -> str:
    """Return the option in one of its forms, with others at times."""
    return draw.choice(
        (
            (
                f"--lines-between-queries {draw.integer(1, 5)}",
                f"--lines-between-queries={draw.integer(2, 6)}",
                f"--lines-between-queries {draw.integer(2, 4)}",
                "--lines-between-queries 2 -u",
                "--lines-between-queries 3 -t",
            )
        )
    )


def common(draw: Draw) -> Case:
    """Lay out ordinary statements."""
    return laid(draw, option(draw), script(draw, 2, 4))


def boundary(draw: Draw) -> Case:
    """Lay out odd texts, or use rare values."""
    if draw.chance(0.6):
        return laid(draw, option(draw), rare(draw))
    return laid(
        draw,
        draw.choice(
            (
                (
                    "--lines-between-queries 0",
                    "--lines-between-queries 30",
                    "--lines-between-queries=1",
                    "--lines-between-queries 2 --lines-between-queries 4",
                )
            )
        ),
        script(draw, 1, 3),
    )


def error(draw: Draw) -> Case:
    """Fail."""
    return failing(draw, option(draw), WRONG)
