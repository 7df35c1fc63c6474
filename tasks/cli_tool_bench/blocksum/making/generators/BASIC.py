"""Print a checksum without options, or with one that changes nothing."""

from __future__ import annotations

from _input import failing, odd, reading
from fuzz import Case, Draw


def option(draw: Draw) -> str:
    """Return the options of a case."""
    return draw.choice(("", "", "", "", "-F=", "--format="))


def common(draw: Draw) -> Case:
    """Read an ordinary file."""
    return reading(draw, option(draw))


def boundary(draw: Draw) -> Case:
    """Read an odd file."""
    return odd(draw, option(draw))


def error(draw: Draw) -> Case:
    """Fail."""
    return failing(draw, option(draw))
