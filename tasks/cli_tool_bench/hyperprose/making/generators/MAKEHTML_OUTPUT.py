from _prose import EDGES, broken, document, source
from fuzz import Case


def option(draw, path):
    return draw.choice((f"-o {path}", f"--output {path}", f"--output={path}"))


def common(draw):
    path = draw.choice((draw.file("html"), draw.file("html"), f"./{draw.word()}", "'with space.html'", "größe.html", "made/page.html"))
    quiet = draw.choice(("", "-q ", "-q ", "-m ", "--quiet ", "--mute "))
    more = draw.choice(("", "", " -p original", " -c noHeaderId", " -c strikethrough tables", " -p github"))
    case = source(draw, document(draw), option(draw, path) + more, quiet)
    return Case(case.command, {**case.files, "made/keep": "x"})


def boundary(draw):
    name = draw.file("md")
    text = draw.choice((*EDGES, document(draw, 1), document(draw, 1)))
    kind = draw.integer(0, 4)
    if kind == 0:  # an older, longer file is replaced
        return Case(f"{draw.tool} -m makehtml -i {name} -o old.html", {name: text, "old.html": draw.text(30)})
    if kind == 1:
        return Case(f"{draw.tool} -q makehtml -i {name} -o one.html -o two.html", {name: text})
    if kind == 2:
        return Case(f"{draw.tool} makehtml -i {name} -o {name} && cat {name}", {name: text})
    if kind == 3:  # without a value, standard output
        return Case(f"{draw.tool} makehtml -i {name} {draw.choice(('-o', '--output'))}", {name: text})
    return Case(f"{draw.tool} -q -m makehtml -i {name} -o out.html && wc -c < out.html", {name: text})


def error(draw):
    name = draw.file("md")
    if draw.chance(0.5):
        path = draw.choice(("folder", "no/such.html", f"{name}/x.html", ".", f"{draw.word()}/out.html"))
        return Case(f"{draw.tool} {draw.choice(('-q', '-m'))} makehtml -i {name} {option(draw, path)}", {name: document(draw, 1), "folder/x": ""})
    if draw.chance(0.3):
        return Case(f"{draw.tool} -m makehtml -i missing.md -o {draw.choice(('old', 'new'))}.html", {"old.html": draw.sentence()})
    return broken(draw)
