"""Write a folder as JSON."""

from __future__ import annotations

from _forest import drawn, dressed, edge, failing
from fuzz import Case, Draw


def option(draw: Draw) -> str:
    """Return the option in one of its forms, with others."""
    return draw.choice(("-J", "--json")) + dressed(draw, 2, ())


def common(draw: Draw) -> Case:
    """Draw an ordinary folder."""
    return drawn(draw, option(draw), draw.integer(1, 4), 0.1)


def boundary(draw: Draw) -> Case:
    """Draw an odd folder."""
    return edge(draw, option(draw))


def error(draw: Draw) -> Case:
    """Fail."""
    return failing(draw, option(draw))
