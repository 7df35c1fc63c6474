"""Draw some levels only."""

from __future__ import annotations

from _forest import drawn, dressed, edge, failing
from fuzz import Case, Draw


def option(draw: Draw, depth: object) -> str:
    """Return the option in one of its forms, with others."""
    form = draw.choice(("-L {}", "-L {}", "--max-depth {}", "--max-depth={}", "-L{}"))
    return form.format(depth) + dressed(draw)


def common(draw: Draw) -> Case:
    """Draw one to four levels of a deep folder."""
    return drawn(draw, option(draw, draw.integer(1, 4)), 4)


def boundary(draw: Draw) -> Case:
    """Draw no level, or more than there are."""
    if draw.chance(0.4):
        return drawn(draw, option(draw, draw.choice((0, 1, 99, "007", "2.9", 1000000))), 4)
    return edge(draw, option(draw, draw.choice((0, 1, 2, 10, 99))))


def error(draw: Draw) -> Case:
    """Fail."""
    return failing(draw, option(draw, draw.integer(0, 3)))
