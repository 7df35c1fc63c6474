"""Numbers whose signs are text."""

from _lists import call, odd, signed, texts, wrong
from fuzz import Case, Draw


def option(draw: Draw) -> str:
    """Return the option, before or after its contrary, or with a type."""
    return draw.choice(
        (
            "--nosign",
            "-s --nosign",
            "--nosign --sign",
            "--nosign -t real",
            "-t float --nosign",
            "--sign --nosign -r",
        )
    )


def common(draw: Draw) -> Case:
    """Return a usual sort with the option."""
    return call(draw, option(draw), texts(draw, signed, 5))


def boundary(draw: Draw) -> Case:
    """Return a sort of odd texts with the option."""
    return call(draw, option(draw), odd(draw))


def error(draw: Draw) -> Case:
    """Return a call with a wrong option beside this one."""
    return wrong(draw, option(draw))
