"""Sizes of indentation."""

from _sheets import Sheet, call, odd, wrong
from fuzz import Case, Draw

OPTIONS = (
    "-s 2",
    "-s2",
    "-s 8",
    "--indent-size 3",
    "--indent-size=1",
    "--indent-s 5",
)
OTHERS = ("", "", "", "", " --indent-empty-lines", " -n", " -b expand", " -t")


def common(draw: Draw) -> Case:
    """Return a usual style sheet, at times with another option."""
    return call(draw, draw.choice(OPTIONS) + draw.choice(OTHERS), Sheet(draw).text())


def boundary(draw: Draw) -> Case:
    """Return an odd style sheet, at times with an odd value."""
    return odd(draw, draw.choice((*OPTIONS, "-s 0", "-s 40", "-s -2", "-s 02", "-s +3")))


def error(draw: Draw) -> Case:
    """Return a call that must fail."""
    return wrong(draw, draw.choice(OPTIONS))
