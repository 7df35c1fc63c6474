from _pages import broken, call, data, flags, page, template
from fuzz import Case


def flag(draw):
    return draw.choice(("-w", "--rm-whitespace"))


def spread(draw, text):
    """A template with more white space around its lines."""
    lines = []
    for line in text.split("\n"):
        lines.append(draw.choice(("", "  ", "\t", "      ")) + line + draw.choice(("", "", "  ", "\t ", "\r")))
        lines += [""] * draw.choice((0, 0, 1, 2))
    return "\n".join(lines)


def common(draw):
    return call(draw, spread(draw, page(draw)), data(draw), f"{flag(draw)} {flags(draw, ('-o out.html', '-l it'))}".strip())


def boundary(draw):
    name = template(draw)
    gap = draw.choice((" ", "\t", "\n", "  \n  ", "\r\n", "\r", "\u00a0", "\f", "\n\n\n"))
    text = draw.choice(
        (
            gap,
            f"{gap}a{gap}b{gap}",
            f"<%= x %>{gap}<%= x %>{gap}",
            f"<pre>{gap}keep  inner   spaces{gap}</pre>",
            f"a{gap}<% if (x) {{ %>{gap}b{gap}<% }} %>{gap}c",
            f"<%= `{gap}text{gap}` %>|",
            f"{gap}<%# none %>{gap}end",
            f"a{gap}<%_ var y = 1 _%>{gap}b -<%= y -%>{gap}c",
            "",
        )
    )
    return Case(f"{draw.tool} {name} {flag(draw)} x={draw.word()}", {name: text})


def error(draw):
    if draw.chance(0.2):
        name = template(draw)
        return Case(f"{draw.tool} {name} x={draw.word()} --rm-whitespace={draw.choice(('1', 'yes', ''))}", {name: draw.sentence()})
    return broken(draw, flag(draw))
