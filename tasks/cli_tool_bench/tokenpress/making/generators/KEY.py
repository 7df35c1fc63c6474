from _kit import FUTURE, claims, edge_signing, failing, key, text, token
from fuzz import Case, quote


def common(draw):
    secret, name = key(draw), draw.choice(("key", "secret.txt", "a b.key", "keys/main", "日本"))
    flag = f"{draw.choice(('-key', '--key'))} {quote(name)}"
    if draw.chance(0.5):
        alg = draw.choice(("HS256", "HS384", "HS512"))
        files = {name: secret, "token.txt": token(claims(draw), secret, alg)}
        return Case(
            f"{draw.tool} {draw.choice((f'-verify token.txt {flag}', f'-verify - {flag} < token.txt', f'-key - -verify token.txt < {quote(name)}'))}",
            files,
        )
    files = {name: secret, "claims.json": text(draw, claims(draw))}
    return Case(
        f"{draw.tool} -alg HS256 {draw.choice((f'-sign claims.json {flag}', f'-sign - {flag} < claims.json', f'-key - -sign claims.json < {quote(name)}'))}",
        files,
    )


def boundary(draw):
    if draw.chance(0.5):
        return edge_signing(draw)
    secret = draw.choice(("", "\n", "{}", "k\n", " k ", "k" * 5000, "\u00e9"))
    source = draw.choice(("-key key", "-key +", "-key - < key", "-key key -key other", "-key /dev/null"))
    return Case(
        f"{draw.tool} -verify token.txt {source}",
        {"key": secret, "other": secret, "token.txt": token({"exp": FUTURE, "a": draw.integer()}, secret)},
    )


def error(draw):
    word = draw.word()
    own = (
        ("-verify token.txt", "-key other"),
        ("-verify token.txt", f"-key {word}"),
        ("-sign claims.json", "-alg HS256", "-key ''"),
        ("-sign claims.json", "-alg HS384", f"-key {word}/key"),
        ("-sign claims.json", "-alg RS256", "-key key"),
        ("-verify token.txt", "-key ."),
        ("-verify token.txt", "-key +"),
        ("-sign claims.json", "-alg HS256", f"-keys {word}"),
    )
    return failing(draw, own=own)
