from _kit import EDGES, failing, log, shown


def common(draw):
    return shown(draw, "", log(draw))


def boundary(draw):
    return shown(
        draw,
        draw.choice(("", "", "-parser gotest", '-in ""')),
        draw.choice(EDGES) + (log(draw, 1) if draw.chance(0.3) else ""),
    )


def error(draw):
    return failing(draw, "")
