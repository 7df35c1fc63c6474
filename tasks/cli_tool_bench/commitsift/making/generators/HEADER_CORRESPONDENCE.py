"""Name the groups of a header."""

from __future__ import annotations

from _messages import failing, odd, ordinary
from fuzz import Case, Draw, quote


def option(draw: Draw, names: str) -> str:
    """Return the option in one of its forms."""
    form = draw.choice(("-c {}", "--header-correspondence {}", "--header-correspondence={}"))
    return form.format(quote(names))


def names(draw: Draw) -> str:
    """Return one to five names."""
    chosen = draw.words(draw.integer(1, 5))
    if draw.chance(0.3):
        chosen[-1] = draw.choice(("type", "größe", "two words", "x.y"))
    return draw.choice((",", ",", ", ", " , ")).join(chosen)


def common(draw: Draw) -> Case:
    """Name them differently."""
    pattern = draw.choice((r"^(\w+)(.*)$", r"(\w+) (\w+)", "^(.)(.)(.)(.)"))
    form = f" -p {quote(pattern)}" if draw.chance(0.3) else ""
    return ordinary(draw, option(draw, names(draw)) + form)


def boundary(draw: Draw) -> Case:
    """Use names that are empty, repeated or those of other keys."""
    rare = (
        "a,a",
        "a,b,a",
        ",",
        ",,x",
        "header",
        "body,notes",
        "merge,x",
        "type,subject",
        "mentions,revert,header",
        " ",
        "__x",
        "A,a",
    )
    return odd(draw, option(draw, draw.choice(rare)))


def error(draw: Draw) -> Case:
    """Fail."""
    chosen = names(draw)
    return failing(
        draw,
        option(draw, chosen),
        [f"{option(draw, chosen)} {option(draw, draw.word())}", f"-p '(' {option(draw, chosen)}"],
    )
