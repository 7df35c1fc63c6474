"""Orders of character n-grams."""

from _segments import call, corpus, odd, wrong
from fuzz import Case, Draw


def option(draw: Draw) -> str:
    """Return the option with an order, most often with the metric that it belongs to."""
    order = draw.choice((1, 2, 3, 4, 5, 7, 8, 12))
    name = draw.choice((f"--chrf-order {order}", f"--chrf-order={order}"))
    more = draw.choice(
        ("", "", "", " --chrf-whitespace", " --chrf-beta 1", " --chrf-beta 3", " -sl", " -w 4")
    )
    return f"-m chrf {name}{more}"


def common(draw: Draw) -> Case:
    """Return a usual score with the option."""
    return call(draw, option(draw), corpus(draw))


def boundary(draw: Draw) -> Case:
    """Return a score of odd segments with the option."""
    return odd(
        draw,
        draw.choice(
            (
                option(draw),
                "-m chrf --chrf-order 0",
                "-m chrf --chrf-order 100",
                "-m chrf --chrf-order -1",
                "--chrf-order 2",
            )
        ),
    )


def error(draw: Draw) -> Case:
    """Return a call that must fail, beside the option."""
    return wrong(draw, draw.choice(("-m chrf --chrf-order 3", "--chrf-order x", "-m chrf --chrf-order 2.5")))
