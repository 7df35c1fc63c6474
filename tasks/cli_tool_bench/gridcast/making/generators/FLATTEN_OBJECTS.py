from _records import TEXTS, broken, call, dump, extras, flat, nested, orders

MORE = ("--flatten-separator _", "--flatten-separator=__", "--flatten-separator '->'", "--flatten-arrays", "--unwind=items", "-s", "-s", "-H", "-v none")


def common(draw):
    records = draw.choice((nested, nested, orders))(draw)
    if draw.chance(0.4):
        for record in records:
            record["more"] = draw.json(3)
    return call(draw, f"--flatten-objects {extras(draw, MORE)}".strip(), dump(records))


def boundary(draw):
    data = draw.choice(
        (
            [{"a": {"b": {}}}],
            [{"a": {"b": {"c": {"d": {"e": draw.integer()}}}}}],
            [{"a": None, "b": {"c": None}}],
            [{"a": {"b": 1}, "a.b": draw.integer()}],
            [{"a": {"": draw.word()}}],
            [{"": {"x": 1}}],
            [{"a": [{"b": 1}, {"c": [draw.integer()]}]}],
            flat(draw),
            [{"a": {draw.choice(TEXTS): draw.choice(TEXTS)}}],
            {},
            {"a": {"b": draw.number()}},
        )
    )
    looks = extras(draw, (*MORE, "-f a.b", "-f a,b"))
    return call(draw, f"--flatten-objects {looks}".strip(), dump(data))


def error(draw):
    return broken(draw, f"--flatten-objects {draw.choice(('', '--flatten-arrays', '--flatten-separator _'))}".strip())
