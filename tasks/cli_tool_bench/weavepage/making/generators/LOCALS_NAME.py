from _pages import Style, broken, call, data, page, quote, template
from fuzz import Case

NAMES = ("_", "$", "data", "it", "self_", "ctx2", "_data", "$d", "V", "model", "page")


def option(draw, name):
    name = quote(name)
    return draw.choice((f"-l {name}", f"--locals-name {name}", f"--locals-name={name}", f"-l={name}"))


def common(draw):
    name = draw.choice(NAMES)
    bare = draw.chance(0.3)
    options = option(draw, name)
    if not bare:
        options = f"{draw.choice(('-n', '--no-with', '-s', ''))} {options}".strip()
    case = call(draw, page(draw, Style(locals_name=name, bare=bare)) + f"<%= {name}.count %>\n", data(draw), options)
    if draw.chance(0.2):
        return Case(case.command, {**{file: text + "<%- include('part.txt') %>" if file != "data.json" else text for file, text in case.files.items()}, "part.txt": f"[<%= {name}.title %>]\n"})
    return case


def boundary(draw):
    name = draw.choice((*NAMES, "a" * 60, "Z9", "__x"))
    file = template(draw)
    text = draw.choice((f"<%= {name}.x %> <%= typeof locals %>", f"<%- JSON.stringify({name}) %>", f"<%= x %> <%= typeof {name} %>", f"<%= {name}.nothing %>|", f"<% {name}.x = 'set' %><%= x %>", draw.sentence()))
    more = draw.choice(("", "", " y=2"))
    return Case(f"{draw.tool} {file} {option(draw, name)} x={draw.word()}{more}", {file: text})


def error(draw):
    file = template(draw)
    kind = draw.integer(0, 3)
    if kind == 0:
        bad = draw.choice(("1a", "a b", "a.b", "a-b", "é", "日本", "a;b", "{a}", "[a]", "9", "a=b", "(", "🙂"))
        return Case(f"{draw.tool} {file} {option(draw, bad)} x=1", {file: draw.choice(("<%= x %>", draw.word(), ""))})
    if kind == 1:
        name = draw.choice(NAMES)
        return Case(f"{draw.tool} {file} -n -l '{name}' x={draw.word()}", {file: draw.choice(("<%= locals.x %>", "<%= x %>", f"<%= {name}.a.b %>", "<%= locals %>"))})
    if kind == 2:
        return Case(f"{draw.tool} {file} x={draw.word()} {draw.choice(('-l', '--locals-name', '-l -n', '--locals-name -w', '-l class', '-l if', '--locals-name=for'))}", {file: "<%= 1 %>"})
    return broken(draw, "-n -l it", Style(locals_name="it", bare=False))
