"""Indentation of empty lines."""

from _sheets import Sheet, call, odd, wrong
from fuzz import Case, Draw

OPTIONS = (
    "--indent-empty-lines",
    "--indent-empty",
    "--indent-e",
)
OTHERS = ("", "", "", "", " -s 2", " -n", " -b expand", " -t")


def common(draw: Draw) -> Case:
    """Return a usual style sheet, at times with another option."""
    return call(draw, draw.choice(OPTIONS) + draw.choice(OTHERS), Sheet(draw, "wild").text(2, 5))


def boundary(draw: Draw) -> Case:
    """Return an odd style sheet."""
    return odd(draw, draw.choice(OPTIONS))


def error(draw: Draw) -> Case:
    """Return a call that must fail."""
    return wrong(draw, draw.choice(OPTIONS))
