from _kit import edge, failing, folder
from fuzz import Case, quote


def common(draw):
    files = folder(draw)
    paths = sorted({path.rsplit("/", 1)[0] for path in files} | {"box"})
    command = " ".join((draw.tool, *map(quote, draw.sample(paths, draw.choice((1, 1, 2))))))
    return Case(command, files)


def boundary(draw):
    return edge(draw, draw.choice(("", "", "--noreport", "-Q")), ("-d", "-a"))


def error(draw):
    return failing(draw, "")
