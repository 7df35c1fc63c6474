from _documents import DROPS, broken, call, compact_json, document, full_json, some
from fuzz import Case

MORE = ("--spaces 2", "--compact", "--trim", "--no-decl", "--no-attr", "--native-type")


def target(draw, ending):
    return draw.choice((draw.file(ending), draw.file(ending), f"./{draw.file(ending)}", draw.word(), "'with space.txt'", "größe.out"))


def common(draw):
    kind = draw.integer(0, 2)
    if kind == 0:
        return call(draw, f"in-{draw.file('json')}", full_json(draw), [f"--out {target(draw, 'xml')}", *some(draw, DROPS)])
    if kind == 1:
        return call(draw, f"in-{draw.file('json')}", compact_json(draw), ["--compact", f"--out {target(draw, 'xml')}", *some(draw, DROPS[:6])])
    return call(draw, f"in-{draw.file('xml')}", document(draw), [f"--out {target(draw, 'json')}", *some(draw, MORE)])


def boundary(draw):
    name, content = f"in-{draw.file('xml')}", draw.choice((document(draw), document(draw), "", "<a/>"))
    kind = draw.integer(0, 4)
    if kind == 0:  # an older, longer file is replaced
        return Case(f"{draw.tool} {name} --out old.json", {name: content, "old.json": draw.text(9)})
    if kind == 1:
        return Case(f"{draw.tool} {name} --out round.json && {draw.tool} round.json --out round.xml && cat round.xml", {name: document(draw)})
    if kind == 2:
        return Case(f"{draw.tool} {name} --out {name} && cat {name}", {name: content})
    if kind == 3:
        return Case(f"{draw.tool} {name} --out deep/{draw.file('json')} --out second.json", {name: content, "deep/keep": "x"})
    return Case(f"{draw.tool} {name} {draw.choice(('--compact ', ''))}--out", {name: content})


def error(draw):
    if draw.chance(0.5):
        name = f"in-{draw.file('xml')}"
        where = draw.choice(("folder", "no/such/file.json", f"{name}/x.json", "."))
        return Case(f"{draw.tool} {name} --out {where}", {name: document(draw), "folder/x": ""})
    return broken(draw, "--out result.json")
