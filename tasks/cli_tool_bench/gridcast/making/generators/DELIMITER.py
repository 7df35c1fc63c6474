from _records import LOOKS, broken, call, dump, extras, flat, nested, quote

REST = [look for look in LOOKS if "-d" not in look]


def delimiter(draw, text):
    return draw.choice((f"-d {quote(text)}", f"--delimiter {quote(text)}", f"--delimiter={quote(text)}"))


def common(draw):
    mark = draw.choice((";", "|", "\t", "::", " ", ", ", "/", "~", "→", "#"))
    return call(draw, f"{delimiter(draw, mark)} {extras(draw, [*REST, '-s', '-f id,tags'])}".strip(), dump(draw.choice((flat, flat, nested))(draw)))


def boundary(draw):
    mark = draw.choice(("", '"', "\n", "\\t", "$&", "🙂", "\r\n", "x" * 50, "日本", "."))
    return call(draw, f"{delimiter(draw, mark)} {extras(draw, REST)}".strip(), dump(flat(draw)))


def error(draw):
    if draw.chance(0.2):
        return call(draw, draw.choice(("-d", "--delimiter")), dump(flat(draw)))
    return broken(draw, delimiter(draw, draw.choice((";", "|", "\t"))))
