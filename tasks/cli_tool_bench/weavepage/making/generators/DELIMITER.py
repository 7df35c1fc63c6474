from _pages import Style, broken, call, data, page, quote, template
from fuzz import Case

MARKS = ("?", "$", "@", "|", "^", "*", ".", "!", "~", "+", "§", "&", "/", "::", "@@", "(x)")


def option(draw, mark):
    return draw.choice((f"-m {quote(mark)}", f"--delimiter {quote(mark)}", f"--delimiter={quote(mark)}", f"-m{quote(mark)}", f"-m={quote(mark)}"))


def common(draw):
    mark = draw.choice(MARKS[:11])
    text = page(draw, Style(mark=mark)) + draw.choice(("", "<%= untouched %>\n", "50% done %>\n"))
    return call(draw, text, data(draw), f"{option(draw, mark)}{draw.choice(('', '', ' -w'))}")


def boundary(draw):
    mark = draw.choice(MARKS)
    name = template(draw)
    text = draw.choice(
        (
            f"<{mark}=x{mark}>",
            f"<{mark}{mark} literal {mark}{mark}> <{mark}- x {mark}>",
            f"<{mark}# gone -{mark}>\n<{mark}= x {mark}>\n",
            f"  <{mark}_ if (x) {{ _{mark}>  \nyes <{mark} }} {mark}>\n",
            f"<%= x %> {mark} {mark}> < {mark}",
            "",
        )
    )
    if draw.chance(0.15):
        return Case(f"{draw.tool} {name} --delimiter= x=1", {name: f"<%= x %> {draw.word()}"})
    if draw.chance(0.15):
        return Case(f"{draw.tool} {name} -m '#' -m {quote(mark)} x={draw.word()}", {name: text})
    return Case(f"{draw.tool} {name} {option(draw, mark)} x={draw.word()}", {name: text})


def error(draw):
    mark = draw.choice(MARKS[:7])
    if draw.chance(0.3):
        name = template(draw)
        return Case(f"{draw.tool} {name} a=1 {draw.choice(('-m', '--delimiter', '-m -w', '-m -', '--delimiter -n'))}", {name: draw.sentence()})
    if draw.chance(0.3):
        name = template(draw)
        return Case(f"{draw.tool} {name} x=1 -m {quote(mark)}", {name: draw.choice((f"<{mark}= x %>", f"<{mark} {draw.word()}", f"<{mark}- y {mark}>", f"<{mark}= x <{mark}= x {mark}>"))})
    return broken(draw, f"-m {quote(mark)}", Style(mark=mark))
