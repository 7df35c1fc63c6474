"""Texts that are paths."""

from _lists import call, odd, path, texts, wrong
from fuzz import Case, Draw


def option(draw: Draw) -> str:
    """Return the option, at times with another one."""
    return draw.choice(("-p", "--paths")) + draw.choice(("", "", "", " -r", " -t float", " -s", " -t r"))


def common(draw: Draw) -> Case:
    """Return a usual sort with the option."""
    return call(draw, option(draw), texts(draw, path, 5))


def boundary(draw: Draw) -> Case:
    """Return a sort of odd texts with the option."""
    return call(
        draw,
        option(draw),
        draw.choice(
            (odd(draw), [path(draw) + "/" for _ in range(6)], ["/", "//a", "/a", "a//b", "a/./b", "a"])
        ),
    )


def error(draw: Draw) -> Case:
    """Return a call with a wrong option beside this one."""
    return wrong(draw, option(draw))
