"""BLEU without options."""

from _segments import call, corpus, odd, wrong
from fuzz import Case, Draw


def common(draw: Draw) -> Case:
    """Return a score against one reference or several."""
    return call(draw, "", corpus(draw, low=2, high=8), more=draw.choice((0, 0, 1, 2)))


def boundary(draw: Draw) -> Case:
    """Return a score of odd segments."""
    return odd(draw, "")


def error(draw: Draw) -> Case:
    """Return a call that must fail."""
    return wrong(draw, "")
