"""Subnets for a number of hosts."""

from _nets import ended, invalid, network
from fuzz import Case

FLAG = ("-H", "--hosts")


def common(draw):
    """Return a case that splits a network into the smallest subnets for some hosts."""
    words, length, most = network(draw, 8, 28)
    bits = min(most - length, 16)
    count = draw.choice(
        (
            draw.integer(1, max(1, 2**bits - 2)),
            draw.integer(1, max(1, 2 ** (bits // 2) - 2)),
            2 ** (bits // 2),
            max(1, 2 ** (bits // 2) - 2),
            max(1, 2 ** (bits - 1) - 1),
            2,
        )
    )
    count = max(1, min(count, 2**bits - 2))
    extra = draw.choice(("", "", "", "", " --json", " -l 3", " --limit 10"))
    option = f"{draw.choice(FLAG)} {count}"
    return ended(
        draw, draw.choice((f"{draw.tool} {words} {option}{extra}", f"{draw.tool} {option} {words}{extra}"))
    )


def boundary(draw):
    """Return a case with one host, two hosts, or as many as fit."""
    words, length, most = network(draw, 20, 32)
    room = 2 ** min(most - length, 70)
    count = draw.choice(
        (
            1,
            2,
            3,
            max(1, room - 2),
            max(1, room - 1),
            room,
            max(1, room // 2 - 2),
            max(1, room // 2 - 1),
            room // 2 or 1,
        )
    )
    return Case(f"{draw.tool} {words} {draw.choice(FLAG)} {count} -l {draw.choice((2, 4, 8))}")


def error(draw):
    """Return a case with too many hosts or none, or a bad address."""
    words, length, most = network(draw, version=4)
    if draw.chance(0.3):
        return invalid(draw, f"{draw.choice(FLAG)} 10")
    room = 2 ** (most - length)
    bad = draw.choice(
        (
            room - 1 if room > 2 else room + 1,
            room,
            room * 2,
            0,
            -1,
            -50,
            "x",
            "",
            "50h",
            "2.5",
            draw.word(),
            2**33,
        )
    )
    return Case(f"{draw.tool} {words} {draw.choice(FLAG)} {bad}".strip())
