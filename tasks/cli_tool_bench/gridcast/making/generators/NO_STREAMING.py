from _records import LOOKS, broken, call, dump, extras, flat, nested, scalar


def flag(draw):
    return draw.choice(("-s", "--no-streaming"))


def common(draw):
    if draw.chance(0.7):
        records = flat(draw, draw.integer(2, 5))
        for record in records:
            for key in draw.words(draw.integer(0, 2)):
                record.setdefault(key, scalar(draw))
    else:
        records = nested(draw)
    return call(draw, f"{flag(draw)} {extras(draw, [*LOOKS, '--flatten-objects', '--flatten-arrays'])}".strip(), dump(records))


def boundary(draw):
    data = draw.choice(({}, [{}], [{}, {"a": 1}], [{"a": None}], [{"a": None}, {"b": None}], {"a": draw.word()}, [{"a": 1}, {}, {"b": draw.integer()}]))
    looks = extras(draw, [*LOOKS, "-f a", "-f zz,a", "-p"])
    return call(draw, f"{flag(draw)} {looks}".strip(), dump(data))


def error(draw):
    if draw.chance(0.5):
        text = draw.choice(("[]", "[1, 2]", '"text"', "12", "true", "", '[{"a": 1},', '[{"a": 1}', "{a: 1}", "nul", dump(flat(draw))[:-3]))
        return call(draw, f"{flag(draw)} {extras(draw, LOOKS)}".strip(), text)
    return broken(draw, flag(draw))
