from _records import broken, call, dump, extras, nested, orders

MORE = ("--unwind-blank", "--unwind-blank", "--flatten-objects", "-H", "-v none", "-s", "-d ';'", "-a", "-q \"'\"")


def common(draw):
    if draw.chance(0.3):
        records, paths = nested(draw), draw.choice(("tags", "tags", "owner", "", "tags,id"))
    else:
        records, paths = orders(draw), draw.choice(("items", "tags", "items,tags", "tags,items", "items,items.sizes", "", "absent,tags"))
    looks = extras(draw, MORE)
    if draw.chance(0.4):
        looks += f" -f {draw.choice(('order,items.sku,tags', 'id,tags,owner.name', 'items.sku,items.sizes,order', 'tags'))}"
    unwind = draw.choice((f"--unwind {paths}", f"--unwind={paths}")) if paths else "--unwind"
    return call(draw, f"{looks} {unwind}".strip(), dump(records))


def boundary(draw):
    data = draw.choice(
        (
            [{"a": []}],
            [{"a": [], "b": draw.integer()}],
            [{"a": [[1, 2], [3]], "b": draw.word()}],
            [{"a": [None, draw.word(), None]}],
            [{"a": {"b": {"c": [1, {"d": [draw.integer(), 5]}]}}}],
            {"a": draw.words(20)},
            [{"a": draw.word()}, {"a": [1, 2]}],
            [{"b": 1, "a": [{"c": []}, {"c": [draw.integer()]}]}],
        )
    )
    paths = draw.choice(("a", "a.b.c", "a,a", "a,a.c", "b", "a.b.c,a.b.c.d", "zz"))
    return call(draw, f"{extras(draw, (*MORE[2:], '-f a,b'))} --unwind {paths}".strip(), dump(data))


def error(draw):
    return broken(draw, f"--unwind={draw.word()}")
