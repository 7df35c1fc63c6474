"""Every subnet."""

from _nets import ended, invalid, network
from fuzz import Case

FLAG = ("-a", "--all")


def common(draw):
    """Return a case whose split makes more subnets than are listed by default, or fewer."""
    words, length, most = network(draw, 8, 25)
    deep = min(most - length, draw.choice((3, 6, 7, 7, 7, 8)))
    option = draw.choice((f"-p {length + deep}", f"-s {2**deep}", f"-s {max(1, 2**deep - 3)}"))
    extra = draw.choice(("", "", "", " -l 5", " --limit 1", " --json"))
    tail = draw.choice(("", " | tail -n 5", " | wc -l", " | sed -n 40,90p"))
    return Case(f"{draw.tool} {words} {option}{extra} {draw.choice(FLAG)}{tail}")


def boundary(draw):
    """Return a case without a split, or with many or with single addresses."""
    words, length, most = network(draw, 22, 32, version=4)
    option = draw.choice(
        ("", f" -p {most}", f" -p {length}", " -H 1", f" -p {min(most, length + 9)} -l 0", f" -p {most} -j")
    )
    return ended(draw, f"{draw.tool} {draw.choice(FLAG)} {words}{option}")


def error(draw):
    """Return a case with a bad address, a split that does not fit, or wrong usage."""
    if draw.chance(0.2):
        return Case(f"{draw.tool} --all={draw.integer(0, 9)} {network(draw)[0]} -s 4")
    return invalid(draw, draw.choice(FLAG))
