"""Documents and assignments for all classes."""

import json

ODD = (
    "",
    "a b",
    "1st",
    "null",
    "for",
    "ünï",
    "日本",
    "$x",
    "_y",
    'q"q',
    "back\\slash",
    "a.b",
    "x-y",
    "new",
    "tab\there",
    "naïve9",
    "é-1",
)


def key(draw):
    return draw.choice(ODD) if draw.chance(0.25) else draw.word()


def scalar(draw):
    return draw.choice(
        (
            draw.word(),
            draw.sentence(),
            draw.integer(-500, 5000),
            draw.number(-9, 9, 3),
            True,
            False,
            None,
            draw.evil(),
            draw.email(),
        )
    )


def value(draw, depth=3):
    kind = draw.integer(0, 9)
    if depth <= 0 or kind < 3:
        return scalar(draw)
    if kind < 6:
        return [value(draw, depth - 1) for _ in range(draw.choice((0, 1, 2, 3, 12)))]
    return {key(draw): value(draw, depth - 1) for _ in range(draw.integer(0, 4))}


def document(draw, depth=3):
    kind = draw.integer(0, 9)
    if kind < 6:
        return {
            k: value(draw, depth - 1) for k in [draw.word(), *(key(draw) for _ in range(draw.integer(1, 4)))]
        }
    if kind < 9:
        return [value(draw, depth - 1) for _ in range(draw.integer(1, 5))]
    return scalar(draw)


def text(draw, data):
    return json.dumps(data, ensure_ascii=draw.chance(0.3), indent=draw.choice((None, 1, 2))) + "\n"


def quoted(word):
    return json.dumps(word, ensure_ascii=False)


def assignments(draw, data, path="json"):
    """Lines that describe a document; identifiers are told by a coarse rule, as both spellings are allowed."""
    plain = {dict: "{}", list: "[]"}.get(type(data)) or quoted(data)
    lines = [f"{path} = {plain};"]
    if isinstance(data, dict):
        for name, inner in data.items():
            bare = name.isascii() and name.isalpha() and draw.chance(0.8)
            lines += assignments(draw, inner, f"{path}.{name}" if bare else f"{path}[{quoted(name)}]")
    elif isinstance(data, list):
        for index, inner in enumerate(data):
            lines += assignments(draw, inner, f"{path}[{index}]")
    return lines


def pairs(data, path=()):
    """The same as `assignments`, as path and value."""
    plain = type(data)() if isinstance(data, (dict, list)) else data
    lines = [json.dumps([list(path), plain], ensure_ascii=False)]
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for name, inner in items:
        lines += pairs(inner, (*path, name))
    return lines


def shuffled(draw, lines):
    return draw.sample(lines, len(lines))


BAD_JSON = (
    "",
    "{",
    '{"a":}',
    "[1,",
    "{'a': 1}",
    "nope",
    '"open',
    "[1 2]",
    "{1: 2}",
    "tru",
    "-",
    '{"a" 1}',
    "]",
    "[,]",
)
BAD_LINES = (
    "json.a",
    "json[ = 1;",
    "json.a = nope;",
    "= ;",
    'json["a = 1;',
    "json.1a = 2;",
    "json[x] = 1;",
    "json.a =",
    "!",
    "json. = 3;",
)
EDGES = (
    "[]",
    "{}",
    "null",
    '""',
    "0",
    "-0.0",
    "1e400",
    "123456789012345678901234567890",
    "1E+2",
    '"\\u0000\\u001f\\u007f\\u2028"',
    '{"a":1,"a":2}',
    '{"":{"":[]}}',
    "[[[[[[1]]]]]]",
    '"\\ud83d\\ude42"',
    '"\\ud800"',
    "[1] [2]",
    " \n\t 7 \n",
    '{"a":1} trailing',
    '{"b":1,"B":2,"10":3,"9":4,"_":5}',
    '"<b>&amp;</b>"',
    "[0,1,2,3,4,5,6,7,8,9,10,11]",
)


def broken_call(draw, options):
    """Calls that fail whatever the input is."""
    name = draw.file("json")
    return draw.choice(
        (
            f"{draw.tool} {options} missing-{name}",
            f"{draw.tool} {options} --{draw.word()}",
            f"{draw.tool} -{draw.choice('xyzqw')} {options} {name}",
            f"{draw.tool} {options}=maybe {name}",
            f"{draw.tool} {options} {draw.word()}/{name}",
        )
    ), {name: text(draw, document(draw))}
