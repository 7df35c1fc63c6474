"""Decimals without exponents."""

from _lists import decimals, given, mixed, span, wrong
from fuzz import Case


def exponents(draw):
    """Return entries most of which have an exponent."""
    word = draw.word()
    return [
        f"{draw.choice((word, word, ''))}{draw.choice(('', ' ', '-', '='))}{draw.choice((str(draw.integer(1, 9)), f'{draw.number(0, 9):.1f}'))}{draw.choice(('e', 'E'))}{draw.choice(('', '', '-', '+'))}{draw.integer(0, 12)}{draw.choice(('', '', 'x'))}"
        for _ in range(draw.integer(6, 14))
    ]


def common(draw):
    """Return a case with exponents that count as text."""
    kind = draw.choice((exponents, exponents, decimals))
    extra = draw.choice(
        (
            " -t float",
            " -t float",
            " -t real",
            " -t f -r",
            " -t r",
            " -t float -s",
            " -t int",
            f" -t f -f {' '.join(span(draw, True))}",
            f" -t f -e {draw.integer(1, 9)}",
        )
    )
    return given(draw, "--noexp" + extra, kind(draw), draw.choice(("input", "input", "pipe", "output")))


def boundary(draw):
    """Return a case with exponents of unusual form."""
    odd = (
        "1e5",
        "1e4",
        "1e05",
        "1e",
        "1e+",
        "1e-",
        "e5",
        "1ee5",
        "1e5e5",
        "1.e5",
        ".1e5",
        "1e5.5",
        "1E5",
        "1e309",
        "1e-309",
        "12e3",
        "2e3",
        "1e１",
        "1é5",
        "1 e5",
        "-1e5",
        "-1e10",
    )
    entries = draw.sample(odd, draw.integer(5, 14)) if draw.chance(0.8) else mixed(draw)
    return given(draw, "--noexp " + draw.choice(("-t float", "-t r", "-t f", "")), entries, "input")


def error(draw):
    """Return a case of wrong usage beside the flag."""
    if draw.chance(0.3):
        return Case(f"{draw.tool} --noexp={draw.integer(0, 9)} {draw.word()}{draw.integer()} {draw.word()}")
    return wrong(draw, "--noexp -t float")
