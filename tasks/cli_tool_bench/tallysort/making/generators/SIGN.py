"""Signs as parts of numbers."""

from _lists import decimals, given, mixed, span, wrong
from fuzz import Case, quote

FLAG = ("-s", "--sign")


def signed(draw):
    """Return entries with signs before their integers."""
    word = draw.word()
    return [
        f"{draw.choice((word, word, ''))}{draw.choice(('', ' ', '=', '_'))}{draw.choice(('-', '+', '-', ''))}{draw.integer(0, 25)}{draw.choice(('', '', '-3', '+12', ' C'))}"
        for _ in range(draw.integer(6, 14))
    ]


def common(draw):
    """Return a case with signed numbers."""
    kind, extra = draw.choice(
        (
            (signed, ""),
            (signed, ""),
            (signed, " -r"),
            (signed, "span"),
            (decimals, " -t float"),
            (decimals, " -t f --noexp"),
            (decimals, ""),
            (signed, "drop"),
        )
    )
    if extra == "span":
        extra = f" -f -{draw.integer(5, 20)} {draw.integer(0, 9)}"
    elif extra == "drop":
        extra = f" -e -{draw.integer(0, 9)} -F {' '.join(span(draw))}"
    return given(
        draw, draw.choice(FLAG) + extra, kind(draw), draw.choice(("input", "input", "pipe", "output"))
    )


def boundary(draw):
    """Return a case with doubled, lonely and unusual signs."""
    word = draw.word()
    odd = [
        *(
            "--5",
            "+-5",
            "-+5",
            "-",
            "+",
            "- 5",
            "-0",
            "+0",
            "0",
            "5-3",
            "5--3",
            "5+3",
            "−7",
            "-7",
            "-007",
            "+7",
            "1-",
            "a-1-2",
            "a-1-10",
            "a--2",
            "-²",
        ),
        f"{word}-1",
        f"{word}-10",
        f"{word}+2",
    ]
    entries = draw.sample(odd, draw.integer(5, 14)) if draw.chance(0.8) else mixed(draw)
    options = draw.choice((*FLAG, *FLAG, "--nosign -s", "-s --nosign"))
    return given(draw, options, entries, draw.choice(("input", "pipe")))


def error(draw):
    """Return a case of wrong usage beside the flag."""
    if draw.chance(0.3):
        return Case(
            f"{draw.tool} --sign={draw.choice(('+', '-', 'yes', draw.word()))} {quote(signed(draw)[0].lstrip('-') or '1')}"
        )
    return wrong(draw, draw.choice(FLAG))
