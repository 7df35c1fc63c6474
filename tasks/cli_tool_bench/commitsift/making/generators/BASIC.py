"""Split messages with the defaults."""

from __future__ import annotations

from _messages import failing, log, odd, ordinary, reverting
from fuzz import Case, Draw


def common(draw: Draw) -> Case:
    """Split ordinary messages."""
    if draw.chance(0.15):
        return log(draw, [reverting(draw)], "")
    return ordinary(draw, "")


def boundary(draw: Draw) -> Case:
    """Split strange messages."""
    return odd(draw, "")


def error(draw: Draw) -> Case:
    """Fail."""
    return failing(draw, "")
