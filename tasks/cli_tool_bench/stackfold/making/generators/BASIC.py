from _kit import call, edge, failing


def common(draw):
    return call(draw)


def boundary(draw):
    return edge(draw, "")


def error(draw):
    return failing(draw, "")
