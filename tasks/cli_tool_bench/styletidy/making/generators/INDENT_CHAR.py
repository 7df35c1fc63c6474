"""Characters for indentation."""

from _sheets import Sheet, call, odd, wrong
from fuzz import Case, Draw

OPTIONS = (
    "-c .",
    "-c _ -s 2",
    "--indent-char=-",
    "--indent-char '\t' -s 1",
    "-c x -s 3",
    "-c =+ -s 1",
)
OTHERS = ("", "", "", "", " -s 2", " -n", " -b expand", " -t")


def common(draw: Draw) -> Case:
    """Return a usual style sheet, at times with another option."""
    return call(draw, draw.choice(OPTIONS) + draw.choice(OTHERS), Sheet(draw).text())


def boundary(draw: Draw) -> Case:
    """Return an odd style sheet, at times with an odd value."""
    return odd(
        draw, draw.choice((*OPTIONS, "-c ''", "-c '日' -s 2", "-c '\\t' -s 2", "-c ' ' -s 3", "-c ab"))
    )


def error(draw: Draw) -> Case:
    """Return a call that must fail."""
    return wrong(draw, draw.choice(OPTIONS))
