from _kit import SUFFIXES, edge, failing, folder
from fuzz import Case


def common(draw):
    kind = draw.choice(("name", "version", "size", "mtime"))
    flags = [draw.choice((f"--sort {kind}", f"-sort={kind}", f"--sort={kind}"))]
    flags += draw.sample(("-r", "-Q", "--noreport", "-s"), draw.integer(0, 2))
    if kind in ("name", "version"):
        stems = [f"file{draw.choice((1, 2, 9, 10, 11, 20, 100))}{draw.choice(SUFFIXES)}" for _ in range(6)]
        files = (
            folder(draw)
            | {f"box/{stem}": "x" for stem in stems}
            | {"box/v9/a1.txt": "", "box/v09/a01.txt": "", "box/v10/b.txt": ""}
        )
        return Case(f"{draw.tool} {' '.join(draw.sample(flags, len(flags)))} box", files)
    names = [*draw.words(draw.integer(3, 7)), "9.txt", "10.txt"]
    sizes = draw.sample(range(0, 3000), len(names))
    files = {f"box/{name}": "x" * size for name, size in zip(names, sizes, strict=True)}
    days = draw.sample(range(1, 28), len(names))
    prep = "; ".join(f"touch -d 2019-05-{day:02} box/{name}" for name, day in zip(names, days, strict=True))
    return Case(
        f"{draw.tool} {' '.join(draw.sample(flags, len(flags)))} box", files, prep if kind == "mtime" else ""
    )


def boundary(draw):
    order = draw.choice(
        ("--sort version", "-v", "--sort name", "--sort ", "-v --sort name", "-r --sort=version")
    )
    return edge(draw, order, ("-a",))


def error(draw):
    return failing(
        draw,
        draw.choice(("-r", "-v", "-t")),
        ("--sort", "--sort none", "--sort=Name", "--sort atime"),
    )
