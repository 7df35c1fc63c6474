from _kit import EDGES, MASK, failing, log
from fuzz import Case, quote


def common(draw):
    name = draw.choice((draw.file("xml"), "report", "out.d/r.xml", "a b.xml"))
    flags = [
        f"{draw.choice(('-out', '--out'))} {quote(name)}",
        *draw.sample(
            ("-no-xml-header", f"-p {draw.word()}={draw.word()}", f"-package-name {draw.word()}"),
            draw.choice((0, 0, 1)),
        ),
    ]
    return Case(
        f"{draw.tool} {' '.join(draw.sample(flags, len(flags)))} < test.log; code=$?; {MASK.replace('-E', '-i -E')} {quote(name)}; exit $code",
        {"test.log": log(draw), "out.d/x": "", "old.xml": ""},
    )


def boundary(draw):
    name = draw.choice(("r.xml", "日本.xml", "-r.xml", "test.xml", "it's", "./-x", "old.xml"))
    return Case(
        f"{draw.tool} -out {quote(name)} < test.log && {MASK} < {quote(name)} && rm -- {quote(name)}",
        {"test.log": draw.choice(EDGES), "old.xml": "old\n" * 900},
    )


def error(draw):
    return failing(
        draw,
        draw.choice(("", "-no-xml-header")),
        (
            f"-out {draw.word()}/r.xml",
            "-out .",
            f"-out test.log/{draw.word()}",
            f"-out /{draw.word()}/r.xml",
            "-out=./no/way.xml",
        ),
    )
