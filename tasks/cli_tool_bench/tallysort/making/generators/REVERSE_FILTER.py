"""Drop entries with a number in a range."""

from _lists import decimals, given, mixed, plain, span, wrong
from fuzz import Case

FLAG = ("-F", "--reverse-filter")


def common(draw):
    """Return a case with one or two ranges."""
    with_decimals = draw.chance(0.4)
    options = " ".join(
        f"{draw.choice(FLAG)} {' '.join(span(draw, with_decimals))}" for _ in range(draw.choice((1, 1, 1, 2)))
    )
    if with_decimals:
        options += draw.choice((" -t float", " -t real", " --number-type f", " -t r --noexp", "", " -s"))
    elif draw.chance(0.3):
        options += draw.choice((" -r", f" -e {draw.integer(0, 12)}", f" -f {' '.join(span(draw))}"))
    return given(
        draw, options, (decimals if with_decimals else plain)(draw), draw.choice(("input", "input", "pipe"))
    )


def boundary(draw):
    """Return a case with ranges at the edges."""
    low, high = draw.choice(
        (
            ("-inf", "inf"),
            ("0", "1e309"),
            ("-1", "0"),
            ("0", "0.5"),
            ("1e1", "1e2"),
            ("9", "10"),
            ("-5", "-1"),
            ("nan", "5"),
            (" 1", "2 "),
        )
    )
    entries = draw.choice((mixed, plain, decimals))(draw)
    options = f"{draw.choice(FLAG)} '{low}' '{high}'" + draw.choice(("", " -t r", " -s", " -t f"))
    return given(draw, options, entries, draw.choice(("input", "pipe")))


def error(draw):
    """Return a case with a range that is none."""
    entries = "\n".join(plain(draw, 4)) + "\n"
    low = draw.integer(-5, 50)
    bad = draw.choice(
        (
            f"{low} {low}",
            f"{low} {low - draw.integer(1, 9)}",
            f"{low}",
            f"{draw.word()} {low}",
            f"{low} {draw.word()}",
            "",
            f"{low} 1,5",
            f"{low}- 70",
            f"'' {low}",
        )
    )
    if draw.chance(0.2):
        return wrong(draw, f"{draw.choice(FLAG)} 1 20")
    return Case(f"{draw.tool} {draw.choice(FLAG)} {bad} < list.txt", {"list.txt": entries})
