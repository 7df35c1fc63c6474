from _kit import LABELS, call, edge, failing, filters, formula
from fuzz import quote


def common(draw):
    more = draw.choice(
        (
            "",
            "",
            f"-k {','.join(draw.sample(LABELS, draw.integer(1, 4)))}",
            f"-i {','.join(draw.sample(LABELS, 2))}",
            f"-f {quote(filters(draw))}",
            f"-e {quote(formula(draw))}",
        )
    )
    return call(draw, [draw.choice(("-K", "--no-key", "-K=true")), more])


def boundary(draw):
    return edge(
        draw,
        draw.choice(
            ("-K", "--no-key", "-K=false", "-K -k a,b", "-K -k missing", "-K -i a", "-K -f 'a == 1'")
        ),
    )


def error(draw):
    return failing(draw, draw.choice(("-K", "--no-key")))
