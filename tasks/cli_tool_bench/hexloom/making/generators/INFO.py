"""What files hold."""

from _images import data, edges, failing, image, segments, show, srec
from fuzz import Case


def common(draw):
    """Return a case that prints facts of one to three files, at times with another word size or encoding."""
    if draw.chance(0.25):
        parts = segments(draw, even=True)
        name = draw.file("s19")
        return Case(
            f"{draw.tool} info {draw.choice(('-s', '--word-size-bits'))} {draw.choice((8, 16))} {name}",
            {name: srec(draw, parts, draw.word().encode(), step=16)},
        )
    if draw.chance(0.2):
        name = draw.file("s19")
        header = draw.choice(("grün", "ñandú", "caf\u00e9", draw.word()))
        encoding = draw.choice(("latin-1", "utf-8", "cp437"))
        encoded = header.encode("latin-1" if encoding != "utf-8" else encoding)
        return Case(
            f"{draw.tool} info {draw.choice(('-e', '--header-encoding'))} {encoding} {name}",
            {name: srec(draw, segments(draw), encoded)},
        )
    if draw.chance(0.2):
        name = draw.file("s19")
        parts = [
            (draw.integer(0, 400), data(draw, draw.integer(200, 900))),
            (draw.integer(1500, 5000), data(draw, draw.integer(100, 1100))),
        ]
        return Case(f"{draw.tool} info {name}", {name: srec(draw, parts, step=32)})
    return show(draw, "info")


def boundary(draw):
    """Return a case with a file at the edge of what is accepted."""
    return edges(draw, "info")


def error(draw):
    """Return a case with a broken file, a header that cannot be read, or wrong usage."""
    if draw.chance(0.35):
        name = draw.file("s19")
        encoding = draw.choice(("ascii", "utf-8", "nonsense", "utf-99"))
        option = draw.choice((f"-e {encoding}", f"-s {draw.choice((7, 12, 1, 15, 'x', '8.0', ''))}")).strip()
        if option.startswith("-s"):
            _, name, text = image(draw)
            return Case(f"{draw.tool} info {option} {name}", {name: text})
        return Case(
            f"{draw.tool} info {option} {name}", {name: srec(draw, segments(draw), "grün".encode("latin-1"))}
        )
    return failing(draw, "info")
