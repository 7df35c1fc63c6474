"""Messages in careless layout, and calls that fail."""

from fuzz import Case, quote

STRINGS = (
    "caf\u00e9",
    "日本語",
    "it\\'s",
    'say \\"hi\\"',
    "a\\nb",
    "back\\\\slash",
    "",
    " ",
    "<b>bold</b>",
    "# no comment",
    "{x}",
    "%d",
    "\\x41\\101",
    "tab\\t",
    "🙂",
)


def text(draw):
    inner = draw.choice(STRINGS) if draw.chance(0.3) else draw.sentence(draw.integer(1, 5))
    if draw.chance(0.25):
        return "'" + (inner.replace("\\'", "'").replace("'", "") + draw.choice(("", '"q"'))) + "'"
    return f'"{inner}"'


def scalar(draw):
    return draw.choice(
        (
            text(draw),
            text(draw),
            str(draw.integer(-50, 999)),
            str(draw.number(-9, 9)),
            draw.choice(("true", "false", "ENUM_A", "1e10", "-inf", "0x1F", "1.5f")),
        )
    )


def gap(draw):
    return draw.choice(("\n", "\n", "\n", "\n\n", "\n\n\n\n"))


def comment(draw, share=0.15):
    return f"# {draw.sentence(2)}\n" if draw.chance(share) else ""


def colon(draw):
    return draw.choice((": ", ":", " : ", ":\t", ":  "))


def field(draw, depth, repeated=()):
    """Text of one field without a line end, possibly of several lines."""
    name = (
        draw.choice(repeated)
        if repeated and draw.chance(0.6)
        else draw.choice((draw.word(), draw.word(), f"{draw.word()}_id", "[pkg.ext.Name]"))
    )
    kind = draw.integer(0, 11)
    end = draw.choice(("", "", "", ",", ";"))
    if kind < 6 or depth <= 0:
        tail = f"  {draw.choice(('', ' '))}# {draw.word()}" if draw.chance(0.15) else ""
        return f"{name}{colon(draw)}{scalar(draw)}{end}{tail}"
    if kind == 6:
        strings = draw.choice(("\n", " ")).join(text(draw) for _ in range(draw.integer(2, 3)))
        return f"{name}:" + draw.choice((" ", "\n    ")) + strings
    if kind == 7:
        values = [
            str(draw.integer(-9, 99)) if draw.chance(0.5) else text(draw) for _ in range(draw.integer(0, 5))
        ]
        return f"{name}{colon(draw)}[" + draw.choice((",", ", ", " , ", ",\n  ")).join(values) + "]"
    if kind == 8:
        items = [f"{{ {draw.word()}: {draw.integer()} }}" for _ in range(draw.integer(1, 3))]
        return f"{name}: [" + draw.choice((", ", ",", ",\n")).join(items) + "]"
    opening, closing = draw.choice((("{", "}"), ("{", "}"), ("<", ">")))
    head = f"{name}{draw.choice((' ', ': ', '', ':'))}{opening}"
    if draw.chance(0.35):
        inner = draw.choice((" ", "  ", ", ", "; ")).join(
            f"{draw.word()}: {draw.integer(0, 99)}" for _ in range(draw.integer(0, 3))
        )
        return f"{head}{draw.choice(('', ' '))}{inner}{draw.choice(('', ' '))}{closing}{end}"
    return f"{head}{draw.choice(('', ' '))}\n{body(draw, depth - 1, draw.integer(0, 4), repeated)}{closing}{draw.choice(('', '', '  # end'))}"


def body(draw, depth, count, repeated=()):
    pad = draw.choice(("", "  ", "    ", "\t"))
    return "".join(
        f"{pad}{comment(draw)}{pad}{field(draw, depth, repeated)}{gap(draw)}" for _ in range(count)
    )


def message(draw, depth=2, repeated=()):
    head = draw.choice(
        ("", "", f"# {draw.sentence(3)}\n\n", "\n\n", "# proto-file: x.proto\n# proto-message: M\n")
    )
    return (
        head + body(draw, depth, draw.integer(3, 7), repeated) + draw.choice(("", "", f"\n# {draw.word()}\n"))
    )


def call(draw, flags, content):
    """A call that shows what happens: on standard input, or in place."""
    flags = " ".join(flag for flag in draw.sample(flags, len(flags)) if flag)
    name = draw.choice((draw.file("textproto"), "a b.pbtxt", draw.path("pb", 1)))
    if draw.chance(0.5):
        return Case(f"{draw.tool} -logtostderr {flags} < {quote(name)}".replace("  ", " "), {name: content})
    if draw.chance(0.25):
        return Case(
            f"{draw.tool} -logtostderr {flags} {quote(name)} other.pb".replace("  ", " "),
            {name: content, "other.pb": message(draw, 1)},
        )
    return Case(f"{draw.tool} -logtostderr {flags} {quote(name)}".replace("  ", " "), {name: content})


