"""Documents in strict and relaxed JSON, and calls that fail."""

import json

from fuzz import Case, quote

STRINGS = (
    "",
    "true",
    "null x",
    "12",
    "1.50",
    "007",
    "-",
    "it's",
    'say "hi"',
    "back\\slash",
    "two\nlines",
    "a\n\nb\n",
    " lead",
    "trail ",
    "# no comment",
    "// no",
    "a # b",
    "a, b",
    "{x}",
    "[",
    ":x",
    "http://a.example/b",
    "caf\u00e9",
    "日本",
    "🙂",
    "<b>&amp;</b>",
    "tab\there",
    "\u0007\u001f",
    "\b\f",
    "'''",
    "x'''y\"",
    "1e3",
    "0x1F",
    "false, maybe",
    "null # y",
    "\u2028",
    "   ",
    "C:\\dir\\new",
    "^\\d+$",
)
KEYS = (
    "a b",
    "x:y",
    "k#1",
    "{k}",
    "",
    "it's",
    "日本",
    "a.b",
    "-",
    "null",
    "1",
    "a//b",
    'q"q',
    "back\\",
    "ab,c",
    "\u00fc",
)
UNQUOTED = (
    "plain words here",
    "word, with comma",
    "http://x.example/y?z=1#frag",
    "5 apples",
    "true story",
    "a: b",
    "it's fine",
    "null-ish",
    "-",
    "3.4.5",
    "0123",
    "C:\\temp\\new",
    "50%",
    "#".join("ab"),
    "x {y} [z]",
    "日本 🙂",
)


def scalar(draw):
    return draw.choice(
        (
            draw.word(),
            draw.sentence(),
            draw.choice(STRINGS),
            draw.choice(STRINGS),
            draw.integer(-99, 9999),
            draw.number(-5, 5, 3),
            draw.choice((True, False, None)),
            draw.choice((1e21, 1e-7, 1e20, 123456789012, 0.1, 100000)),
        )
    )


def value(draw, depth):
    kind = draw.integer(0, 9)
    if depth <= 0 or kind < 4:
        return scalar(draw)
    if kind < 6:
        return [value(draw, depth - 1) for _ in range(draw.integer(0, 4))]
    return table(draw, depth - 1, 0)


def table(draw, depth=2, low=2):
    return {
        (draw.choice(KEYS) if draw.chance(0.2) else draw.word()): value(draw, depth)
        for _ in range(draw.integer(low, low + 3))
    }


def key_text(draw, key):
    plain = key and not any(c in "{}[],:\"'#\\/" or c.isspace() for c in key)
    if plain and draw.chance(0.8):
        return key
    return (
        json.dumps(key, ensure_ascii=draw.chance(0.3))
        if "'" in key or draw.chance(0.7)
        else "'" + json.dumps(key, ensure_ascii=False)[1:-1].replace('\\"', '"') + "'"
    )


def comment(draw, indent):
    return draw.choice(
        (
            f"{indent}# {draw.word()}",
            f"{indent}// {draw.sentence(2)}",
            f"{indent}/* {draw.word()}\n   {{ */",
            "",
        )
    )


def relaxed(draw, data, indent="", last=False):
    """A text that means the data; its strings may become others where they end in free text."""
    deeper = indent + draw.choice(("  ", "    ", "\t"))
    ends = draw.choice(("", ",")) if not last else ""
    if isinstance(data, dict):
        lines = []
        for key, inner in data.items():
            if draw.chance(0.15):
                lines.append(comment(draw, deeper))
            if isinstance(inner, str) and draw.chance(0.4):
                shown = draw.choice(
                    (
                        draw.choice(UNQUOTED),
                        draw.sentence(3),
                        f"'''\n{deeper}    {draw.word()}\n{deeper}      \"{draw.word()}\"\n{deeper}    '''",
                        f"'''{draw.word()} \\ {draw.word()}'''",
                    )
                )
                lines.append(f"{deeper}{key_text(draw, key)}: {shown}")
            else:
                lines.append(
                    f"{deeper}{key_text(draw, key)}{draw.choice((':', ' : ', ': '))}{relaxed(draw, inner, deeper)}"
                )
                if not isinstance(inner, (dict, list, str)) and draw.chance(0.2):
                    lines[-1] += f" {draw.choice(('#', '//'))} {draw.word()}"
        return "\n".join(("{", *lines, indent + "}")) + ends
    if isinstance(data, list):
        lines = [deeper + relaxed(draw, inner, deeper) for inner in data]
        return "\n".join(("[", *lines, indent + "]")) + ends
    return json.dumps(data, ensure_ascii=draw.chance(0.5)) + ends


