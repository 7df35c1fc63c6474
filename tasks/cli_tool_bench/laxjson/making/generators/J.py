from _kit import call, document, edge, failing


def common(draw):
    flags = [
        draw.choice(("-j", "--j", "-j=true")),
        *draw.sample(
            ("-preserveKeyOrder", '-indentBy "    "', '-indentBy "\t"', "-omitRootBraces", "-quoteAlways"),
            draw.choice((0, 0, 1, 1, 2)),
        ),
    ]
    return call(draw, " ".join(filter(None, draw.sample(flags, len(flags)))), document(draw))


def boundary(draw):
    return edge(draw, draw.choice(("-j", "-j=false", '-j -indentBy ""', "-j -preserveKeyOrder")))


def error(draw):
    return failing(draw, draw.choice(("-j", "--j")))
