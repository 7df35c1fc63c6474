from _kit import edge_signing, failing, pair, signing
from fuzz import Case, quote


def common(draw):
    extra = [
        f"{draw.choice(('-claim', '--claim'))} {pair(draw, name)}"
        for name in draw.sample((None, "sub", "name", "roles", "x-1"), draw.integer(1, 3))
    ]
    case = signing(draw, *extra)
    if draw.chance(0.5):
        return Case(
            f"{case.command} | {draw.tool} -verify - -key key{draw.choice(('', ' -compact'))}", case.files
        )
    return case


def boundary(draw):
    odd = draw.choice(
        (
            "=",
            "a=",
            "=b",
            "a==b",
            "a=b=c",
            " a = b ",
            "\u00fc=日本",
            "a=<&>",
            "a=" + "z" * 500,
            "exp=5",
            "n=1",
            'q="x"',
            "a=\n",
            "a=\\",
        )
    )
    return edge_signing(draw, f"-claim {quote(odd)}", draw.choice(("", "-claim a=1", "-claim a=2")))


def error(draw):
    word = draw.word()
    good = ("-sign claims.json", "-alg HS256", "-key key")
    own = (
        (*good, f"-claim {word}"),
        (*good, "-claim ''"),
        (*good, f"-claim {word}:1"),
        (*good, f"-claim={word}"),
        (*good, f"-claims {word}=1"),
        ("-sign claims.json", "-key key", f"-claim {word}=1"),
        ("-sign bad.json", *good[1:], f"-claim {word}=1"),
    )
    return failing(draw, f"-claim {pair(draw)}", own=own)
