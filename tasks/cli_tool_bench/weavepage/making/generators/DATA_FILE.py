import json

from _pages import TEXTS, broken, call, data, dump, page, template
from fuzz import Case


def common(draw):
    values = data(draw)
    more = draw.choice(("", "", f"title={draw.word()}", f"note={draw.word()} count={draw.integer(1, 9)}", "-w"))
    return call(draw, page(draw), values, more, "file") if "=" not in more else behind(call(draw, page(draw), values, "", "file"), more)


def behind(case, more):
    return Case(f"{case.command} {more}", case.files)


def boundary(draw):
    name = template(draw)
    show = "<%= JSON.stringify(Object.keys(locals)) %> <%- JSON.stringify(locals) %>\n"
    content = draw.choice(("{}", "[]", "null", "12", '"text"', "true", "", "[1, 2, [3]]", json.dumps(data(draw)), json.dumps({draw.choice(TEXTS): draw.json()}), '{"a b": 1, "class": 2}', '{"x": 1, "x": 2}', '{"\\u00e9": "\\ud83d\\ude42"}', " \n {\"n\": 1e3}\n"))
    more = draw.choice(("", "", f" extra={draw.word()}", " 0=zero"))
    return Case(f"{draw.tool} -f {draw.choice(('values.json', './values.json'))} {name}{more}", {name: show, "values.json": content})


def error(draw):
    name = template(draw)
    kind = draw.integer(0, 4)
    files = {name: page(draw), "data.json": dump(data(draw)), "folder/x": ""}
    if kind == 0:
        return Case(f"{draw.tool} {name} -f {draw.choice(('none.json', 'folder', 'no/such.json', f'{draw.word()}.json'))}", files)
    if kind == 1:
        return Case(f"{draw.tool} {name} -f data.json -i '%7B%7D'", files)
    if kind == 2:
        return Case(f"{draw.tool} {name} {draw.choice(('-f', '--data-file', '-f -w', '--data-file --strict'))}", files)
    if kind == 3:
        return Case(f"{draw.tool} {name} -f data.json", {**files, "data.json": draw.choice(("{", "oops", "[1,]", "{'a': 1}", '{"a":1}}', "undefined", "\ufeff{}"))})
    return broken(draw)
