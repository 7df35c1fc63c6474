from _prose import EDGES, broken, document
from fuzz import Case, quote


def common(draw):
    name = draw.choice((draw.path("md", 2), draw.file("markdown"), "with space.md", "größe.md", draw.word(), f".{draw.word()}", draw.file("html")))
    shown = quote(draw.choice((name, f"./{name}")))
    option = draw.choice((f"-i {shown}", f"--input {shown}", f"--input={shown}", f"-i{shown}"))
    more = draw.choice(("", "", " -p github", " -c noHeaderId"))
    return Case(f"{draw.tool} {draw.choice(('', '--quiet ', '--mute '))}makehtml {option}{more}", {name: document(draw)})


def boundary(draw):
    one, two = draw.file("md"), f"second-{draw.file('md')}"
    files = {one: document(draw, 1), two: draw.choice(EDGES)}
    kind = draw.integer(0, 4)
    if kind == 0:  # without a value, standard input
        return Case(f"{draw.tool} makehtml {draw.choice(('-i', '--input', '-i -p ghost'))} < {one}", files)
    if kind == 1:  # the last one counts
        return Case(f"{draw.tool} makehtml -i {one} --input {two}", files)
    if kind == 2:
        return Case(f"{draw.tool} makehtml -i {one} < {two}", files)
    if kind == 3:
        return Case(f"{draw.tool} makehtml -i empty.md", {**files, "empty.md": ""})
    return Case(f"{draw.tool} makehtml -i {two}", files)


def error(draw):
    name = draw.file("md")
    kind = draw.integer(0, 3)
    files = {name: document(draw, 1), "folder/x": "", "empty.md": ""}
    if kind == 0:
        return Case(f"{draw.tool} makehtml -i {draw.choice((f'no-{name}', 'folder', f'folder/{name}', f'{name}/x', '.'))}", files)
    if kind == 1:
        return Case(f"cat {name} | {draw.tool} makehtml {draw.choice(('-i', '--input', '-i -p github', '-c tables -i'))}", files)
    if kind == 2:
        return Case(f"{draw.tool} makehtml {draw.choice(('-i', '--input', '--input='))} < empty.md", files)
    return broken(draw)
