"""Templates, their data, and the errors that all classes share."""

import json
from urllib.parse import quote as encode

from fuzz import Case, quote

TEXTS = ("<b>bold</b>", "R&D", 'say "hi"', "it's", "ünïcödé", "日本語", "🙂", "", "two\nlines", "back\\slash", "a < b > c", "&amp;", "%>", "{{x}}", "${x}")


class Style:
    """How tags are written, and how the code reaches the data."""

    def __init__(self, opening="<", mark="%", closing=">", locals_name="locals", bare=True):
        self.opening, self.mark, self.closing, self.locals_name, self.bare = opening, mark, closing, locals_name, bare

    def tag(self, code, kind="", end="", gap=" "):
        return f"{self.opening}{self.mark}{kind}{gap}{code}{gap}{end}{self.mark}{self.closing}"

    def member(self, name):
        return name if self.bare else f"{self.locals_name}.{name}"


def data(draw):
    """Data that every template of `page` can be rendered with."""
    return {
        "title": draw.choice((draw.sentence(2), draw.choice(TEXTS), draw.choice(TEXTS))),
        "count": draw.integer(0, 12),
        "price": draw.number(1, 90),
        "admin": draw.chance(0.5),
        "note": draw.choice((None, draw.word(), draw.choice(TEXTS))),
        "user": {"name": draw.word(), "mail": draw.email()},
        "items": [{"name": draw.choice((draw.word(), draw.choice(TEXTS))), "qty": draw.integer(0, 9), "tags": draw.words(draw.integer(0, 2))} for _ in range(draw.integer(0, 4))],
    }


def block(draw, style):
    """A piece of a template, with a line end."""
    t, m = style.tag, style.member
    end = draw.choice(("", "-", "_"))
    kind = draw.choice(("=", "-"))
    dent = draw.choice(("", "  ", "\t"))
    slurp = "_" if draw.chance(0.4) else ""
    value = draw.choice(
        (
            m("title"),
            m("note"),
            f"{m('count')} * {draw.integer(2, 9)}",
            f"{m('title')}.toUpperCase()",
            f"{m('user')}.name",
            f"{m('user')}.missing",
            f"{m('admin')} ? 'yes' : \"no\"",
            f"{m('items')}.length",
            f"{m('items')}.map(i => i.name).join(', ')",
            f"{m('price')}.toFixed({draw.integer(0, 3)})",
            f"JSON.stringify({m('user')})",
            f"{style.locals_name}.absent",
            f"`<i>${{{m('count')}}}</i>`",
            f"{m('title')};",
            f"[{m('count')}, {m('admin')}]",
            f"{m('title')} // comment",
            f"{m('title')}.length % 2",
        )
    )
    which = draw.integer(0, 9)
    if which < 4:
        return f"{dent}<p>{t(value, kind)}</p>\n"
    if which == 4:
        return (
            f"{dent}{t('if (' + m('admin') + ') {', slurp, end)}\n{dent}  <b>{t(m('user') + '.name', '=')}</b>\n"
            f"{dent}{t('} else {', slurp, end)}\n{dent}  {draw.sentence(2)}\n{dent}{t('}', slurp, end)}\n"
        )
    if which == 5:
        return (
            f"<ul>\n{dent}{t(m('items') + '.forEach(function (item, i) {', slurp, end)}\n{dent}  <li>{t('i + 1', '=')}. {t('item.name', kind)} x {t('item.qty', '=')}</li>\n{dent}{t('})', slurp, end)}\n</ul>\n"
        )
    if which == 6:
        return f"{dent}{t('for (const item of ' + m('items') + ') { for (const tag of item.tags) {', slurp, end)}#{t('tag', '=')} {t('}}', slurp, end)}\n"
    if which == 7:
        return f"{dent}{t(draw.sentence(2), '#', draw.choice(('', '-')))}\n"
    if which == 8:
        return f"{dent}{t('let total = 0; ' + m('items') + '.forEach(i => { total += i.qty })', slurp, end)}\n{dent}Total: {t('total', kind)}\n" if draw.chance(0.5) else f"{dent}{t('var twice = ' + m('count') + ' * 2', slurp, end)}\n{dent}{t('twice', kind, end)}\n{dent}|\n"
    return f"{dent}{style.opening}{style.mark}{style.mark} {draw.word()} {style.mark}{style.closing} {draw.sentence(2)}\n"


