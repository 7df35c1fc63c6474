"""Indentation with tabs."""

from _sheets import Sheet, call, odd, wrong
from fuzz import Case, Draw

OPTIONS = (
    "-t",
    "--indent-with-tabs",
    "--indent-w",
    "-t -s 2",
    "-s 8 -t",
)
OTHERS = ("", "", "", "", " --indent-empty-lines", " -n", " -b expand", " -t -n")


def common(draw: Draw) -> Case:
    """Return a usual style sheet, at times with another option."""
    return call(draw, draw.choice(OPTIONS) + draw.choice(OTHERS), Sheet(draw).text())


def boundary(draw: Draw) -> Case:
    """Return an odd style sheet, at times with an odd value."""
    return odd(draw, draw.choice((*OPTIONS, "-t -s 1", "-t -c x", "-t --indent-empty-lines")))


def error(draw: Draw) -> Case:
    """Return a call that must fail."""
    return wrong(draw, draw.choice(OPTIONS))
