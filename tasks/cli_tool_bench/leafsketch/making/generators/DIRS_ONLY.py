"""Draw folders only."""

from __future__ import annotations

from _forest import drawn, dressed, edge, failing
from fuzz import Case, Draw


def option(draw: Draw) -> str:
    """Return the option in one of its forms, with others."""
    return draw.choice(("-d", "--dirs-only", "-ad", "-d -a")) + dressed(
        draw, 2, ("--dirs-first", "--files-first")
    )


def common(draw: Draw) -> Case:
    """Draw an ordinary folder."""
    return drawn(draw, option(draw), draw.integer(1, 4), 0.15)


def boundary(draw: Draw) -> Case:
    """Draw an odd folder."""
    return edge(draw, option(draw))


def error(draw: Draw) -> Case:
    """Fail."""
    return failing(draw, option(draw))
