"""Numbers with signs."""

from _lists import call, odd, signed, texts, wrong
from fuzz import Case, Draw


def option(draw: Draw) -> str:
    """Return the option, at times with another one."""
    return draw.choice(("-s", "--sign")) + draw.choice(
        ("", "", "", " -t float", " -r", " -t i", " --nosign", " -f -9 9")
    )


def common(draw: Draw) -> Case:
    """Return a usual sort with the option."""
    return call(draw, option(draw), texts(draw, signed, 5))


def boundary(draw: Draw) -> Case:
    """Return a sort of odd texts with the option."""
    return call(
        draw,
        option(draw),
        draw.choice(
            (
                odd(draw),
                ["a--1", "a+-2", "a-1", "a1", "a-", "a+1", "1-2", "1-10", "1+3"],
                [signed(draw) for _ in range(3)],
            )
        ),
    )


def error(draw: Draw) -> Case:
    """Return a call with a wrong option beside this one."""
    return wrong(draw, option(draw))