EDGES = (
    "",
    "\n\n",
    "# only\n",
    "a:1",
    "a:1 b:2,c:3;d{e:4}",
    "{ a: 1 }\n{ a: 2 }",
    "a {",
    "a { b {",
    "a: []",
    "a: [{}]",
    "a {}",
    "a { }\n",
    "a {\n}",
    "a: <>",
    "a:",
    "a",
    'a: "x" "y"',
    "a: 'x' # c\n'y' # d\n",
    "a: 'say \"hi\"'",
    'a: "it\'s"',
    "[a.b/c.d]: 1",
    "[ a . b ] { x: 1 }",
    "a: [\n  1, # one\n  2 # two\n  # end\n]",
    "a { # first\n  b: 1\n  # last\n}",
    "a: 1 # x\n\n\n# y\n\n# z\n\nb: 2",
    "a: 1\r\nb: 2\r\n",
    'a: "\ufeff日本"',
    "a { b: 1 # c\n}",
    "x: { y: [1,\n2] }",
    "a: -1 b: - 1",
    "a: 1, b: 2 c { d: 1 } e: 'f'",
    'a: "b"\n: 3' if False else 'a: ""',
    "z: 1\nz: 1\na: 2\na: 2\nz: 1",
    "m { k: 3 } m { k: 1 } m {} m { k: 2 }",
    'v: "b" v: "a" v: 3 v: "a"',
)
BROKEN = (
    'a: "open',
    "a: 'x\ny'",
    "a: 1 }",
    "a { : 1 }",
    "a { { b: 1 } }",
    "}",
    'a: [1 "x" "y"]',
    'a: "x\\',
    "a { b: 1 } }",
    "a: 1\n>\n",
    "a { ,, }",
    "s: ['a' 'b']",
    "a: 'it's'",
)


def edge(draw, flags):
    content = draw.choice(EDGES) + draw.choice(("", "\n"))
    return Case(
        f"{draw.tool} -logtostderr {flags} {draw.choice(('< in.pb', 'in.pb'))}".replace("  ", " "), {"in.pb": content}
    )


def failing(draw, flags, own=()):
    """Calls that end with an error; other files are formatted all the same."""
    kind = draw.integer(0, 9)
    if own and kind < 4:
        return Case(f"{draw.tool} -logtostderr {draw.choice(own)} in.pb", {"in.pb": message(draw, 1)})
    if kind < 7:
        content = (
            draw.choice(
                (message(draw, 0), f"# {draw.sentence(2)}\n", f"ok {{ {draw.word()}: {draw.integer()} }}\n")
            )
            + draw.choice(BROKEN)
            + "\n"
        )
        return Case(
            f"{draw.tool} -logtostderr {flags} {draw.choice(('< in.pb', 'in.pb', 'in.pb good.pb'))}".replace("  ", " "),
            {"in.pb": content, "good.pb": message(draw, 1)},
        )
    wrong = draw.choice(
        (
            "missing.pb in.pb",
            f"in.pb {draw.word()}/gone.pb",
            f"-{draw.word()} in.pb",
            "folder",
            "in.pb/x",
            f"--{draw.word()}=1 in.pb",
            "-dry_run=perhaps in.pb",
            "gone.pb",
        )
    )
    return Case(
        f"{draw.tool} -logtostderr {flags} {wrong}".replace("  ", " "), {"in.pb": message(draw, 1), "folder/x": ""}
    )


def repeats(draw):
    """Adjacent fields of the same name, and lists."""
    pool = [
        str(draw.integer(0, 30)),
        text(draw),
        text(draw),
        f'"{draw.word()}"',
        "true",
        f'"{draw.word()}"',
        str(draw.integer(0, 200)),
    ]
    lines = [f"{comment(draw, 0.1)}tag: {draw.choice(pool)}" for _ in range(draw.integer(3, 7))]
    lines.append(f"list: [{', '.join(draw.choice(pool) for _ in range(draw.integer(2, 6)))}]")
    inner = [f"  part: {draw.choice(pool)}" for _ in range(draw.integer(2, 4))]
    return "\n".join([*lines, "box {", *inner, "}"]) + "\n"


def records(draw):
    """Adjacent messages with the fields key and id."""
    lines = []
    for name in draw.sample(("item", "item", "other"), draw.integer(1, 2)):
        for _ in range(draw.integer(2, 5)):
            fields = [
                f"key: {draw.choice((text(draw), chr(34) + draw.word() + chr(34)))}",
                f"id: {draw.integer(0, 120)}",
                f"note: {draw.integer(0, 9)}",
            ]
            fields = draw.sample(fields, draw.choice((3, 3, 2, 1)))
            lines.append(
                f"{name} {{ {' '.join(fields)} }}"
                if draw.chance(0.5)
                else f"{comment(draw, 0.2)}{name}: {{\n{chr(10).join(fields)}\n}}"
            )
    return "\n".join(lines) + "\n"


def paragraphs(draw):
    """Fields with long texts."""
    lines = []
    for _ in range(draw.integer(2, 4)):
        sentence = " ".join(draw.sentence() for _ in range(draw.integer(1, 3)))
        shown = draw.choice(
            (
                sentence,
                sentence,
                sentence.replace(" ", "", 3),
                f"<p>{sentence}</p>",
                sentence.replace("e", "\u00e9"),
                sentence.replace(". ", ".\\n"),
            )
        )
        name, outer = draw.words(2)
        one = f'{name}: "{shown}"'
        commented = one + draw.choice(("", "", "  # why"))
        nested = f"{outer} {{\n{commented}\n  inner {{\n{one}\n}}\n}}"
        row = f"{outer}:\n \"{sentence[:15]}\"\n '{sentence[:9]}'"
        lines.append(draw.choice((commented, commented, nested, f"{outer} {{ {one} }}", row)))
    return "\n".join(lines) + "\n"


def angles(draw):
    """Messages in angle brackets."""
    return "".join(
        f"{draw.word()}{draw.choice((' ', ': '))}<{draw.choice((' ', chr(10)))}{draw.word()}: {scalar(draw)} {draw.word()} {draw.choice(('{ x: 1 }', '<y: 2>', '<>'))}{draw.choice((' ', chr(10)))}>\n"
        for _ in range(draw.integer(1, 3))
    )
