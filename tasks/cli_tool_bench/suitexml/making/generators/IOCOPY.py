from _kit import EDGES, MASK, as_json, failing, log
from fuzz import Case


def common(draw):
    flags = draw.sample(
        ("-iocopy", "-out r.xml", draw.choice(("-no-xml-header", f"-p {draw.word()}={draw.word()}", ""))), 3
    )
    text = log(draw, draw.integer(1, 2))
    if draw.chance(0.3):
        flags, text = [*flags, "-parser gojson"], as_json(draw, text)
    return Case(
        f"{draw.tool} {' '.join(filter(None, flags))} < test.log; code=$?; {MASK.replace('-E', '-i -E')} r.xml; exit $code",
        {"test.log": text},
    )


def boundary(draw):
    flag = draw.choice(("-iocopy", "-iocopy=true", "-iocopy=false", "--iocopy"))
    return Case(
        f"{draw.tool} {flag} -out r.xml < test.log && {MASK} r.xml && rm r.xml",
        {"test.log": draw.choice(EDGES).removesuffix("\n" if draw.chance(0.3) else "-")},
    )


def error(draw):
    word = draw.word()
    return failing(
        draw,
        "-iocopy",
        (
            "-set-exit-code",
            "-no-xml-header",
            f"-p {word}={word}",
            "-in test.log",
            f"-out no/{word}.xml",
            f"-package-name {word}",
        ),
    )
