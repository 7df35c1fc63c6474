from _kit import failing, folder
from fuzz import Case


def common(draw):
    flags = ["-a", *draw.sample(("-f", "-d", "-Q", "-s", "--noreport", "-r", "-L 2"), draw.choice((0, 1, 2)))]
    return Case(f"{draw.tool} {' '.join(draw.sample(flags, len(flags)))} box", folder(draw, hidden=0.5))


def boundary(draw):
    prep = draw.choice(
        (
            "mkdir -p box/.git/objects box/..x",
            "touch box/... box/.a",
            "mkdir -p box/.empty",
            "ln -s .x box/.link",
        )
    )
    return Case(
        f"{draw.tool} {draw.choice(('-a', '-a=true', '-a=false', '--a', '-a -d', '-a -i', '-a -C', '-a -f'))} {draw.choice(('box', 'box/', './box', 'box/.empty', 'box missing'))}",
        folder(draw, hidden=0.4, depth=1),
        prep,
    )


def error(draw):
    return failing(draw, "-a", ("-a=some", "-ad", "--all"))
