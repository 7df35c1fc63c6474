from _kit import call, document, edge, failing


def common(draw):
    flags = [
        draw.choice(("-bracesSameLine", "--bracesSameLine", "-bracesSameLine=true")),
        *draw.sample(
            ("-preserveKeyOrder", '-indentBy "    "', "-omitRootBraces", "-quoteAlways"),
            draw.choice((0, 0, 1, 1, 2)),
        ),
    ]
    return call(draw, " ".join(filter(None, draw.sample(flags, len(flags)))), document(draw, 3))


def boundary(draw):
    return edge(
        draw, draw.choice(("-bracesSameLine", "-bracesSameLine=false", "-bracesSameLine -omitRootBraces"))
    )


def error(draw):
    return failing(draw, draw.choice(("-bracesSameLine", "--bracesSameLine")))
