"""Records, and the errors that all classes share."""

import json

from fuzz import Case, quote

TEXTS = (
    'say "hi"',
    "a,b",
    "ünïcödé",
    "日本語",
    "🙂",
    "two\nlines",
    "",
    " padded ",
    "it's",
    "semi;colon",
    "back\\slash",
    "=1+2",
    "null",
    "007",
)


def dump(value):
    return json.dumps(value, ensure_ascii=False) + "\n"


def lines(records):
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def scalar(draw, plain=False):
    kinds = [draw.word, lambda: draw.integer(-50, 5000), draw.number, draw.sentence, draw.date]
    kinds += [lambda: draw.chance(0.5)]
    if not plain:
        kinds += [lambda: None, lambda: draw.choice(TEXTS), lambda: draw.choice(TEXTS)]
    return draw.choice(kinds)()


def flat(draw, count=0, keys=None, plain=False):
    """Records with the same keys, of which later ones may lack some and have others."""
    keys = keys or draw.words(draw.integer(2, 4))
    records = [{key: scalar(draw, plain) for key in keys} for _ in range(count or draw.integer(1, 5))]
    if not plain:
        for record in records[1:]:
            if draw.chance(0.25) and len(record) > 1:
                record.pop(draw.choice(list(record)))
            if draw.chance(0.15):
                record["extra"] = draw.integer()
    return records


def nested(draw, count=0):
    """Records with an object of two levels and a list."""
    records = []
    for _ in range(count or draw.integer(1, 4)):
        record = {
            "id": draw.integer(1, 999),
            "owner": {"name": draw.word(), "place": {"city": draw.sentence(2), "zip": draw.integer(100, 999)}},
            "tags": draw.words(draw.integer(0, 3)),
        }
        if draw.chance(0.2):
            record["owner"]["note"] = draw.choice((None, {}, [], draw.choice(TEXTS)))
        records.append(record)
    return records


def orders(draw, count=0):
    """Records with lists of objects, which hold lists again."""
    records = []
    for _ in range(count or draw.integer(1, 3)):
        items = [
            {"sku": draw.word(), "qty": draw.integer(1, 20), "sizes": draw.sample(["S", "M", "L", "XL"], draw.integer(0, 3))}
            for _ in range(draw.integer(0, 3))
        ]
        records.append({"order": draw.integer(1, 999), "items": items, "tags": draw.words(draw.integer(0, 3))})
    return records


def broken(draw, options):
    """One of the errors that every way of calling has."""
    name = draw.file("json")
    good = dump(flat(draw))
    kind = draw.integer(0, 5)
    if kind == 0:
        return Case(f"{draw.tool} -i missing-{name} {options}", {name: good})
    if kind == 1:
        return Case(f"{draw.tool} -i {name} {options} --{draw.word()}", {name: good})
    if kind == 2:
        return Case(f"{draw.tool} {options} -i", {name: good})
    if kind == 3:
        bad = draw.choice(("oops\n", "nope", "]", "<a/>", "}{", "hello: world\n", ",", ":"))
        return Case(f"{draw.tool} -i {name} {options}", {name: bad})
    if kind == 4:
        return Case(f"{draw.tool} -i {name} {options} -o no/such/{draw.file('csv')}", {name: good})
    return Case(f"{draw.tool} -i {name} -c missing-{draw.word()}.json {options}", {name: good})


def extras(draw, choices):
    """Some of the options that change the look of the rows."""
    return " ".join(draw.sample(choices, draw.choice((0, 0, 1, 1, 2))))


LOOKS = ("-H", "-b", "-a", "-E", "-v none", "--default-value=?", "-q \"'\"", "-q ''", "-e ' / '", "-d ';'", "-Q '\\\"'")


def read(draw, name, text):
    """A way to hand a text to the tool: the option's words, what stands before the command, and files."""
    if draw.chance(0.25):
        return "", f" < {name}", {name: text}
    return draw.choice((f"-i {name} ", f"--input {name} ", f"--input={name} ")), "", {name: text}


def call(draw, options, text, extension="json"):
    given, after, files = read(draw, draw.file(extension), text)
    return Case(f"{draw.tool} {given}{options}".rstrip() + after, files)


__all__ = ["LOOKS", "TEXTS", "broken", "call", "dump", "extras", "flat", "lines", "nested", "orders", "quote", "read", "scalar"]
