from _kit import failing, odd, usual


def common(draw):
    return usual(draw, draw.choice(("-n", "--number")), ("", "", "", "", " text{}"), share=0.95)


def boundary(draw):
    return odd(draw, draw.choice(("-n", "--number", "-n -n")), ("", "", " json{}"))


def error(draw):
    return failing(draw, draw.choice(("-n", "--number")))
