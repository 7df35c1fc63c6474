from _kit import edge, failing, folder
from fuzz import Case, quote


def common(draw):
    flags = [
        "-f",
        *draw.sample(
            ("-d", "-a", "-Q", "-C", "-r", "-L 2", "-i", "-s", "--noreport"), draw.choice((0, 1, 2, 3))
        ),
    ]
    files = folder(draw)
    paths = sorted({path.rsplit("/", 1)[0] for path in files} | {"box"})
    return Case(
        f"{draw.tool} {' '.join(draw.sample(flags, len(flags)))} {quote(draw.choice(('', './')) + draw.choice(paths))}",
        files,
    )


def boundary(draw):
    return edge(draw, draw.choice(("-f", "--f", "-f=1", "-f=0", "-f -l", "-f -C", "-f -i")), ("-a",))


def error(draw):
    return failing(draw, "-f", ("-f=some", "-fa", "--full"))
