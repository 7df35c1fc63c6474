from _kit import call, edge, failing


def common(draw):
    return call(
        draw,
        draw.choice(("-full-path", "--full-path", "-full-path=1")),
        draw.choice(("", "", "-aggressive", "-force-color", "-m chan", "-f IO")),
    )


def boundary(draw):
    return edge(draw, draw.choice(("-full-path", "-full-path=false", "-full-path -m running")))


def error(draw):
    return failing(draw, "-full-path", ("-rel-path in.log", "-full-path=x in.log", "-full in.log"))
