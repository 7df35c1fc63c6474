from _kit import LABELS, call, edge, failing, filters
from fuzz import quote


def keys(draw):
    labels = draw.sample((*LABELS, "missing", "status"), draw.integer(1, 5))
    return ",".join(labels)


def common(draw):
    flag = draw.choice(("-k ", "--key ", "--key=", "-k=")) + keys(draw)
    return call(draw, [flag, draw.choice(("", "", "-K", f"-f {quote(filters(draw))}", "-i status,size"))])


def boundary(draw):
    return edge(
        draw,
        "-k "
        + quote(
            draw.choice(
                (
                    "a",
                    "a,a",
                    "",
                    ",",
                    "a,,b",
                    " a",
                    "a, b",
                    "日本,k\u00e9y",
                    "x,y",
                    "time,size,a",
                    "a:1",
                    "*",
                    "A,a",
                    "nothing",
                )
            )
        ),
    )


def error(draw):
    return failing(draw, f"--key {keys(draw)}")
