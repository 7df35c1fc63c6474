"""The most subnets to list."""

from _nets import ended, invalid, network
from fuzz import Case

FLAG = ("-l", "--limit")


def common(draw):
    """Return a case whose split makes more, as many, or fewer subnets."""
    words, length, most = network(draw, 8, 26)
    deep = min(most - length, draw.choice((2, 3, 4, 5, 6, 7, 8, 10)))
    limit = draw.choice((1, 2, 3, 5, 2 ** min(deep, 6), 2 ** min(deep, 6) - 1, draw.integer(1, 20)))
    option = draw.choice((f"-p {length + deep}", f"-s {2**deep}", f"-s {2**deep - 1}"))
    extra = draw.choice(("", "", "", "", " --json", " -j"))
    return ended(draw, f"{draw.tool} {words} {option} {draw.choice(FLAG)} {max(limit, 1)}{extra}")


def boundary(draw):
    """Return a case with a limit of zero, below, or far above, or without a split."""
    words, length, most = network(draw, 8, 28)
    limit = draw.choice((0, -1, -100, 1, 10**9, 64, 65, 63))
    option = draw.choice(
        (
            "",
            f" -p {min(length + 3, most)}",
            f" -s {min(128, 2 ** (most - length))}",
            " -s 1",
            f" -p {min(length + 7, most)}",
            f" -p {min(length + 7, most)}",
        )
    )
    return Case(f"{draw.tool} {words}{option} --limit={limit}")


def error(draw):
    """Return a case with a limit that is none, a split that does not fit, or a bad address."""
    words, length, most = network(draw, 8, 26)
    if draw.chance(0.5):
        return Case(
            f"{draw.tool} {words} -s 4 {draw.choice(FLAG)} {draw.choice(('x', '', '1.5', 'all', '1e3', 'none', draw.word(), '10%'))}".strip()
        )
    return invalid(draw, f"{draw.choice(FLAG)} {draw.integer(1, 9)}")