def page(draw, style=None, count=0):
    """A whole template; at most one of its blocks declares `total`."""
    style = style or Style()
    blocks = []
    for _ in range(count or draw.integer(2, 5)):
        made = block(draw, style)
        if not ("let total" in made and any("let total" in other for other in blocks)):
            blocks.append(made)
        if draw.chance(0.2):
            blocks.append(draw.choice(("\n", "  \n\n", f"{draw.sentence()}\n", "<hr>\r\n", f'"{draw.word()}" \\ \'\n')))
    text = "".join(blocks)
    return text.rstrip("\n") if draw.chance(0.2) else text


def dump(value):
    return json.dumps(value, ensure_ascii=False) + "\n"


def template(draw):
    return draw.file(draw.choice(("html", "html", "txt", "tpl", "md")))


def call(draw, text, values, options="", how=""):
    """A call with the data handed over in one of the ways, and options before or behind the template."""
    name = template(draw)
    files = {name: text}
    how = how or draw.choice(("file", "file", "input", "stdin", "pipe"))
    before, after = "", ""
    if how == "file":
        files["data.json"] = dump(values)
        given = draw.choice(("-f data.json", "--data-file data.json", "--data-file=data.json", "-fdata.json"))
    elif how == "input":
        given = f"{draw.choice(('-i ', '--data-input ', '--data-input='))}{quote(encode(json.dumps(values, ensure_ascii=False), safe=chr(58)))}"
    else:
        files["data.json"] = dump(values)
        before, after, given = ("", " < data.json", "") if how == "stdin" else ("cat data.json | ", "", "")
    words = [given, options]
    if draw.chance(0.5):
        words.reverse()
    words.insert(draw.integer(0, 2), name)
    return Case(f"{before}{draw.tool} {' '.join(word for word in words if word)}{after}", files)


def broken(draw, options="", style=None):
    """One of the errors that every way of calling has."""
    style = style or Style()
    name, good = template(draw), page(draw, style, 2)
    values = dump(data(draw))
    files = {name: good, "data.json": values}
    kind = draw.integer(0, 8)
    calls = {
        0: f"missing-{name} -f data.json {options}",
        1: f"{name} -f missing.json {options}",
        2: f"{name} -f data.json {options} --{draw.word()}",
        3: f"{name} -f data.json {options} {draw.word()}",
        4: f"-f data.json {options}",
        5: f"{name} -f data.json {options} -{draw.choice('xyzq')}",
    }
    if kind in calls:
        return Case(f"{draw.tool} {calls[kind]}", files)
    if kind == 6:
        files["data.json"] = draw.choice(("{", "oops", "{'a': 1}", '{"a":}', '{"a":1} x'))
    elif kind == 7:
        t = style.tag
        files[name] += draw.choice((t(f"no{draw.word()}", "="), t("if (", ""), t("} else {", ""), t("null.x", "="), t("throw new Error('stop')", ""), f"{style.opening}{style.mark}= {style.member('title')}", t("include('missing.html')", "-"), t("1 +", "=")))
    else:
        return Case(f"{draw.tool} {name} -f data.json {options} -o no/such/{draw.file('html')}", files)
    return Case(f"{draw.tool} {name} -f data.json {options}", files)


def flags(draw, choices):
    return " ".join(draw.sample(choices, draw.choice((0, 0, 0, 1))))


__all__ = ["TEXTS", "Style", "broken", "call", "data", "dump", "encode", "flags", "page", "quote", "template"]
