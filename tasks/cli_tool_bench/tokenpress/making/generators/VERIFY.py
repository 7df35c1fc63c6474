from _kit import FUTURE, PAST, checking, failing, key, odd_tokens, token
from fuzz import Case


def common(draw):
    return checking(draw, draw.choice(("", "", "-compact", "-claim a=b", "-show none.txt")))


def boundary(draw):
    shown, secret = odd_tokens(draw)
    return Case(
        f"{draw.tool} -verify token.txt {draw.choice(('-key key', '-key key', '-alg none', '-key + -alg none'))}",
        {"token.txt": shown, "key": secret},
    )


def error(draw):
    secret = key(draw)
    if draw.chance(0.4):
        data = {draw.word(): draw.integer()} | draw.choice(
            (
                {"exp": PAST},
                {"nbf": FUTURE},
                {"iat": FUTURE},
                {"exp": "x"},
                {"exp": True},
                {"iat": [1]},
                {"exp": draw.integer(1, 99)},
            )
        )
        return Case(
            f"{draw.tool} -verify token.txt -key key", {"token.txt": token(data, secret), "key": secret}
        )
    own = (
        ("-verify token.txt", "-key other"),
        ("-verify bad.txt", "-key key"),
        ("-verify token.txt", "-alg none"),
        ("-verify token.txt", "-key token.txt"),
        ("-verify claims.json", "-key key"),
        ("-verify gone", "-key key"),
        ("-verify token.txt", f"-key {draw.word()}"),
    )
    return failing(draw, own=own)
