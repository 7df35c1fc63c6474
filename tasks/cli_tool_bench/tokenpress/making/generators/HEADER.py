from _kit import edge_signing, failing, pair, signing
from fuzz import Case, quote


def common(draw):
    extra = [
        f"{draw.choice(('-header', '--header'))} {pair(draw, name)}"
        for name in draw.sample(("kid", "cty", "x5t", "jku", None, "b64"), draw.integer(1, 3))
    ]
    case = signing(draw, *extra, draw.choice(("", "-claim a=b")))
    if draw.chance(0.4):
        return Case(
            f"{case.command} -header typ={draw.word()} | {draw.tool} -show -{draw.choice(('', ' -compact'))}",
            case.files,
        )
    return case


def boundary(draw):
    odd = draw.choice(
        (
            "=",
            "kid=",
            "=b",
            "a==b",
            " a = b ",
            "\u00fc=日本",
            "a=<&>",
            "a=" + "z" * 500,
            "alg=none",
            "alg=HS384",
            "typ=",
            "typ=at",
            "alg=",
            'q="x"',
            "n=1",
        )
    )
    return edge_signing(
        draw, f"-header {quote(odd)}", draw.choice(("", "-header kid=1", "-header kid=2 -claim kid=3"))
    )


def error(draw):
    word = draw.word()
    good = ("-sign claims.json", "-alg HS256", "-key key")
    own = (
        (*good, f"-header {word}"),
        (*good, "-header ''"),
        (*good, f"-header {word}:1"),
        (*good, f"-header={word}"),
        (*good, f"-headers {word}=1"),
        ("-sign claims.json", "-key key", f"-header {word}=1"),
        ("-sign bad.json", *good[1:], f"-header {word}=1"),
    )
    return failing(draw, f"-header {pair(draw)}", own=own)
