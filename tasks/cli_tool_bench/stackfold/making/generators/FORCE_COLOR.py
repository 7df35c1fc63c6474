from _kit import call, edge, failing


def common(draw):
    return call(
        draw,
        draw.choice(("-force-color", "--force-color", "-force-color=true")),
        draw.choice(("", "", "-no-color", "-full-path", "-m chan", "-aggressive")),
    )


def boundary(draw):
    return edge(draw, draw.choice(("-force-color", "-force-color=false", "-force-color -f select")))


def error(draw):
    return failing(draw, "-force-color", ("-force-color=x in.log", "-force-colors in.log"))
