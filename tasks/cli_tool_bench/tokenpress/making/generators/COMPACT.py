from _kit import checking, failing, odd_tokens
from fuzz import Case


def common(draw):
    return checking(
        draw,
        draw.choice(("-compact", "--compact", "-compact=true", "-compact=1")),
        mode=draw.choice(("verify", "show")),
    )


def boundary(draw):
    shown, secret = odd_tokens(draw)
    flag = draw.choice(("-compact", "-compact=false", "-compact=T", "-compact -compact=0"))
    return Case(
        f"{draw.tool} {flag} {draw.choice(('-show token.txt', '-verify token.txt -key key', '-verify token.txt -alg none'))}",
        {"token.txt": shown, "key": secret},
    )


def error(draw):
    own = (
        ("-verify token.txt", "-key key", "-compact=maybe"),
        ("-show token.txt", f"-compact={draw.word()}"),
        ("-show bad.txt",),
        ("-verify token.txt", "-key other"),
        ("-show token.txt", "-compacted"),
    )
    return failing(draw, "-compact", own=own)
