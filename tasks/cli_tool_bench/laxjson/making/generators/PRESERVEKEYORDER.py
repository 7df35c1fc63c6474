from _kit import call, document, edge, failing


def common(draw):
    flags = [
        draw.choice(("-preserveKeyOrder", "--preserveKeyOrder", "-preserveKeyOrder=true")),
        *draw.sample(
            ("-j", '-indentBy "    "', "-bracesSameLine", "-omitRootBraces", "-c", "-quoteAlways"),
            draw.choice((0, 0, 1, 1, 2)),
        ),
    ]
    return call(draw, " ".join(filter(None, draw.sample(flags, len(flags)))), document(draw, 2, 4))


def boundary(draw):
    return edge(draw, draw.choice(("-preserveKeyOrder", "-preserveKeyOrder=false", "-preserveKeyOrder -c")))


def error(draw):
    return failing(draw, draw.choice(("-preserveKeyOrder", "--preserveKeyOrder")))
