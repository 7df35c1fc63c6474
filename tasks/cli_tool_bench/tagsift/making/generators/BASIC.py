from _kit import failing, odd, usual


def common(draw):
    return usual(draw, "")


def boundary(draw):
    return odd(draw, "")


def error(draw):
    return failing(draw, "")
