"""Style sheets without options of this class."""

from _sheets import Sheet, call, odd, wrong
from fuzz import Case, Draw

OPTIONS = ("",)
OTHERS = ("", "", "", "", "", "", "", " -n")


def common(draw: Draw) -> Case:
    """Return a usual style sheet, at times with another option."""
    return call(draw, draw.choice(OPTIONS) + draw.choice(OTHERS), Sheet(draw).text())


def boundary(draw: Draw) -> Case:
    """Return an odd style sheet."""
    return odd(draw, draw.choice(OPTIONS))


def error(draw: Draw) -> Case:
    """Return a call that must fail."""
    return wrong(draw, draw.choice(OPTIONS))
