from _kit import EDGES, MASK, failing, log
from fuzz import Case, quote


def common(draw):
    name = draw.path(draw.choice(("log", "txt")), 1)
    flags = [
        f"{draw.choice(('-in', '--in'))} {name}",
        *draw.sample(
            ("-no-xml-header", f"-p {draw.word()}={draw.word()}", "-parser gotest"), draw.choice((0, 0, 1))
        ),
    ]
    return Case(f"{draw.tool} {' '.join(draw.sample(flags, len(flags)))} | {MASK}", {name: log(draw)})


def boundary(draw):
    name = draw.choice(("a b.log", "日本.log", "-x.log", "empty", "it's.log", "./t.log"))
    return Case(
        f"{draw.tool} -in {quote(name)} {draw.choice(('', '< other.log '))}| {MASK}",
        {name: draw.choice(EDGES), "other.log": log(draw, 1)},
    )


def error(draw):
    word = draw.word()
    return failing(
        draw,
        draw.choice(("-in test.log", "")),
        (f"-in {word}.log", f"-in {word}/t.log", "-in TEST.LOG", "-in test.log/", f"-in test.log {word}"),
    )
