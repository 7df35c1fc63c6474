from _pages import Style, broken, call, data, flags, page, template
from fuzz import Case

STYLE = Style(bare=False)


def flag(draw):
    return draw.choice(("-n", "--no-with"))


def common(draw):
    values = data(draw)
    case = call(draw, page(draw, STYLE), values, f"{flag(draw)} {flags(draw, ('-w', '-s', '--strict'))}".strip())
    if draw.chance(0.2):
        return Case(case.command, {**{name: text + "<%- include('part.txt', {more: 1}) %>" if "<%" in text and name != "data.json" else text for name, text in case.files.items()}, "part.txt": "<%= locals.more %> <%= locals.title %>\n"})
    return case


def boundary(draw):
    name = template(draw)
    text = draw.choice(
        (
            "<%= typeof x %> <%= locals.x %>",
            "<%= locals['x'] %>|<%= locals.y %>|",
            "<% var x = 'own' %><%= x %> <%= locals.x %>",
            "<% const {x, y = 'none'} = locals -%>\n<%= x %> <%= y %>\n",
            "<%- JSON.stringify(locals) %>",
            "no tags",
            "<% for (const k in locals) { %><%= k %>=<%= locals[k] %>;<% } %>",
            "<%= typeof include %>",
        )
    )
    more = draw.choice(("", f" y={draw.word()}", " locals=1", " -w"))
    return Case(f"{draw.tool} {flag(draw)} {name} x={draw.word()}{more}", {name: text})


def error(draw):
    if draw.chance(0.5):
        name = template(draw)
        word = draw.word()
        text = draw.choice((f"<%= {word} %>", f"<% if ({word}) {{ %>x<% }} %>", f"<%- {word}.length %>", f"<%= locals.{word} + missing %>", f"<%= locals.none.{word} %>"))
        if "missing" in text or "none" in text:
            return Case(f"{draw.tool} {name} {flag(draw)} {word}=1", {name: text})
        return Case(f"{draw.tool} {draw.choice(('-n', '--no-with', '-nw', '-n -l data'))} {name} {word}={draw.integer()}", {name: text})
    if draw.chance(0.2):
        name = template(draw)
        return Case(f"{draw.tool} {name} a={draw.word()} --no-with={draw.choice(('1', 'true', 'no'))}", {name: draw.word()})
    return broken(draw, flag(draw), STYLE)
