"""A number of subnets."""

from _nets import ended, invalid, network
from fuzz import Case

FLAG = ("-s", "--subnets")


def common(draw):
    """Return a case that splits a network into at least some parts."""
    words, length, most = network(draw, 8, 28)
    count = draw.integer(1, min(2 ** (most - length), draw.choice((4, 8, 16, 33, 64))))
    extra = draw.choice(("", "", "", "", " --json", " -l 3", " -a"))
    option = f"{draw.choice(FLAG)} {count}"
    return ended(
        draw, draw.choice((f"{draw.tool} {words} {option}{extra}", f"{draw.tool} {option}{extra} {words}"))
    )


def boundary(draw):
    """Return a case with one subnet, as many as fit, or very many."""
    words, length, most = network(draw, 16, 32)
    room = 2 ** min(most - length, 40)
    count = draw.choice(
        (
            1,
            room,
            max(1, room - 1),
            max(1, room // 2),
            max(1, room // 2 + 1),
            min(room, 64),
            min(room, 65),
            min(room, 1000),
        )
    )
    return Case(f"{draw.tool} {words} {draw.choice(FLAG)} {count}" + draw.choice(("", " -l 4")))


def error(draw):
    """Return a case with too many subnets or none, or a bad address."""
    words, length, most = network(draw, version=4)
    if draw.chance(0.3):
        return invalid(draw, f"{draw.choice(FLAG)} 4")
    bad = draw.choice(
        (
            2 ** (most - length) + 1,
            2 ** (most - length) * 2,
            0,
            -1,
            -8,
            "x",
            "",
            "4.0",
            "1e2",
            "8s",
            draw.word(),
            2**40,
        )
    )
    return Case(f"{draw.tool} {words} {draw.choice(FLAG)} {bad}".strip())
