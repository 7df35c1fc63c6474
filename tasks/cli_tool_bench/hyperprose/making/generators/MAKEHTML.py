from _prose import EDGES, broken, document, source


def common(draw):
    return source(draw, document(draw), "", draw.choice(("", "", "-q ", "-m ")))


def boundary(draw):
    return source(draw, draw.choice(EDGES) + draw.choice(("", "", "\n" + document(draw, 1))))


def error(draw):
    return broken(draw)
