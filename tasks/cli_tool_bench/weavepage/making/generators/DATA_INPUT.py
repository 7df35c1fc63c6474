import json

from _pages import TEXTS, broken, call, data, encode, page, quote, template
from fuzz import Case


def given(draw, text):
    return f"{draw.choice(('-i ', '--data-input ', '--data-input=', '-i'))}{quote(text)}"


def common(draw):
    if draw.chance(0.4):
        names = draw.words(3)
        values = {name: draw.choice((draw.word(), draw.integer(), draw.choice(TEXTS), draw.words(2), None)) for name in names}
        text = " ".join(f"<%{draw.choice('=-')} {name} %>" for name in names) + "\n"
        plain = json.dumps(values, ensure_ascii=False)
        name = template(draw)
        sent = plain if "%" not in plain and draw.chance(0.5) else encode(plain)
        more = f" {names[0]}={draw.word()}" if draw.chance(0.3) else ""
        return Case(f"{draw.tool} {name} {given(draw, sent)}{more}", {name: text})
    return call(draw, page(draw), data(draw), draw.choice(("", "", "-w")), "input")


def boundary(draw):
    name = template(draw)
    show = "<%- JSON.stringify(locals) %>\n"
    sent = draw.choice(("{}", "%7B%7D", "[]", "null", "3", "%22x%22", "", "{%22a%22:%22%2525%22}", '{"a": "+ +"}', "%7B%22e%22%3A%22%C3%A9%F0%9F%99%82%22%7D", '{"é": "日"}', '[["x"], {"y": 1}]', encode(json.dumps({draw.word(): draw.choice(TEXTS)})), encode(json.dumps(draw.json(3)))))
    more = draw.choice(("", "", f" {draw.word()}={draw.word()}"))
    return Case(f"{draw.tool} {name} --data-input={quote(sent)}{more}", {name: show})


def error(draw):
    name = template(draw)
    if draw.chance(0.3):
        return broken(draw)
    if draw.chance(0.3):
        return Case(f"{draw.tool} {name} {draw.choice(('-i', '--data-input', '-i -n', '--data-input -w'))}", {name: page(draw)})
    bad = draw.choice(("%", "%7", "%zz", "%C3", "{", "%7B", "oops", "{a:1}", '{"a":1}}', "%7B%22a%22%7D", "{'a':1}", "100%"))
    return Case(f"{draw.tool} {name} {given(draw, bad)}", {name: draw.word() + "\n"})
