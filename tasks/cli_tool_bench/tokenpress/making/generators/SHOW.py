from _kit import checking, failing, odd_tokens
from fuzz import Case


def common(draw):
    return checking(draw, draw.choice(("", "", "", "-compact", "-key key", "-alg none")), mode="show")


def boundary(draw):
    shown, _ = odd_tokens(draw)
    return Case(
        f"{draw.tool} -show token.txt {draw.choice(('', '-compact', '-key gone'))}".strip(),
        {"token.txt": shown},
    )


def error(draw):
    word = draw.word()
    own = (
        ("-show bad.txt",),
        (f"-show {word}",),
        ("-show claims.json",),
        ("-show key",),
        ("-show ''",),
        ("-show +",),
        ("-show token.txt", f"-{word}"),
        ("-show .",),
    )
    return (
        failing(draw, draw.choice(("-compact", "")), own=own)
        if draw.chance(0.8)
        else Case(f"{draw.tool} -show - < bad.txt", {"bad.txt": f"{word}.{word}"})
    )
