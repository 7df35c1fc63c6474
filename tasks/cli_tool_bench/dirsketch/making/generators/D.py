from _kit import DEEP, edge, failing, folder
from fuzz import Case


def common(draw):
    flags = ["-d", *draw.sample(("-f", "-a", "-Q", "-C", "-r", "-L 2", "-i", "-L 5"), draw.choice((0, 1, 2)))]
    return Case(
        f"{draw.tool} {' '.join(draw.sample(flags, len(flags)))} box",
        folder(draw, depth=5),
        DEEP if draw.chance(0.3) else "",
    )


def boundary(draw):
    return edge(draw, draw.choice(("-d", "--d", "-d=1", "-d=0", "-d -l", "-d -C")), ("-a",))


def error(draw):
    return failing(draw, "-d", ("-d=some", "-da", "--dirs"))
