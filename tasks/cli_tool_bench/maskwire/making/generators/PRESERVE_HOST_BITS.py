"""Last bits that are kept."""

from _configs import config, failing, four, run, salted, six
from fuzz import Case

FLAG = "--preserve-host-bits"


def common(draw):
    """Return a case with a number of bits."""
    bits = draw.choice((8, 8, 4, 12, 16, 24, 1, 2, draw.integer(1, 30)))
    extra = draw.choice(
        ("", "", "", " -d map.txt", " --preserve-private-addresses", " --preserve-prefixes 10.0.0.0/8")
    )
    return run(draw, f"-a {salted(draw)} {FLAG} {bits}{extra}", config(draw, v6=0.5))


def boundary(draw):
    """Return a case with no bits, or nearly all or all of them."""
    rows = [four(draw), "10.1.2.3", "255.255.255.0", six(draw), "8.8.8.8", "8.8.8.9"]
    return run(
        draw,
        f"{draw.choice(('-a', '-u'))} {salted(draw)} {FLAG} {draw.choice((0, 1, 31, 32, 33, 64, 127, 128))}",
        "\n".join(draw.sample(rows, draw.integer(2, 6))) + "\n",
    )


def error(draw):
    """Return a case whose number is none, or wrong usage."""
    if draw.chance(0.5):
        return Case(
            f"{draw.tool} -i r.cfg -o out.cfg -a {salted(draw)} {FLAG} {draw.choice(('x', '8.0', '', '/24', '0x8', 'all', '8,8', draw.word()))}".strip(),
            {"r.cfg": config(draw)},
        )
    return failing(draw, f"-a {salted(draw)} {FLAG} 8")
