"""Which texts count as numbers."""

from _lists import decimals, given, mixed, plain, span, wrong
from fuzz import Case, quote

FLAG = ("-t", "--number-type", "--number_type")
KINDS = ("int", "float", "real", "f", "i", "r")


def common(draw):
    """Return a case with decimals, signs and exponents."""
    options = f"{draw.choice(FLAG)} {draw.choice(KINDS)}"
    options += draw.choice(("", "", "", " -r", " --noexp", " -s", f" -f {' '.join(span(draw, True))}"))
    return given(draw, options, decimals(draw), draw.choice(("input", "input", "pipe", "output")))


def boundary(draw):
    """Return a case with numbers of unusual form."""
    word = draw.word()
    odd = [
        *(
            "1.2.3",
            "1.2.10",
            "1..5",
            "5.",
            ".5",
            "-.5",
            "+.5",
            "--5",
            "+-5",
            "1e",
            "1e+",
            "1e5.5",
            "1E5",
            "0x1F",
            "1e309",
            "-1e309",
            "nan",
            "inf",
            "-0",
            "½",
            "1½",
            "²",
            "1_000",
            "1,5",
            "1,000",
        ),
        f"{word}-1",
        f"{word}--1",
        f"{word}1.50",
        f"{word}1.5",
    ]
    entries = draw.sample(odd, draw.integer(5, 14)) if draw.chance(0.7) else mixed(draw)
    return given(
        draw,
        f"{draw.choice(FLAG)}{draw.choice((' ', ' ', '='))}{draw.choice(KINDS)}".replace("-t=", "-t "),
        entries,
        "input",
    )


def error(draw):
    """Return a case with an unknown kind."""
    if draw.chance(0.25):
        return wrong(draw, f"{draw.choice(FLAG)} {draw.choice(KINDS)}")
    bad = draw.choice(("integer", "Float", "INT", "", "fl", "rea", "ii", "int,float", draw.word()))
    return Case(f"{draw.tool} {draw.choice(FLAG)} {quote(bad)} {' '.join(quote(e) for e in plain(draw, 3))}")
