"""Comparisons without a key."""

from _tables import call, odd_call, pair, wrong
from fuzz import Case, Draw


def common(draw: Draw) -> Case:
    """Return a comparison of two tables, row by row."""
    return call(draw, pair(draw), "")


def boundary(draw: Draw) -> Case:
    """Return a comparison of odd tables."""
    return odd_call(draw, "", key=False)


def error(draw: Draw) -> Case:
    """Return a call that must fail."""
    return wrong(draw, "")
