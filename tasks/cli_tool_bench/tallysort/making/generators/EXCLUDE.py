"""Drop entries that contain a number."""

from _lists import decimals, given, mixed, plain, wrong
from fuzz import Case

FLAG = ("-e", "--exclude")


def common(draw):
    """Return a case that drops numbers which occur, and others."""
    if draw.chance(0.35):
        entries = decimals(draw)
        numbers = [
            draw.choice(("1", "2.5", "-1", "10", "0.5", "300", "1e2", str(draw.integer(0, 30))))
            for _ in range(draw.integer(1, 4))
        ]
        extra = draw.choice((" -t float", " -t r", " -s", "", " -t f --noexp"))
    else:
        entries = plain(draw)
        present = [n for entry in entries for n in "".join(c if c.isdigit() else " " for c in entry).split()]
        numbers = draw.sample(present, draw.integer(1, 3)) if present else ["1"]
        numbers = [n.lstrip("0") or "0" for n in numbers] if draw.chance(0.5) else numbers
        extra = draw.choice(("", "", "", " -r", " -p"))
    options = " ".join(f"{draw.choice(FLAG)} {number}" for number in numbers)
    return given(draw, options + extra, entries, draw.choice(("input", "input", "pipe", "output")))


def boundary(draw):
    """Return a case with unusual numbers or entries."""
    number = draw.choice(
        ("0", "-0", "2.0", "1e1", "nan", "inf", "-1", " 3", "1_0", "3.", ".5", "٣", "007", "1e400")
    )
    return given(
        draw,
        f"--exclude={draw.choice((number, number))}".replace(" ", "")
        + draw.choice(("", " -t float", " -s", " -e 2")),
        draw.choice((mixed, plain, decimals))(draw),
        draw.choice(("input", "pipe")),
    )


def error(draw):
    """Return a case whose number is none."""
    if draw.chance(0.25):
        return wrong(draw, f"{draw.choice(FLAG)} {draw.integer(1, 20)}")
    bad = draw.choice((draw.word(), "1,5", "0x10", "''", "1-2", "--", "5a", "1..2", "²"))
    return Case(
        f"{draw.tool} {draw.choice(FLAG)} {bad} < list.txt", {"list.txt": "\n".join(plain(draw, 5)) + "\n"}
    )
