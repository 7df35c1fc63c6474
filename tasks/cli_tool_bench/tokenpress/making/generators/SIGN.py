from _kit import edge_signing, failing, pair, signing
from fuzz import Case


def common(draw):
    if draw.chance(0.2):
        return Case(
            f"{draw.tool} -sign + -alg {draw.choice(('HS256', 'HS384'))} -key key -claim {pair(draw)} -claim {pair(draw, 'more')}",
            {"key": draw.sentence()},
        )
    return signing(
        draw,
        draw.choice(("", "", "-compact", f"-claim {pair(draw)}", f"-header {pair(draw, 'kid')}")),
        alg=draw.choice((None, None, None, "none")),
    )


def boundary(draw):
    return edge_signing(draw, draw.choice(("", "", "-claim a=b", "-verify missing.txt", "-show missing.txt")))


def error(draw):
    word = draw.word()
    own = (
        ("-sign bad.json", "-alg HS256", "-key key"),
        (f"-sign {word}", "-alg none"),
        ("-sign claims.json", "-alg HS256"),
        ("-sign claims.json", "-key key"),
        ("-sign .", "-alg none"),
        ("-sign token.txt", "-alg HS384", "-key key"),
        ("-sign ''", "-alg none"),
    )
    return failing(draw, own=own)
