from _pages import broken, call, data, dump, page, template
from fuzz import Case


def option(draw, path):
    return draw.choice((f"-o {path}", f"--output-file {path}", f"--output-file={path}", f"-o{path}", f"-o={path}"))


def common(draw):
    path = draw.choice((f"out-{draw.file('html')}", f"./out-{draw.file('txt')}", f"out-{draw.word()}", "'with space.html'", "größe.html", "made/page.html"))
    case = call(draw, page(draw), data(draw), f"{option(draw, path)}{draw.choice(('', '', ' -w'))}")
    return Case(case.command, {**case.files, "made/keep.txt": "keep\n"})


def boundary(draw):
    name = template(draw)
    kind = draw.integer(0, 4)
    values = {"data.json": dump(data(draw))}
    if kind == 0:  # an older, longer file is replaced
        return Case(f"{draw.tool} {name} -f data.json -o old.html", {name: page(draw, count=1), "old.html": draw.text(30), **values})
    if kind == 1:
        return Case(f"{draw.tool} {name} -f data.json -o first.html -o second.html", {name: page(draw), **values})
    if kind == 2:
        return Case(f"{draw.tool} {name} x={draw.word()} -o {name} && cat {name}", {name: "<%= x %>\n<%% kept %>\n"})
    if kind == 3:
        return Case(f"{draw.tool} {name} -f data.json -o step.html && {draw.tool} step.html -f data.json", {name: "<%%= title %> <%= count %>\n" + page(draw, count=1), **values})
    return Case(f"{draw.tool} {name} x=1 -o=-dash.html", {name: draw.choice(("", "\n", draw.word()))})


def error(draw):
    name = template(draw)
    files = {name: page(draw), "data.json": dump(data(draw)), "folder/x": ""}
    kind = draw.integer(0, 3)
    if kind == 0:
        return Case(f"{draw.tool} {name} -f data.json -o {draw.choice(('folder', 'no/such.html', 'data.json/x.html', '.', f'{draw.word()}/x'))}", files)
    if kind == 1:
        return Case(f"{draw.tool} {name} -f data.json {draw.choice(('-o', '--output-file', '-o -w', '--output-file -s'))}", files)
    if kind == 2:  # the old file stays
        return Case(f"{draw.tool} {name} -f data.json -o old.html", {**files, name: page(draw) + f"<%= no{draw.word()} %>", "old.html": draw.text(1)})
    return broken(draw, "-o result.html")
