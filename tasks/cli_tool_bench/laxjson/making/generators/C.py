from _kit import call, document, edge, failing


def common(draw):
    flags = [
        draw.choice(("-c", "--c", "-c=1")),
        *draw.sample(
            ("-preserveKeyOrder", "-j", "-indentBy 4", "-bracesSameLine", "-quoteAlways"),
            draw.choice((0, 0, 1, 1, 2)),
        ),
    ]
    return call(draw, " ".join(filter(None, draw.sample(flags, len(flags)))), document(draw))


def boundary(draw):
    return edge(draw, draw.choice(("-c", "-c=0", "-c -j", "-c -preserveKeyOrder")))


def error(draw):
    return failing(draw, draw.choice(("-c", "--c")))
