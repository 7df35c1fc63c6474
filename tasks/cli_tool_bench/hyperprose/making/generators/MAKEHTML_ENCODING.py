from _prose import EDGES, broken, document, source
from fuzz import Case

NAMES = ("utf8", "utf-8", "UTF-8", "latin1", "binary", "ascii", "hex", "base64", "base64url")


def option(draw, name):
    return draw.choice((f"-u {name}", f"--encoding {name}", f"--encoding={name}", f"-u{name}"))


def text(draw):
    return draw.choice((f"# {draw.word()} é\n\n*ü* {draw.word()} ß\n", f"- ñ {draw.word()}\n- ç\n", f"**{draw.word()}** “x” – y\n", f"> {draw.sentence()} ÿ\n", document(draw, 1)))


def common(draw):
    name = draw.choice((*NAMES, "latin1", "latin1", "utf8"))
    more = draw.choice(("", "", " -c noHeaderId", " -p github"))
    if draw.chance(0.2):
        return source(draw, text(draw), f"{option(draw, name)} -o out.html", "-q ")
    return source(draw, text(draw), option(draw, name) + more)


def boundary(draw):
    name = draw.choice((*NAMES, "LATIN1", "Hex"))
    if draw.chance(0.2):
        return source(draw, text(draw), f"-u latin1 {option(draw, name)}")
    return source(draw, draw.choice((*EDGES, "é", "日本語", "🙂 *x*", "\ufeff# bom\n")), option(draw, name))


def error(draw):
    file = draw.file("md")
    if draw.chance(0.6):
        bad = draw.choice(("utf9", "iso-8859-1", "cp1252", "utf-32", "latin2", "''", "UTF_8", draw.word(), "8"))
        return Case(f"{draw.tool} makehtml -i {file} {option(draw, bad)}", {file: text(draw)}) if bad != "''" else Case(f"{draw.tool} makehtml -i {file} {draw.choice(('-u', '--encoding'))}", {file: text(draw)})
    return broken(draw, option(draw, "latin1"))
