from _documents import DROPS, broken, call, compact_json, document, full_json, some
from fuzz import Case

MORE = (*DROPS, "--trim")


def common(draw):
    spaces = f"--spaces {draw.integer(1, 8)}"
    kind = draw.integer(0, 2)
    if kind == 0:
        return call(draw, draw.file("json"), full_json(draw), [spaces, *some(draw, DROPS)])
    if kind == 1:
        return call(draw, draw.file("json"), compact_json(draw), [spaces, "--compact", *some(draw, DROPS[:6])])
    return call(draw, draw.file("xml"), document(draw), [spaces, *some(draw, (*MORE, "--compact", "--compact"))])


def boundary(draw):
    spaces = draw.choice(("0", "10", "11", "20", "-1", "2.0", "007", "1e1", "''"))
    if draw.chance(0.5):
        spaces = draw.choice((spaces, "abc", "2x", "-5", "999"))
        return call(draw, draw.file("xml"), document(draw), [f"--spaces {spaces}", *some(draw, ("--compact", "--trim"))])
    return call(draw, draw.file("json"), full_json(draw), [f"--spaces {spaces}", *some(draw, DROPS)])


def error(draw):
    if draw.chance(0.4):
        name = draw.file("json")
        return Case(f"{draw.tool} {name} --spaces {draw.choice(('abc', '-2', '-7', '2.5', '2x', 'two', '1e99'))}", {name: full_json(draw)})
    return broken(draw, f"--spaces {draw.integer(0, 4)}")
