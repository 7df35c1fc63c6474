from _kit import call, document, edge, failing


def common(draw):
    flags = [
        draw.choice(
            (
                '-indentBy "    "',
                '-indentBy=" "',
                '-indentBy "\t"',
                '-indentBy="   "',
                "--indentBy ..",
                '-indentBy ""',
            )
        ),
        *draw.sample(
            ("-preserveKeyOrder", "-j", "-bracesSameLine", "-omitRootBraces", "-quoteAlways"),
            draw.choice((0, 0, 1, 1, 2)),
        ),
    ]
    return call(draw, " ".join(filter(None, draw.sample(flags, len(flags)))), document(draw, 3))


def boundary(draw):
    return edge(
        draw,
        draw.choice(
            (
                '-indentBy "%s"',
                '-indentBy "日本"',
                "-indentBy -- -j",
                '-indentBy "" -bracesSameLine',
                '-j -indentBy "<>"',
                "-indentBy=",
                "-indentBy 0 -indentBy 4",
            )
        ),
    )


def error(draw):
    return failing(draw, draw.choice(('-indentBy "   "', "-indentBy 2")))
