from _kit import DEEP, edge, failing, folder
from fuzz import Case


def common(draw):
    flags = [
        draw.choice(("-L {}", "-L={}", "--L {}")).format(draw.choice((1, 1, 2, 2, 4, 5))),
        *draw.sample(("-s", "-f", "-d", "-a", "-h", "--noreport"), draw.choice((0, 1, 2))),
    ]
    return Case(
        f"{draw.tool} {' '.join(draw.sample(flags, len(flags)))} box",
        folder(draw, depth=5),
        DEEP if draw.chance(0.5) else "",
    )


def boundary(draw):
    level = draw.choice(("0", "-1", "1000", "+2", "0x2", "007", "1_0"))
    return edge(draw, f"-L {level}", ("-s", "-d"))


def error(draw):
    return failing(draw, f"-L {draw.integer(1, 4)}", ("-L 1e1", "-L 99999999999999999999", "-L=", "-L two"))
