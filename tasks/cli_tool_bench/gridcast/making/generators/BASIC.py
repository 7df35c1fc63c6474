from _records import LOOKS, TEXTS, broken, call, dump, extras, flat, nested, orders


def common(draw):
    records = draw.choice((flat, flat, flat, nested, orders))(draw)
    data = records[0] if draw.chance(0.15) else records
    return call(draw, extras(draw, LOOKS), dump(data))


def boundary(draw):
    data = draw.choice(
        (
            {},
            [{"a": None, "b": 1}, {"b": None}, {"a": 2}],
            [{draw.choice(TEXTS): draw.choice(TEXTS), "k": draw.integer()}],
            [{"n": draw.choice((0, -0.5, 1e21, 1e-7, 123456789012)), "t": True, "f": False}],
            [{"a": draw.choice(TEXTS) * 20}],
            [{"a": {}, "b": [], "c": [[draw.integer()], {"d": draw.choice(TEXTS)}]}],
            [{"a.b": draw.integer(), "a": {"b": 2}}],
            flat(draw, 40),
        )
    )
    return call(draw, extras(draw, LOOKS), dump(data))


def error(draw):
    if draw.chance(0.3):
        return call(draw, draw.choice(("-s", "--no-streaming", "")), draw.choice(('"text"', f"{draw.integer()}", "true")))
    return broken(draw, extras(draw, LOOKS))
