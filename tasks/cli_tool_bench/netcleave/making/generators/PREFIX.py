"""Subnets of a prefix length."""

from _nets import ended, invalid, network
from fuzz import Case

FLAG = ("-p", "--prefix")


def common(draw):
    """Return a case that splits a network, at times with a limit or as JSON."""
    words, length, most = network(draw)
    target = length + min(most - length, draw.choice((0, 1, 1, 2, 2, 3, 4, 5, 7)))
    extra = draw.choice(("", "", "", "", " --json", " -l 3", " -l 100", " --all"))
    option = f"{draw.choice(FLAG)} {target}"
    return ended(
        draw, draw.choice((f"{draw.tool} {words} {option}{extra}", f"{draw.tool} {option} {words}{extra}"))
    )


def boundary(draw):
    """Return a case with the same, the longest or a far prefix length."""
    words, length, most = network(draw, 0, 32)
    target = draw.choice(
        (length, most, most - 1, min(most, length + 20), min(most, length + 6), min(most, length + 7))
    )
    return Case(
        f"{draw.tool} {words} {draw.choice(FLAG)}={max(target, 0)}".replace("-p=", "-p")
        + draw.choice(("", " -l 2", " -l 5"))
    )


def error(draw):
    """Return a case with a prefix length out of range or none, or a bad address."""
    words, length, most = network(draw, 2)
    if draw.chance(0.3):
        return invalid(draw, f"{draw.choice(FLAG)} 28")
    bad = draw.choice(
        (
            most + 1,
            length - 1,
            0,
            -1,
            "x",
            "",
            "/26",
            "24.0",
            "2 4",
            draw.word(),
            most + draw.integer(2, 99),
            draw.integer(0, length - 1),
        )
    )
    return Case(f"{draw.tool} {words} {draw.choice(FLAG)} {bad}".strip())
