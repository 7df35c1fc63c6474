from _sheets import EDGES, broken, sheet
from fuzz import Case


def common(draw):
    name = draw.path("css", 1)
    files = {name: sheet(draw), "made/keep": "x"}
    if draw.chance(0.3):
        files[f"z-{draw.file('css')}"] = sheet(draw, 1)
    names = " ".join(file for file in files if file != "made/keep")
    out = draw.choice((f"out-{draw.file('css')}", f"./{draw.word()}.min", "'with space.css'", "größe.css", "made/all.css"))
    words = [f"--output {out}", names, *([draw.choice(("--max-line-len 30", "--cute-comments", "--ugly-comments", "--expand-vars"))] if draw.chance(0.3) else [])]
    return Case(f"{draw.tool} {' '.join(draw.sample(words, len(words)))}", files)


def boundary(draw):
    name, text = draw.file("css"), draw.choice((*EDGES, sheet(draw, 2)))
    kind = draw.integer(0, 5)
    if kind == 0:  # an older, longer file is replaced
        return Case(f"{draw.tool} {name} --output old.min", {name: text, "old.min": draw.text(40)})
    if kind == 1:
        return Case(f"{draw.tool} {name} --output {name} && cat {name}", {name: text})
    if kind == 2:
        return Case(f"{draw.tool} {name} --output a.min --output b.min", {name: text})
    if kind == 3:  # standard input is never written to a file
        return Case(f"{draw.tool} --output a.min < {name}", {name: sheet(draw, 2)})
    if kind == 4:  # without a value, standard output
        return Case(f"{draw.tool} {name} --output", {name: sheet(draw, 1)})
    return Case(f"{draw.tool} {name} --output one.min && {draw.tool} one.min --output two.min && cmp one.min two.min; cat two.min", {name: sheet(draw, 2)})


def error(draw):
    name = draw.file("css")
    if draw.chance(0.5):
        return Case(f"{draw.tool} {name} --output {draw.choice(('no/such.css', 'folder', f'{name}/x.css', '.', f'{draw.word()}/out.css'))}", {name: sheet(draw, 1), "folder/x": ""})
    if draw.chance(0.4):
        return Case(f"{draw.tool} {name} missing.css --output {draw.choice(('old', 'new'))}.min", {name: sheet(draw, 1), "old.min": draw.sentence()})
    return broken(draw, "--output out.min")
