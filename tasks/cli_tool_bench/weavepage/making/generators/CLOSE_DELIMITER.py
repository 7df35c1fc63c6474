from _pages import Style, broken, call, data, page, quote, template
from fuzz import Case

OPEN = ("[", "{", "(", "[[", "{{", "((", "«", "*", "$", "BEGIN", "^", "|", "\\")
CLOSE = ("]", "}", ")", "]]", "}}", "))", "»", "*", "$", "END", "^", "|", "/")


def pair(draw):
    """A style with this bracket replaced, and the options for it; the other bracket is often replaced, too."""
    place = draw.integer(0, len(OPEN) - 1)
    texts = {"opening": OPEN[place], "closing": CLOSE[place]}
    here = quote(texts["closing"])
    words = [draw.choice((f"-c {here}", f"--close-delimiter {here}", f"--close-delimiter={here}", f"-c={here}"))]
    style = {"closing": texts["closing"]}
    if draw.chance(0.5):
        style["opening"] = texts["opening"]
        words.append(f"-p {quote(texts['opening'])}")
    if draw.chance(0.3):
        style["mark"] = draw.choice(("?", "@", "!"))
        words.append(f"-m '{style['mark']}'")
    return Style(**style), " ".join(draw.sample(words, len(words)))


def common(draw):
    style, options = pair(draw)
    return call(draw, page(draw, style) + draw.choice(("", "<% untouched [%\n")) if style.opening not in "<[" else page(draw, style), data(draw), options)


def boundary(draw):
    style, options = pair(draw)
    o, d, c = style.opening, style.mark, style.closing
    name = template(draw)
    text = draw.choice((f"{o}{d}=x{d}{c}", f"{o}{d}{d} {d}{d}{c} {draw.word()}", f"{o} {d}{c} {c} {o}{d}# {draw.word()} -{d}{c}\n.", f" {o}{d}_ if (x) {{ _{d}{c} \n{o}{d}- x {d}{c}{o}{d} }} {d}{c}", f"{d}{c}{draw.word()}", ""))
    if draw.chance(0.2):
        return Case(f"{draw.tool} {name} --close-delimiter= x={draw.word()}", {name: "<%= x %>\n"})
    return Case(f"{draw.tool} {name} {options} x={draw.word()}", {name: text})


def error(draw):
    style, options = pair(draw)
    name = template(draw)
    if draw.chance(0.25):
        return Case(f"{draw.tool} {name} a=1 {draw.choice(('-c', '--close-delimiter', '-c -w', '--close-delimiter --strict', '-wc'))}", {name: draw.sentence()})
    if draw.chance(0.35):
        o, d, c = style.opening, style.mark, style.closing
        text = draw.choice((f"{o}{d}= x {d}", f"{o}{d}= y {d}{c}", f"{draw.word()} {o}{d}", f"{o}{d} if (x) {{ {d}{c}", f"{o}{d}# {draw.word()}"))
        return Case(f"{draw.tool} {name} {options} x=1", {name: text})
    return broken(draw, options, style)
