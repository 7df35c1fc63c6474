"""Numbers that are excluded."""

from _lists import EVEN, call, decimal, exponent, name, odd, signed, texts, wrong
from fuzz import Case, Draw


def option(draw: Draw, found: list[str]) -> str:
    """Return up to three numbers, most of them in the texts."""
    numbers = (
        [
            "".join(sign for sign in text if sign in "0123456789.-").strip(".-")
            for text in draw.sample(found, 2)
        ]
        if found
        else []
    )
    chosen = [number for number in numbers if number.replace(".", "", 1).isdigit() and number.isascii()]
    chosen += [str(draw.choice((-3, 1, 2, 10, 1000, 0.5, draw.integer(0, 20))))]
    text = " ".join(f"{draw.choice(('-e ', '--exclude ', '--exclude='))}{number}" for number in chosen)
    return text + draw.choice(("", "", " -t float", " -s", " -t real", " -r", " -f 0 20", " -t f --noexp"))


def case(draw: Draw, found: list[str]) -> Case:
    """Return a call that excludes numbers from texts."""
    return call(draw, option(draw, found), found)


def common(draw: Draw) -> Case:
    """Return a usual sort with the option."""
    return case(draw, texts(draw, draw.choice((decimal, exponent, signed, name)), 6))


def boundary(draw: Draw) -> Case:
    """Return a sort of odd texts with the option."""
    return case(draw, odd(draw))


def error(draw: Draw) -> Case:
    """Return a call with a wrong option beside this one."""
    return wrong(draw, option(draw, list(EVEN)))
