"""Descending order."""

from _lists import decimals, evil, given, mixed, paths, plain, span, wrong
from fuzz import Case, quote

FLAG = ("-r", "--reverse")


def common(draw):
    """Return a case in descending order, often with another option."""
    kind, extra = draw.choice(
        (
            (plain, ""),
            (plain, ""),
            (plain, "span"),
            (decimals, " -t float"),
            (decimals, " -t real"),
            (paths, " -p"),
            (paths, ""),
        )
    )
    extra = f" -f {' '.join(span(draw))}" if extra == "span" else extra
    return given(draw, draw.choice(FLAG) + extra, kind(draw))


def boundary(draw):
    """Return a case with equal entries, other scripts or little input."""
    kind = draw.choice(("same", "mixed", "evil", "few"))
    if kind == "mixed":
        return given(draw, draw.choice(FLAG), mixed(draw))
    if kind == "evil":
        return given(draw, draw.choice(FLAG), evil(draw), "input")
    if kind == "few":
        return Case(
            f"{draw.tool} {draw.choice(FLAG)} < few.txt",
            {"few.txt": draw.choice(("", "\n", f"{draw.word()}\n", " b\n\na\n", "1\n\n2"))},
        )
    word = draw.word()
    return given(
        draw,
        draw.choice(FLAG),
        [word + "0" * draw.integer(0, 4) + str(draw.integer(1, 3)) for _ in range(draw.integer(4, 10))],
    )


def error(draw):
    """Return a case of wrong usage beside the flag."""
    if draw.chance(0.3):
        return Case(
            f"{draw.tool} --reverse={draw.choice(('yes', 'no', '1', draw.word()))} {quote(plain(draw)[0])} {quote(plain(draw)[0])}"
        )
    return wrong(draw, draw.choice(FLAG))
