"""Kinds of numbers."""

from _lists import call, decimal, exponent, odd, signed, texts, version, wrong
from fuzz import Case, Draw


def option(draw: Draw) -> str:
    """Return the option with one of its values."""
    value = draw.choice(("int", "float", "float", "real", "real", "f", "i", "r"))
    name = draw.choice(("-t ", "-t", "--number-type ", "--number-type=", "--number_type "))
    return f"{name}{value}" + draw.choice(("", "", "", " -r", " --noexp", " -s"))


def common(draw: Draw) -> Case:
    """Return a usual sort with the option."""
    return call(draw, option(draw), texts(draw, draw.choice((decimal, exponent, signed, version))))


def boundary(draw: Draw) -> Case:
    """Return a sort of odd texts with the option."""
    return call(draw, option(draw), odd(draw))


def error(draw: Draw) -> Case:
    """Return a call with a wrong option beside this one."""
    return wrong(draw, option(draw))
