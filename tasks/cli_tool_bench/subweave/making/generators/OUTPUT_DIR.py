"""Files that are written to a folder."""

from _cues import document, failing, run, strange
from fuzz import Case, quote

FLAG = ("-o", "--output-dir")
DEEP = ("out", "out", "a/b/c", "neu größe", "done", "./here", "x/y")


def common(draw):
    """Return a case that writes one to three files to a folder that is there or not."""
    files = {}
    for _ in range(draw.integer(1, 3)):
        _, name, text = document(draw, ("srt", "srt", "vtt", "tmp", "microdvd"))
        files[f"{draw.choice(('', '', 'in/', 'in/deep/'))}{name}"] = text
    folder = draw.choice(DEEP)
    options = f"{draw.choice(FLAG)} {quote(folder)}" + draw.choice(
        ("", "", " --to srt", " --to vtt", " --to tmp", " --shift 1.5s", " --clean")
    )
    names = " ".join(quote(name) for name in files)
    if draw.chance(0.2):
        files["out/old.srt"] = "old\n"
    return Case(f"{draw.tool} {options} {names}", files)


def boundary(draw):
    """Return a case with standard input, equal names, the same folder, or a file at the edge of its format."""
    kind, name, text = strange(draw)
    way = draw.integer(0, 3)
    if way == 0:
        return Case(
            f"{draw.tool} {draw.choice(FLAG)} {draw.choice(('out', 'deep/er'))} < {quote(name)}", {name: text}
        )
    if way == 1:
        other = document(draw, ("srt", "vtt"))[2]
        return Case(
            f"{draw.tool} -o {draw.choice(('out', 'all'))} one/a.srt two/a.srt",
            {"one/a.srt": other, "two/a.srt": document(draw, ("srt", "tmp"))[2]},
        )
    if way == 2:
        return Case(f"{draw.tool} {draw.choice(FLAG)} . {quote(name)}", {name: text})
    return run(draw, f"{draw.choice(FLAG)} out", name, text, kind)


def error(draw):
    """Return a case whose folder is a file, or with a missing file."""
    _, name, text = document(draw, ("srt", "vtt", "tmp"))
    if draw.chance(0.5):
        folder = draw.choice((name, f"{name}/deep", "", "taken"))
        return Case(
            f"{draw.tool} {draw.choice(FLAG)} {quote(folder) if folder else ''} {name}"
            if folder
            else f"{draw.tool} {name} {draw.choice(FLAG)}",
            {name: text, "taken": draw.text(1)},
        )
    return failing(draw, f"{draw.choice(FLAG)} {draw.choice(('out', 'a/b'))}")
