from _pages import TEXTS, Style, broken, call, data, page, quote, template
from fuzz import Case


def variables(draw):
    """A template over texts alone, and the variables for it."""
    names = draw.words(draw.integer(1, 4))
    parts = [draw.choice((f"<%= {n} %>", f"<%- {n} %>", f"<%= {n}.length %>", f"<% if ({n} === '1') {{ %>one<% }} else {{ -%>\nother<% }} %>", f"<%= {n} + 1 %>")) for n in names]
    given = [quote(f"{n}={draw.choice((draw.word(), str(draw.integer(0, 3)), draw.choice(TEXTS), 'a=b'))}") for n in names]
    return "\n".join(parts) + "\n", " ".join(given)


def common(draw):
    if draw.chance(0.3):
        text, given = variables(draw)
        name = template(draw)
        return Case(f"{draw.tool} {name} {given}", {name: text})
    if draw.chance(0.25):
        values = data(draw)
        inner = page(draw, count=2)
        call_part = draw.choice(("<%- include('parts/row.html') %>\n", "<%- include('parts/row.html', {title: 'inner', extra: count}) -%>\n", "<% items.forEach(i => { %><%- include('parts/row.html', {note: i.name}) %><% }) %>\n"))
        case = call(draw, page(draw, count=1) + call_part + "end\n", values)
        return Case(case.command, {**case.files, "parts/row.html": inner + "<%= locals.extra %>"})
    return call(draw, page(draw), data(draw))


def boundary(draw):
    word = draw.word()
    text = draw.choice(
        (
            "",
            "\n",
            f"{word} without tags \\n \"quoted\" \u2028\n",
            "<%%= x %>",
            f"<%% a %%> {word} %%>",
            f"%> {word} -%>\nx _%>\ny",
            "<%=x%>|<%-x%>|<%#x%>|",
            f"a\r\n<% var y = 1 -%>\r\n<%= y %>{word}\r\n",
            "<%= `a\nb` %>\n<%= [1,2,\n3].join('-') %>",
            "  <%_ if (true) { _%>  \n  in\n  <%_ } _%>  \n" + word,
            "<%= // c\nx %><% // end %>after",
            "<%= '<%' + x %>",
            "<%= undefined %>|<%- null %>|<%= 0 %>|<%= false %>|<%= NaN %>|<%= '' %>",
            "<%= typeof locals.y %> <%= Object.keys(locals).sort() %>",
            "<%= x + 1 %> <%= Number(x) + 1 %>" + word,
            f"<%= '{word}'; %><%- x; %>",
            "\ufeffstart <%= x %>",
        )
    )
    name = template(draw)
    value = quote(draw.choice(TEXTS))
    return Case(f"{draw.tool} {name} x={value}{draw.choice(('', ' x=2', ' y=', ' --', ' =z'))}", {name: text})


def error(draw):
    return broken(draw, "", Style())
