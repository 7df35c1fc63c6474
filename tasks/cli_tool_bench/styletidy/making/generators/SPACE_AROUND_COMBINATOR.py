"""Spaces around combinators."""

from _sheets import Sheet, call, odd, wrong
from fuzz import Case, Draw

OPTIONS = (
    "--space-around-combinator",
    "--space-around",
    "--space",
)
OTHERS = ("", "", "", "", " -s 2", " -n", " -b expand", " -t")


def common(draw: Draw) -> Case:
    """Return a usual style sheet, at times with another option."""
    return call(
        draw,
        draw.choice(OPTIONS) + draw.choice(OTHERS),
        Sheet(draw).text(1, 4)
        + draw.choice(("a>b", "a > b~c", ".x+.y   >  z", "a ~b+ c", "> li>a", "a>b,c >d"))
        + draw.choice(("{top:0}", " {left : 1px;}", "{>b{c:d}}")),
    )


def boundary(draw: Draw) -> Case:
    """Return an odd style sheet."""
    return odd(draw, draw.choice(OPTIONS))


def error(draw: Draw) -> Case:
    """Return a call that must fail."""
    return wrong(draw, draw.choice(OPTIONS))
