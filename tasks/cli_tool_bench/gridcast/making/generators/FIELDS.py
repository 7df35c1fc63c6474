from _records import LOOKS, broken, call, dump, extras, flat, nested, orders, quote


def fields(draw, names):
    return draw.choice((f"-f {quote(names)}", f"--fields {quote(names)}", f"--fields={quote(names)}"))


def common(draw):
    kind = draw.integer(0, 2)
    if kind == 0:
        records = flat(draw)
        keys = draw.sample([*records[0]], draw.integer(1, 3))
        if draw.chance(0.3):
            keys.insert(draw.integer(0, len(keys)), draw.choice(("absent", "extra")))
    elif kind == 1:
        records = nested(draw)
        paths = ("id", "owner.name", "owner.place.city", "owner.place.zip", "owner.place", "tags[0]", "tags[1]", "owner.missing.deep", "tags.length")
        keys = draw.sample(paths, draw.integer(1, 4))
    else:
        records = orders(draw)
        keys = draw.sample(("order", "items[0].sku", "items[0].sizes[1]", "items[1].qty", "tags", "tags.1", "items[9].sku"), draw.integer(1, 4))
    looks = extras(draw, [*LOOKS, "-s"])
    return call(draw, f"{fields(draw, ','.join(keys))} {looks}".strip(), dump(records))


def boundary(draw):
    names = draw.choice(("a,a", "a,,b", ",", "a b", " a", "ünï", "it's", 'q"q', "b.", "[0]", "a.b", "nothing", "x" * 80, "b,a,c"))
    data = draw.choice(([], {}, [{}], [{"a": 1, "b": {"": 2}, "a b": 3}], [{"a.b": 1, "a": {"b": 2}}], [{"ünï": "é", "it's": 1, 'q"q': None, " a": 0}]))
    return call(draw, f"{fields(draw, names)} {extras(draw, LOOKS)}".strip(), dump(data))


def error(draw):
    if draw.chance(0.2):
        return call(draw, draw.choice(("-f", "--fields")), dump(flat(draw)))
    return broken(draw, fields(draw, ",".join(draw.words(2))))
