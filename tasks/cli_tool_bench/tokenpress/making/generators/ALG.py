from _kit import checking, edge_signing, failing, signing, text, claims, token
from fuzz import Case


def common(draw):
    kind = draw.integer(0, 9)
    if kind < 2:
        return Case(
            f"{draw.tool} -verify token.txt {draw.choice(('-alg none', '-alg=none', '--alg none'))}",
            {"token.txt": token(claims(draw), "", "none")},
        )
    if kind < 4:
        return checking(draw, "", data=claims(draw))
    return signing(draw, alg=draw.choice(("HS256", "HS384", "HS512", "none")))


def boundary(draw):
    files = {
        "claims.json": text(draw, claims(draw)),
        "key": draw.choice(("", "k", "x" * 300)),
        "token.txt": token(claims(draw), "k", draw.choice(("HS256", "HS384", "HS512"))),
    }
    if draw.chance(0.4):
        return edge_signing(draw)
    call = draw.choice(
        (
            "-verify token.txt -key key -alg HS512",
            "-verify token.txt -key key -alg unknown",
            "-verify token.txt -key key -alg ''",
            "-sign claims.json -alg none -key gone",
            "-sign claims.json -alg HS256 -alg HS384 -key key",
            "-show token.txt -alg nothing",
        )
    )
    return Case(f"{draw.tool} {call}", files)


def error(draw):
    word = draw.word()
    good = ("-sign claims.json", "-key key")
    own = (
        (*good, f"-alg {word}"),
        (*good, "-alg hs256"),
        (*good, "-alg ''"),
        (*good, "-alg None"),
        (*good, "-alg EdDSA"),
        (*good, f"-alg {draw.choice(('ES256', 'ES384', 'RS256', 'PS512'))}"),
        (
            "-verify token.txt",
            "-key key",
            f"-alg {draw.choice(('ES256', 'RS256', 'PS256', 'EdDSA', 'none'))}",
        ),
        (*good, f"-alg HS{draw.integer(1, 255)}"),
    )
    return failing(draw, own=own)
