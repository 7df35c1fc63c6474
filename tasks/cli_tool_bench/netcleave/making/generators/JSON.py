"""Facts and subnets as JSON."""

from _nets import ended, invalid, network, six, split
from fuzz import Case

FLAG = ("-j", "--json")


def common(draw):
    """Return a case with or without subnets."""
    words, length, most = network(draw, 8, 30)
    option = f" {split(draw, length, most)}" if draw.chance(0.6) else ""
    extra = draw.choice(("", "", " -l 2", " -l 5")) if option else ""
    if draw.chance(0.15):
        words, option, extra = (
            draw.choice((f"{draw.integer(1, 223)}.{draw.integer(0, 255)}.3.4", six(draw))),
            "",
            "",
        )
    return ended(
        draw,
        draw.choice(
            (
                f"{draw.tool} {words}{option}{extra} {draw.choice(FLAG)}",
                f"{draw.tool} {draw.choice(FLAG)} {words}{option}{extra}",
            )
        ),
    )


def boundary(draw):
    """Return a case at the ends of addresses, masks and limits."""
    words, length, most = network(draw, 0, 32)
    words = draw.choice(
        (
            words,
            "0.0.0.0/0",
            "::/0",
            "255.255.255.255/32",
            "::1/128",
            "10.0.0.0/31",
            "1.2.3.4",
            "2001:db8::",
            "2001:db8::/127",
        )
    )
    return Case(
        f"{draw.tool} {words} {draw.choice(FLAG)}{draw.choice(('', '', ' -l 1 -s 2', ' -s 1', ' -l 0 -s 4', ' -H 1 -l 3'))}"
    )


def error(draw):
    """Return a case with a bad address, a split that does not fit, or wrong usage."""
    if draw.chance(0.2):
        return Case(f"{draw.tool} --json={draw.word()} {network(draw)[0]}")
    return invalid(draw, draw.choice(FLAG))
