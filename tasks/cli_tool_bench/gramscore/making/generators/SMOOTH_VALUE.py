"""Values of smoothing."""

from _segments import call, corpus, odd, wrong
from fuzz import Case, Draw


def option(draw: Draw) -> str:
    """Return the option with a value, most often with a method that uses it."""
    value = draw.choice((0.01, 0.5, 1, 2, 3.5, draw.number(0, 2, 2)))
    method = draw.choice(("-s floor", "-s floor", "-s add-k", "-s add-k", "-s exp", ""))
    return f"{method} {draw.choice(('-sv', '--smooth-value'))} {value}" + draw.choice(
        ("", "", " -w 4", " -sl")
    )


def common(draw: Draw) -> Case:
    """Return a usual score with the option."""
    return call(draw, option(draw), corpus(draw, high=3))


def boundary(draw: Draw) -> Case:
    """Return a score of odd segments with the option."""
    return odd(
        draw,
        draw.choice(
            (
                option(draw),
                "-s floor -sv 0",
                "-s add-k -sv 1e3",
                "-s floor -sv nan",
                "-s floor --smooth-value=-1",
            )
        ),
    )


def error(draw: Draw) -> Case:
    """Return a call that must fail, beside the option."""
    return wrong(draw, draw.choice(("-s floor -sv 0.2", "-sv many", "-sv 1")))
