from _prose import EDGES, broken, document, source
from fuzz import Case


def flag(draw):
    return draw.choice(("-a", "--append"))


def common(draw):
    out = draw.file("html")
    quiet = draw.choice(("-q ", "-m ", "-m ", ""))
    options = " ".join(draw.sample((flag(draw), f"-o {out}"), 2))
    case = source(draw, document(draw), options + draw.choice(("", "", " -p github", " -c noHeaderId")), quiet)
    old = {} if draw.chance(0.15) else {out: draw.choice((draw.text(2), "<header>\n", "no line end", ""))}
    return Case(case.command, {**case.files, **old})


def boundary(draw):
    one, two = draw.file("md"), f"second-{draw.file('md')}"
    files = {one: document(draw, 1), two: draw.choice(EDGES)}
    kind = draw.integer(0, 3)
    if kind == 0:
        return Case(f"{draw.tool} -m makehtml -i {one} -o all.html && {draw.tool} -m makehtml -i {two} {flag(draw)} -o all.html", files)
    if kind == 1:
        return Case(f"for f in {one} {two} {one}; do {draw.tool} -m makehtml -i $f -o all.html {flag(draw)}; done", files)
    if kind == 2:  # nothing to append to
        return Case(f"{draw.tool} makehtml {flag(draw)} -i {one}", files)
    return Case(f"{draw.tool} -q makehtml {flag(draw)} -i {one} -o {one}", files)


def error(draw):
    name = draw.file("md")
    files = {name: document(draw, 1), "folder/x": "", "old.html": draw.sentence()}
    kind = draw.integer(0, 2)
    if kind == 0:
        return Case(f"{draw.tool} -m makehtml -i {name} {flag(draw)} -o {draw.choice(('folder', 'no/such.html', f'{name}/x', '.'))}", files)
    if kind == 1:
        return Case(f"{draw.tool} -m makehtml -i {draw.choice(('missing.md', 'folder'))} {flag(draw)} -o old.html", files)
    return broken(draw, flag(draw))
