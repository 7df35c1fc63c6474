"""Claims, keys, tokens, and calls that fail."""

import base64
import hashlib
import hmac
import json

from fuzz import Case, quote

HASHES = {"HS256": hashlib.sha256, "HS384": hashlib.sha384, "HS512": hashlib.sha512}
FUTURE, PAST = 4102444800, 1000000000
VALUES = (
    "",
    "a b",
    "it's",
    "<b>&amp;</b>",
    "caf\u00e9",
    "日本語",
    "🙂",
    'say "hi"',
    "back\\slash",
    "two\nlines",
    "\u2028",
    "a=b",
    "%s",
    "-1",
    "null",
)


def value(draw, depth=1):
    kind = draw.integer(0, 9)
    if kind == 0 and depth:
        return [value(draw, 0) for _ in range(draw.integer(0, 3))]
    if kind == 1 and depth:
        return {draw.word(): value(draw, 0) for _ in range(draw.integer(0, 3))}
    return draw.choice(
        (
            draw.word(),
            draw.choice(VALUES),
            draw.email(),
            draw.integer(-9, 99999),
            draw.number(-5, 5),
            True,
            False,
            None,
            12345678901,
            1e21,
            0.0000001,
        )
    )


def claims(draw, low=1):
    data = {}
    for name in draw.sample(
        ("sub", "iss", "name", "admin", "roles", "scope", "n", "jti", draw.word(), "Z", "a b", "\u00fc"),
        draw.integer(low, 5),
    ):
        data[name] = value(draw)
    if draw.chance(0.3):
        data |= draw.choice(
            (
                {"exp": FUTURE},
                {"iat": PAST},
                {"nbf": PAST},
                {"exp": FUTURE, "iat": PAST},
                {"exp": 0},
                {"nbf": PAST + 0.5},
            )
        )
    return data


def text(draw, data):
    return json.dumps(data, ensure_ascii=draw.chance(0.3), indent=draw.choice((None, None, 2))) + draw.choice(
        ("", "\n")
    )


def key(draw):
    return draw.choice(
        (
            draw.letters(draw.integer(1, 40)),
            draw.sentence(),
            draw.word() + "\n",
            "caf\u00e9 日本",
            draw.letters(150),
            "0" * 64,
        )
    )


def part(data):
    shown = data if isinstance(data, str) else json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    return base64.urlsafe_b64encode(shown.encode()).rstrip(b"=").decode()


def token(data, secret, algorithm="HS256", header=None):
    """A signed token; its header names no type, as the usual name of such tokens must not be shown."""
    signed = f"{part({'alg': algorithm, **(header or {})})}.{part(data)}"
    if algorithm == "none":
        return signed + "."
    mac = hmac.new(secret.encode(), signed.encode(), HASHES[algorithm]).digest()
    return f"{signed}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


def headers(draw):
    return draw.choice(
        (
            {},
            {},
            {"kid": draw.word()},
            {"kid": draw.word(), "cty": "x"},
            {"typ": "at"},
            {"x": {"y": [1, draw.integer()]}, "b64": True},
        )
    )


def algorithm(draw):
    return draw.choice(("HS256", "HS256", "HS384", "HS512"))


def join(draw, *flags):
    parts = [flag for flag in flags if flag]
    return " ".join((draw.tool, *draw.sample(parts, len(parts))))


def signing(draw, *more, data=None, alg=None):
    """A call that signs the claims of a file or of standard input."""
    files = {"claims.json": text(draw, claims(draw) if data is None else data), "key": key(draw)}
    alg = alg or algorithm(draw)
    dash = draw.choice(("-", "-", "--"))
    source = draw.choice(("claims.json", "claims.json", "-"))
    command = join(
        draw, f"{dash}sign {source}", f"{dash}alg {alg}", "" if alg == "none" else f"{dash}key key", *more
    )
    return Case(command + (" < claims.json" if source == "-" else ""), files)


def checking(draw, *more, mode="verify", data=None, end=None):
    """A call that verifies or shows a valid token."""
    secret, alg = key(draw), algorithm(draw)
    shown = token(claims(draw) if data is None else data, secret, alg, headers(draw)) + (
        draw.choice(("", "\n", " \n\n")) if end is None else end
    )
    source = draw.choice(("token.txt", "token.txt", "-"))
    dash = draw.choice(("-", "-", "--"))
    flags = [f"{dash}{mode} {source}", *more]
    if mode == "verify":
        flags += [f"{dash}key key", draw.choice(("", "", f"-alg {algorithm(draw)}"))]
    return Case(
        join(draw, *flags) + (" < token.txt" if source == "-" else ""), {"token.txt": shown, "key": secret}
    )