def document(draw, depth=2, low=2):
    """Text of an object, strict or relaxed."""
    data = table(draw, depth, low)
    if draw.chance(0.35):
        return json.dumps(data, ensure_ascii=draw.chance(0.3), indent=draw.choice((None, 1, 2))) + "\n"
    text = relaxed(draw, data, last=True)
    if draw.chance(0.3):
        lines = text.split("\n")[1:-1]
        text = "\n".join(line.strip() if "'''" not in text else line for line in lines)
    return (
        draw.choice(("", "# head\n", "/* a\n b */ ", "\n\n")) + text + draw.choice(("", "\n", "\n// end\n"))
    )


EDGES = (
    "",
    " \n",
    "{}",
    "[]",
    "# only\n",
    "text",
    "3",
    "-0",
    "1e400",
    "00",
    "true",
    "nullx",
    '"a\\nb"',
    "[1 2\n3]",
    "[a, b\nc]",
    "{a:1,}",
    "[1,2,]",
    "a:1\na:2",
    "a:\n  b\n",
    "a: [",
    "{a:{b:[{}]}}",
    "[[],{},[[]]]",
    "'''x'''",
    "{a:'''\n  x\n   y\n  '''}",
    "{a: ''''''}",
    "\ufeff{a:1}",
    "a: 1.",
    "a: .5",
    "a: +1",
    "a: 1e",
    "a: 12 # c",
    "a: 12 c",
    "a: true,",
    'a: "x" # y',
    "{a: 'it\\'s'}",
    '{"\\u00e9": "\\ud83d\\ude42"}',
    "a: 1\r\nb: x\r\n",
    "{a\n:\n1}",
    "/*x*/[/*y*/1/*z*/]",
    "a: 123456789012345678",
    "a: 0.1e-9",
    "a: 1e21",
    "a: -1.50",
    "{a: null // n\n}",
    "b:1\na:2\nB:3\n10:4\n9:5",
)
BROKEN = (
    "{",
    "[1",
    '{"a": "x}',
    "{a 1}",
    "a b: 1",
    "{a: 1]",
    "[1}",
    "{a: }",
    ":1",
    "{,}",
    "{a:1} x",
    '"a" b',
    "{a:'''x}",
    '{"a": "\\q"}',
    '{"a": "\\u12"}',
    "[,]",
    "{a:1",
    "a",
    "{a: ]}",
    "[1,,2]",
    "{a:1,,b:2}",
    "/* open",
    '{"a":"x\ny"}',
    "[:]",
    "{ab c:1}",
    "]",
)


def call(draw, flags, text):
    name = draw.file(draw.choice(("json", "conf", "txt")))
    return Case(
        " ".join(part for part in (draw.tool, flags, draw.choice((name, f"< {name}"))) if part), {name: text}
    )


def failing(draw, flags):
    """Calls that fail: broken input, files that are not there, wrong options."""
    if draw.chance(0.6):
        bad = draw.choice(BROKEN)
        bad = (
            bad
            if bad[:1] not in "{[" or draw.chance(0.6) or bad in ("{", "[1")
            else f"# {draw.word()}\n{bad}"
        )
        return call(draw, flags, bad if bad != "a" else "{a")
    name = draw.file("json")
    quiet = "> /dev/null"  # the usage that follows a wrong option is not part of the case
    wrong = draw.choice(
        (
            f"missing-{name}",
            f"-{draw.word()} {name} {quiet}",
            f"--{draw.word()}=1 {name} {quiet}",
            f"{draw.word()}/{name}",
            f"-j=maybe {name} {quiet}",
            f"{name} {draw.word()} {quiet}",
            ".",
            quote(f"no {name}"),
        )
    )
    return Case(" ".join(part for part in (draw.tool, flags, wrong) if part), {name: document(draw)})


def edge(draw, flags):
    return call(draw, flags, draw.choice(EDGES) + draw.choice(("", "\n")))
