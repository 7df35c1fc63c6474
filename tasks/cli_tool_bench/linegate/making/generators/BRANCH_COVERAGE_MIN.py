"""Thresholds of --branch-coverage-min."""

from _reports import odd, usual, wrong
from fuzz import Case, Draw

OPTION = "--branch-coverage-min"


def common(draw: Draw) -> Case:
    """Return a check with a threshold near the measure."""
    return usual(draw, OPTION)


def boundary(draw: Draw) -> Case:
    """Return a check of an odd report or with an odd threshold."""
    return odd(draw, OPTION)


def error(draw: Draw) -> Case:
    """Return a check that must fail."""
    return wrong(draw, OPTION)
