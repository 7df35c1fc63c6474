"""Numbers without exponents."""

from _lists import call, exponent, odd, texts, wrong
from fuzz import Case, Draw


def option(draw: Draw) -> str:
    """Return the option, most often with a type that has exponents."""
    return "--noexp" + draw.choice(
        ("", " -t float", " -t float", " -t real", " -t f -r", " --number-type=r", " -t float -f 1 20")
    )


def common(draw: Draw) -> Case:
    """Return a usual sort with the option."""
    return call(draw, option(draw), texts(draw, exponent, 5))


def boundary(draw: Draw) -> Case:
    """Return a sort of odd texts with the option."""
    return call(draw, option(draw), odd(draw))


def error(draw: Draw) -> Case:
    """Return a call with a wrong option beside this one."""
    return wrong(draw, option(draw))
