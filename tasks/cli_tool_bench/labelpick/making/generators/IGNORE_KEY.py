from _kit import LABELS, call, edge, failing, filters
from fuzz import quote


def common(draw):
    labels = ",".join(draw.sample((*LABELS, "missing"), draw.integer(1, 5)))
    more = draw.choice(("", "", "-K", f"-f {quote(filters(draw))}", f"-k {','.join(draw.sample(LABELS, 3))}"))
    return call(draw, [draw.choice(("-i ", "--ignore-key ", "--ignore-key=", "-i=")) + labels, more])


def boundary(draw):
    return edge(
        draw,
        "-i "
        + quote(
            draw.choice(
                (
                    "a",
                    "a,b",
                    "",
                    ",",
                    "a b",
                    " a",
                    "日本",
                    "A",
                    "a,time,size,status",
                    "x,y",
                    "nothing",
                    "c.d",
                    "*",
                )
            )
        ),
    )


def error(draw):
    return failing(draw, f"--ignore-key {','.join(draw.sample(LABELS, 2))}")
