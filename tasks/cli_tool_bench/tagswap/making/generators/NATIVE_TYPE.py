from _documents import broken, call, document, full_json, some

MORE = ("--compact", "--compact", "--trim", "--spaces 2", "--no-attr", "--always-array", "--text-key v")
VALUES = ("0", "1", "-1", "1.0", "2.50", ".5", "5.", "007", "+3", "1e3", "0x1F", "0b101", "true", "false", "True", "FALSE", "yes", "null", "1,5", "12px", "1 2", "--1", "NaN", "1_000", " 7 ", " true ")


def values(draw):
    parts = []
    for _ in range(draw.integer(1, 6)):
        name = draw.word()
        value = draw.choice((draw.choice(VALUES), draw.choice(VALUES), str(draw.integer(-999, 9999)), str(draw.number()), draw.date(), draw.word()))
        given = f' x="{draw.integer()}"' if draw.chance(0.3) else ""
        parts.append(f"<{name}{given}>{value}</{name}>")
    return f"<data>{''.join(parts)}</data>\n"


def common(draw):
    if draw.chance(0.1):
        return call(draw, draw.file("json"), full_json(draw), ["--native-type", *some(draw, ("--spaces 2", "--no-attr"))])
    return call(draw, draw.file("xml"), values(draw) if draw.chance(0.85) else document(draw), ["--native-type", *some(draw, MORE)])


def boundary(draw):
    value = draw.choice(("1e400", "-0", "123456789012345678901234567890", "0.1e-7", "Infinity", "-Infinity", "&#49;2", "<![CDATA[12]]>", "<!--12-->", "1<b/>true", "<b/>0", "٣", "1e21", "0xZZ", "tRuE", "true false", "\n42\n"))
    return call(draw, draw.file("xml"), f"<{draw.choice('abc')}>{value}</a>".replace("<b>", "<a>").replace("<c>", "<a>"), ["--native-type", *some(draw, MORE)])


def error(draw):
    return broken(draw, " ".join(["--native-type", *some(draw, MORE)]))
