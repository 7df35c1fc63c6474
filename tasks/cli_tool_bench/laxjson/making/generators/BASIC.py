from _kit import call, document, edge, failing


def common(draw):
    flags = [draw.choice(("",)), *draw.sample(("",), draw.choice((0, 0, 1, 1, 2)))]
    return call(draw, " ".join(filter(None, draw.sample(flags, len(flags)))), document(draw))


def boundary(draw):
    return edge(draw, draw.choice(("",)))


def error(draw):
    return failing(draw, draw.choice(("", "")))
