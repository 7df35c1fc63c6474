from _kit import call, edge, failing, log


def common(draw):
    return call(
        draw,
        draw.choice(("-aggressive", "--aggressive", "-aggressive=true")),
        draw.choice(("", "", "-full-path", "-force-color")),
        content=log(draw, vary=True),
    )


def boundary(draw):
    return edge(draw, draw.choice(("-aggressive", "-aggressive=false", "-aggressive -full-path")))


def error(draw):
    return failing(draw, "-aggressive", ("-aggressive=maybe in.log", "-aggressively in.log"))
