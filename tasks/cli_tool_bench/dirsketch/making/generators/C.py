from _kit import edge, failing, folder
from fuzz import Case


def common(draw):
    flags = [
        "-C",
        *draw.sample(
            ("-d", "-a", "-Q", "-s", "-r", "-L 2", "-i", "-f", "--noreport"), draw.choice((0, 1, 2))
        ),
    ]
    more = draw.sample(
        (
            "box/run.sh",
            "box/pic.JPG",
            "box/set.tgz",
            "box/a.Zip",
            "box/b.bz2",
            "box/tool.EXE",
            "box/song.ogg",
            "box/v.mov",
            "box/x.jpeg",
            "box/plain",
            "box/m.deb",
        ),
        4,
    )
    prep = draw.choice(
        (
            "",
            f"chmod +x {more[0]}",
            "ln -s plain box/link",
            f"ln -s {more[1][4:]} box/link.txt; ln -s gone box/dangling",
        )
    )
    return Case(
        f"{draw.tool} {' '.join(draw.sample(flags, len(flags)))} box",
        folder(draw, depth=2) | dict.fromkeys(more, "x"),
        prep,
    )


def boundary(draw):
    return edge(draw, draw.choice(("-C", "--C", "-C=1", "-C=0", "-C -l", "-C -d", "-C -Q")), ("-a", "-f"))


def error(draw):
    return failing(draw, "-C", ("-C=some", "-Cd", "--color"))
