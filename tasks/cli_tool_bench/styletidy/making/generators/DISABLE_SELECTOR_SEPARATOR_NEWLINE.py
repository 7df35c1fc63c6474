"""Selectors on one line."""

from _sheets import Sheet, call, odd, wrong
from fuzz import Case, Draw

OPTIONS = (
    "--disable-selector-separator-newline",
    "--disable-selector",
    "--disable-s",
)
OTHERS = ("", "", "", "", " -s 2", " -n", " -b expand", " -t")


def common(draw: Draw) -> Case:
    """Return a usual style sheet, at times with another option."""
    return call(
        draw,
        draw.choice(OPTIONS) + draw.choice(OTHERS),
        Sheet(draw).text(2, 4)
        + ", ".join(draw.sample(("a", ".b", "c > d", "e:hover", "f,g"), 3))
        + draw.choice(("{top:0}", " { }")),
    )


def boundary(draw: Draw) -> Case:
    """Return an odd style sheet."""
    return odd(draw, draw.choice(OPTIONS))


def error(draw: Draw) -> Case:
    """Return a call that must fail."""
    return wrong(draw, draw.choice(OPTIONS))
