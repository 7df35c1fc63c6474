"""Draw a folder."""

from __future__ import annotations

from _forest import drawn, dressed, edge, failing
from fuzz import Case, Draw


def common(draw: Draw) -> Case:
    """Draw an ordinary folder."""
    return drawn(draw, dressed(draw, 3), draw.integer(1, 4)) if draw.chance(0.6) else drawn(draw, "")


def boundary(draw: Draw) -> Case:
    """Draw an odd folder."""
    return edge(draw, dressed(draw))


def error(draw: Draw) -> Case:
    """Fail."""
    return failing(draw, dressed(draw, 1))
