"""The reversed order."""

from _lists import call, odd, texts, wrong
from fuzz import Case, Draw


def option(draw: Draw) -> str:
    """Return the option, at times with another one."""
    return draw.choice(("-r", "--reverse")) + draw.choice(("", "", "", " -t float", " -s", " -p", " -r"))


def common(draw: Draw) -> Case:
    """Return a usual sort with the option."""
    return call(draw, option(draw), texts(draw))


def boundary(draw: Draw) -> Case:
    """Return a sort of odd texts with the option."""
    return call(draw, option(draw), odd(draw))


def error(draw: Draw) -> Case:
    """Return a call with a wrong option beside this one."""
    return wrong(draw, option(draw))
