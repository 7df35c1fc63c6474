"""Texts without options."""

from _lists import call, odd, texts, wrong
from fuzz import Case, Draw


def common(draw: Draw) -> Case:
    """Return a sort of any texts."""
    return call(draw, "", texts(draw))


def boundary(draw: Draw) -> Case:
    """Return a sort of odd texts."""
    return call(draw, "", odd(draw))


def error(draw: Draw) -> Case:
    """Return a call with a wrong option."""
    return wrong(draw, "")
