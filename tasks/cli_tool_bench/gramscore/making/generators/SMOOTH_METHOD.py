"""Methods of smoothing."""

from _segments import call, corpus, odd, wrong
from fuzz import Case, Draw


def option(draw: Draw) -> str:
    """Return the option with a method."""
    method = draw.choice(("none", "floor", "floor", "add-k", "add-k", "exp"))
    return (
        draw.choice(("-s ", "--smooth-method "))
        + method
        + draw.choice(("", "", "", " -w 3", " -sl", " -sv 0.4"))
    )


def common(draw: Draw) -> Case:
    """Return a usual score with the option."""
    return call(draw, option(draw), corpus(draw, high=3))


def boundary(draw: Draw) -> Case:
    """Return a score of odd segments with the option."""
    return odd(draw, option(draw))


def error(draw: Draw) -> Case:
    """Return a call that must fail, beside the option."""
    return wrong(draw, draw.choice(("-s floor", "-s none", "-s add-k")))
