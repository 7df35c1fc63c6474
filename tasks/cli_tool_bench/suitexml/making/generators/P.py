from _kit import EDGES, failing, log, shown
from fuzz import quote


def common(draw):
    key, value = (
        draw.choice((draw.word(), "go.version", "os name", "a.b", "<k>")),
        draw.choice((draw.word(), draw.version(), "", "a=b", "日本", '<&>"', draw.url(), "two words")),
    )
    flags = [
        draw.choice(("-p", "--p")) + " " + quote(f"{key}={value}"),
        *draw.sample(
            ("-no-xml-header", f"-p {quote(key + '=later')}", f"-package-name {draw.word()}"),
            draw.choice((0, 0, 1)),
        ),
    ]
    return shown(draw, " ".join(flags), log(draw))


def boundary(draw):
    value = draw.choice(
        (
            "=",
            "=x",
            "a=",
            "a==b",
            "coverage.statements.pct=1",
            "x=\ty",
            "-k=v",
            "k= v ",
            "k=" + "z" * 300,
            "k=%s",
            "k=\x01",
        )
    )
    return shown(draw, f"-p {quote(value)}", draw.choice(EDGES[6:] + (log(draw, 1),)))


def error(draw):
    word = draw.word()
    return failing(
        draw,
        f"-p {word}={draw.integer()}",
        (f"-p {word}", f"-p {word}:{word}", '-p ""', f"-p={word}", f"-p {word} -p a=b"),
    )
