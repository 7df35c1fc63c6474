from _records import broken, call, dump, extras, flat, nested

MORE = ("-s", "-s", "-H", "-q ''", "-v none", "-f id,owner.name", "-q \"'\"")
WIDE = ("-s", "-d ';'", "-H", "-v none")


def flag(draw):
    return draw.choice(("-p", "--pretty"))


def common(draw):
    if draw.chance(0.7):
        records = flat(draw, plain=True)
        for record in records[1:]:
            if draw.chance(0.3):
                record[draw.choice([*record])] = None
    else:
        records = [{key: value for key, value in record.items() if key != "tags"} for record in nested(draw)]
        for record in records:
            record["owner"] = {"name": record["owner"]["name"]}
    return call(draw, f"{flag(draw)} {extras(draw, MORE)}".strip(), dump(records))


def boundary(draw):
    data = draw.choice(
        (
            [{"a": draw.word() * draw.integer(3, 12)}],
            [{"a": " ".join(draw.words(12)), "b": draw.integer()}],
            [{" ".join(draw.words(3)): draw.word(), "b": " ".join(draw.words(9))}],
            [{"a": "ünï", "b": "日本語"}, {"a": "é" * 30, "b": draw.integer()}],
            [{"x": draw.integer()}],
            [{"a": draw.word(), "b": None, "c": draw.word() * 5}],
            [{"a": True, "b": "y" * draw.integer(11, 40)}],
        )
    )
    return call(draw, f"{flag(draw)} {extras(draw, WIDE)}".strip(), dump(data))


def error(draw):
    return broken(draw, flag(draw))
