"""Scores that ignore case."""

from _segments import call, corpus, odd, wrong
from fuzz import Case, Draw


def changed(draw: Draw) -> tuple[list[str], list[str]]:
    """Return segments, of which many words differ in case."""
    references, translations = corpus(draw, low=2)
    return references, [
        draw.choice((text, text.upper(), text.lower(), text.title(), text.swapcase()))
        for text in translations
    ]


def option(draw: Draw) -> str:
    """Return the option, at times with another one."""
    return "-lc" + draw.choice(
        ("", "", "", " -tok intl", " -s floor", " -m bleu ter", " -sl", " -tok char", " -w 3")
    )


def common(draw: Draw) -> Case:
    """Return a usual score with the option."""
    return call(draw, option(draw), changed(draw), more=draw.choice((0, 0, 1)))


def boundary(draw: Draw) -> Case:
    """Return a score of odd segments with the option."""
    return odd(draw, option(draw))


def error(draw: Draw) -> Case:
    """Return a call that must fail, beside the option."""
    return wrong(draw, "-lc")
