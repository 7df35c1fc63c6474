from _kit import call, edge, failing


def common(draw):
    return call(
        draw,
        draw.choice(("-no-color", "--no-color", "-no-color=true", "-no-color=false", "-no-color=0")),
        draw.choice(("", "", "-force-color", "-full-path", "-f chan", "-aggressive")),
    )


def boundary(draw):
    return edge(
        draw,
        draw.choice(("-no-color", "-no-color=false", "-no-color -force-color", "-no-color=f -full-path")),
    )


def error(draw):
    return failing(
        draw, draw.choice(("-no-color", "-no-color=false")), ("-no-color=x in.log", "-no-colors in.log")
    )