EDGE_CLAIMS = (
    "{}",
    "null",
    '{"a":1,"a":2}',
    '{"n":1e400}',
    '{"n":12345678901234567890}',
    '{"n":1.0}',
    '{"n":-0.0}',
    '{"":""}',
    '{"a":"\\u0000\\ud800"}',
    '{"exp":"soon"}',
    ' {"a":1} ',
    '{"b":1,"B":2,"10":3,"9":4}',
    '{"a":[[[{}]]]}',
    "{",
    "[]",
    "1",
    '{"a":1}x',
    "",
    '{"n":1E-7}',
)


def edge_signing(draw, *more):
    alg = draw.choice(("HS256", "HS512", "none"))
    files = {"claims.json": draw.choice(EDGE_CLAIMS), "key": draw.choice(("", "\n", "k", "x" * 500))}
    return Case(join(draw, "-sign claims.json", f"-alg {alg}", "-key key", *more), files)


def odd_tokens(draw):
    """Tokens that are unusual, most of them not valid."""
    secret = "k"
    data = draw.choice(
        (
            {},
            {"exp": PAST},
            {"exp": FUTURE},
            {"exp": str(FUTURE)},
            {"nbf": FUTURE},
            {"iat": FUTURE},
            {"iat": None},
            {"exp": 0},
            {"a": "<&>"},
            {"n": 1e21, "m": 123456789012345678},
            {draw.word(): draw.choice(VALUES)},
        )
    )
    good = token(data, secret, algorithm(draw))
    head, body, mac = good.split(".")
    return draw.choice(
        (
            good,
            good,
            good,
            token(data, secret, "none"),
            good + "\n\n",
            f"{head}.{body}.",
            f"{head}.{part('[1]')}.{mac}",
            f"{part('x')}.{body}.{mac}",
            f"{head}.!!.{mac}",
            f"{part({'alg': 'XX'})}.{body}.{mac}",
            f"{part({})}.{body}.{mac}",
            f"{head}.{body}.{mac[::-1]}",
            "..",
            f"{head}=.{body}.{mac}",
        )
    ), secret


def failing(draw, *flags, own=()):
    """Calls that end with an error in signing or verifying."""
    secret, word = key(draw), draw.word()
    files = {
        "claims.json": text(draw, claims(draw)),
        "key": secret,
        "token.txt": token(claims(draw), secret),
        "bad.json": draw.choice(("{", "[1]", "text", '{"a":}', "1")),
        "bad.txt": draw.choice(("a.b", "x", "", "a.b.c.d", "no token\n")),
        "other": secret + "!",
    }
    good = ("-sign claims.json", "-alg HS256", "-key key")
    call = draw.choice(
        (
            *own,
            *own,
            ("-sign bad.json", *good[1:]),
            (f"-sign {word}.json", *good[1:]),
            (*good[:2], f"-key {word}.key"),
            (*good[:1], *good[2:], f"-alg {draw.choice(('HS1', 'hs256', word, 'HS257'))}"),
            (*good, f"-claim {word}"),
            (*good, f"-{word}"),
            (*good, f"-header {word}"),
            ("-verify token.txt", "-key other"),
            ("-verify bad.txt", "-key key"),
            ("-verify token.txt",),
            ("-verify token.txt", "-key key", "-alg RS256"),
            ("-show bad.txt",),
            (f"-show {word}.txt",),
            (*good[:1], *good[2:], f"-alg {draw.choice(('ES256', 'RS512', 'PS384', 'EdDSA'))}"),
            ("-alg HS256", "-key key"),
        )
    )
    keep = [flag for flag in flags if flag and flag.split()[0] not in {part.split()[0] for part in call}]
    return Case(join(draw, *keep, *call), files)


def pair(draw, key_name=None):
    """An additional claim or header parameter, quoted."""
    return quote(
        f"{key_name or draw.choice((draw.word(), 'sub', 'kid', 'a b', 'Z'))}={draw.choice((draw.word(), draw.integer(), draw.choice(VALUES), draw.email(), 'true'))}"
    )
