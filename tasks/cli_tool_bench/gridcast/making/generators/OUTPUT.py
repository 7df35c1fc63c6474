from _records import LOOKS, broken, call, dump, extras, flat, nested
from fuzz import Case


def common(draw):
    out = draw.choice((draw.file("csv"), draw.file("tsv"), draw.word(), f"./{draw.file('csv')}", "'with space.csv'", "tägliche.csv"))
    option = draw.choice((f"-o {out}", f"--output {out}", f"--output={out}"))
    looks = extras(draw, [*LOOKS, "-s", "-s", "--flatten-objects", "-p"])
    return call(draw, f"{looks} {option}".strip(), dump(draw.choice((flat, flat, nested))(draw)))


def boundary(draw):
    name, out = draw.file("json"), draw.file("csv")
    kind = draw.integer(0, 3)
    text = dump(draw.choice(({}, [{}], [{"a": draw.word()}], flat(draw, 30))))
    if kind == 0:  # an older, longer file is replaced
        return Case(f"{draw.tool} -i {name} -o {out}", {name: text, out: draw.text(6)})
    if kind == 1:
        return Case(f"{draw.tool} -i {name} -o out/{out} {draw.choice(('', '-s'))} && cat out/{out}", {name: text, "out/keep.txt": "keep\n"})
    if kind == 2:
        return Case(f"{draw.tool} -i {name} -o one.csv -o {out} -b", {name: text})
    return Case(f"{draw.tool} -i {name} -o {out} -p && {draw.tool} -i {name} -H", {name: text})


def error(draw):
    if draw.chance(0.5):
        name = draw.file("json")
        target = draw.choice(("no/such/out.csv", "out", "in.json/out.csv", f"{draw.word()}/{draw.file('csv')}"))
        return Case(f"{draw.tool} -i {name} {draw.choice(('-s ', ''))}-o {target}", {name: dump(flat(draw)), "out/x": "", "in.json": ""})
    return broken(draw, "-s -o result.csv")
