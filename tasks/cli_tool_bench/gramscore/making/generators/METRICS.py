"""Metrics."""

from _segments import call, corpus, odd, wrong
from fuzz import Case, Draw


def option(draw: Draw) -> str:
    """Return the option with one metric or several, at times with an option of one of them."""
    metrics = draw.choice(
        ("chrf", "chrf", "ter", "ter", "bleu chrf", "ter bleu", "bleu chrf ter", "chrf ter")
    )
    more = (
        draw.choice(("", "", " --chrf-beta 3", " --chrf-whitespace", " --chrf-beta 1 --chrf-order 4"))
        if "chrf" in metrics
        else ""
    )
    return draw.choice(("-m ", "--metrics ")) + metrics + more


def common(draw: Draw) -> Case:
    """Return a usual score with the option."""
    return call(draw, option(draw), corpus(draw), more=draw.choice((0, 0, 0, 1)))


def boundary(draw: Draw) -> Case:
    """Return a score of odd segments with the option."""
    return odd(draw, option(draw))


def error(draw: Draw) -> Case:
    """Return a call that must fail, beside the option."""
    return wrong(draw, option(draw))
