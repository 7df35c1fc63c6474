"""Tokenizers."""

from _segments import call, chinese, corpus, latin, odd, segment, wrong
from fuzz import Case, Draw


def option(draw: Draw) -> str:
    """Return the option with a tokenizer."""
    return draw.choice(("-tok ", "--tokenize ", "--tokenize=")) + draw.choice(
        ("none", "13a", "intl", "intl", "zh", "zh", "char")
    )


def common(draw: Draw) -> Case:
    """Return a usual score with the option."""
    return call(
        draw,
        option(draw),
        corpus(draw, draw.choice((segment, latin, chinese)), 2, 6),
        more=draw.choice((0, 0, 1)),
    )


def boundary(draw: Draw) -> Case:
    """Return a score of odd segments with the option."""
    return odd(draw, option(draw))


def error(draw: Draw) -> Case:
    """Return a call that must fail, beside the option."""
    return wrong(draw, option(draw))
