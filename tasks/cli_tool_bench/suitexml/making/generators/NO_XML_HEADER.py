from _kit import EDGES, failing, log, shown


def common(draw):
    flags = [
        draw.choice(("-no-xml-header", "--no-xml-header", "-no-xml-header=true")),
        *draw.sample(
            (f"-package-name {draw.word()}", f"-p {draw.word()}={draw.word()}", "-parser gotest"),
            draw.choice((0, 0, 1)),
        ),
    ]
    return shown(draw, " ".join(draw.sample(flags, len(flags))), log(draw))


def boundary(draw):
    return shown(
        draw,
        draw.choice(("-no-xml-header", "-no-xml-header=false", '-no-xml-header=1 -in ""')),
        draw.choice(EDGES),
    )


def error(draw):
    return failing(draw, "-no-xml-header")
