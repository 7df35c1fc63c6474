"""Ranges that are dropped."""

from _lists import call, decimal, exponent, name, odd, signed, texts, wrong
from fuzz import Case, Draw


def option(draw: Draw) -> str:
    """Return one range or two, at times with another option."""
    ranges = []
    for _ in range(draw.choice((1, 1, 1, 2))):
        low = draw.choice((draw.integer(0, 12), draw.number(-3, 9, 1), draw.integer(-20, 0), 0, 1))
        ranges.append(
            f"{draw.choice(('-F', '--reverse-filter'))} {low} {round(low + draw.choice((1, 3, 6, 12.5, 25)), 2)}"
        )
    return " ".join(ranges) + draw.choice(
        ("", "", " -t float", " -s", " -t real", " -r", " -f 0 30", " -t f --noexp")
    )


def common(draw: Draw) -> Case:
    """Return a usual sort with the option."""
    return call(draw, option(draw), texts(draw, draw.choice((decimal, exponent, signed, name)), 6))


def boundary(draw: Draw) -> Case:
    """Return a sort of odd texts with the option."""
    return call(draw, option(draw), odd(draw))


def error(draw: Draw) -> Case:
    """Return a call with a wrong option beside this one."""
    return wrong(draw, option(draw))
