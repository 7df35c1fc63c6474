"""Cases of the two options for seeds."""

from __future__ import annotations

from _input import reading, text
from fuzz import Case, Draw, quote

VIEWS = ("", "", "", " -x", " -u", " -X")


def forms(draw: Draw, short: str, long: str, value: object) -> str:
    """Return an option with its value in one of four forms, with another option at times."""
    word = quote(value)
    return draw.choice(
        (f"{short} {word}", f"{short}={word}", f"{long} {word}", f"{long}={word}")
    ) + draw.choice(VIEWS)


def chained(draw: Draw, view: str, seed: str) -> Case:
    """Return a case that goes on from the checksum of another file; `view` is how that one is printed."""
    files = {"one.txt": text(draw), "two.txt": text(draw)}
    return Case(f'{draw.tool} {seed} "$({draw.tool} {view} one.txt)"{draw.choice(VIEWS)} two.txt', files)


def seeded(draw: Draw, options: str) -> Case:
    """Return a case that reads an ordinary file."""
    return reading(draw, options)
