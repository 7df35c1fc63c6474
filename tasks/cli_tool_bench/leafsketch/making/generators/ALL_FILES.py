"""Draw hidden entries, too."""

from __future__ import annotations

from _forest import drawn, dressed, edge, failing
from fuzz import Case, Draw


def option(draw: Draw) -> str:
    """Return the option in one of its forms, with others."""
    return draw.choice(("-a", "--all-files")) + dressed(draw, 2, ())


def common(draw: Draw) -> Case:
    """Draw an ordinary folder."""
    return drawn(draw, option(draw), draw.integer(1, 4), 0.45)


def boundary(draw: Draw) -> Case:
    """Draw an odd folder."""
    return edge(draw, option(draw))


def error(draw: Draw) -> Case:
    """Fail."""
    return failing(draw, option(draw))
