"""Places of opening braces."""

from _sheets import Sheet, call, odd, wrong
from fuzz import Case, Draw

OPTIONS = (
    "-b expand",
    "-b expand",
    "-bexpand",
    "--brace-style=expand",
    "--brace-style expand",
    "-b collapse",
)
OTHERS = ("", "", "", "", " -s 2", " -n", " --indent-empty-lines", " -t")


def common(draw: Draw) -> Case:
    """Return a usual style sheet, at times with another option."""
    return call(draw, draw.choice(OPTIONS) + draw.choice(OTHERS), Sheet(draw).text())


def boundary(draw: Draw) -> Case:
    """Return an odd style sheet, at times with an odd value."""
    return odd(
        draw,
        draw.choice(
            (
                *OPTIONS,
                "-b none",
                "-b preserve-inline",
                "-b end-expand",
                "-b expand,collapse",
                "-b collapse -b expand",
            )
        ),
    )


def error(draw: Draw) -> Case:
    """Return a call that must fail."""
    return wrong(draw, draw.choice(OPTIONS))
