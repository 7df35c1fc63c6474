from _kit import call, edge, failing, message


def common(draw):
    flags = [draw.choice(("",)), *draw.sample(("",), draw.choice((0, 0, 0, 1)))]
    return call(draw, flags, message(draw))


def boundary(draw):
    return edge(draw, draw.choice(("",)))


def error(draw):
    return failing(draw, draw.choice(("",)), ())
