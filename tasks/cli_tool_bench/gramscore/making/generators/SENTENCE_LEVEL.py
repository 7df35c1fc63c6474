"""Scores of each segment."""

from _segments import call, corpus, odd, wrong
from fuzz import Case, Draw


def option(draw: Draw) -> str:
    """Return the option, at times with a metric or a smoothing method."""
    more = draw.choice(
        ("", "", "", " -m chrf", " -m ter", " -s floor", " -s none", " -lc", " -w 2", " -tok none")
    )
    return draw.choice(("-sl", "--sentence-level")) + more


def common(draw: Draw) -> Case:
    """Return a usual score with the option."""
    return call(draw, option(draw), corpus(draw), more=draw.choice((0, 0, 1)))


def boundary(draw: Draw) -> Case:
    """Return a score of odd segments with the option."""
    return odd(draw, option(draw))


def error(draw: Draw) -> Case:
    """Return a call that must fail, beside the option."""
    return wrong(draw, draw.choice(("-sl", "--sentence-level")))
