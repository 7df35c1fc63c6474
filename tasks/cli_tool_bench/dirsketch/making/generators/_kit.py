"""Folders to draw, and calls that fail."""

from fuzz import Case, quote

SUFFIXES = (
    ".txt",
    ".md",
    ".py",
    ".TXT",
    ".log",
    ".tar.gz",
    ".zip",
    ".jpg",
    ".mp3",
    ".exe",
    "",
    ".json",
    ".Md",
    ".c",
)
SPECIAL = (
    "a b.txt",
    "日本.md",
    "ünï.log",
    "it's.txt",
    'say"hi".md',
    "%s%d.txt",
    "-dash.txt",
    "semi;colon.py",
    "back\\slash.c",
    "(x).md",
    "[1].txt",
    "🙂.log",
)


def name(draw):
    kind = draw.integer(0, 9)
    if kind == 0:
        return draw.choice(SPECIAL)
    if kind == 1:
        return (
            f"file{draw.choice(('1', '2', '10', '010', '9', '100', '01'))}{draw.choice(('.txt', '-a', ''))}"
        )
    if kind == 2:
        return draw.word().capitalize() + draw.choice(SUFFIXES)
    return draw.word() + draw.choice(SUFFIXES)


def folder(draw, root="box", hidden=0.15, depth=3):
    """Files below a root, at most `depth` folders deep; no name is a file and a folder."""
    files, folders = {}, {root}
    for _ in range(draw.integer(3, 11)):
        place = root
        for _ in range(draw.integer(0, depth)):
            step = draw.choice(("src", "docs", "Lib", "v2", "v10", draw.word()))
            place += "/" + (f".{step}" if draw.chance(hidden) else step)
            if place in files:
                break
            folders.add(place)
        if place in files:
            continue
        path = f"{place}/{'.' if draw.chance(hidden) else ''}{name(draw)}"
        if path not in folders:
            files[path] = "x" * draw.choice((0, 1, draw.integer(2, 99), draw.integer(100, 4000)))
    if len(files) < 2:
        files |= {f"{root}/one.txt": "1", f"{root}/sub/two.md": "22"}
    files.pop(root, None)
    return {
        path: text for path, text in files.items() if not any(other.startswith(path + "/") for other in files)
    }


def extras(draw, options, most=2):
    """Further options that change the picture in a way that every machine shows alike."""
    return " ".join(draw.sample(options, draw.integer(0, most)))


def call(draw, flags, files, paths=("box",), prep=""):
    chosen = [draw.choice(paths)]
    command = " ".join(part for part in (draw.tool, flags, *map(quote, chosen)) if part)
    return Case(command, files, prep)


EDGE_PATHS = (
    "missing",
    "./box",
    "box/",
    "box/.",
    "box missing",
    "box box",
    "box/../box",
    "nowhere/at/all box",
    ".",
    "''",
)
EMPTY = "mkdir -p box/empty/deeper box/none"
LINKS = "mkdir -p box/far && ln -s far box/near && ln -s nowhere box/lost && ln -s ../box box/self && echo hi > box/far/hi.txt && ln -s far/hi.txt box/hi"
DEEP = "mkdir -p box/a/b/c/d/e && echo 1 > box/a/b/c/d/e/f.txt && echo 22 > box/a/b/c/g.md && mkdir box/.h && touch box/.h/i"


def edge(draw, flags, more=()):
    """Odd folders and paths for one option."""
    prep = draw.choice((EMPTY, LINKS, DEEP, LINKS + "; " + EMPTY))
    files = folder(draw, depth=1) if draw.chance(0.5) else {f"box/{draw.word()}.txt": draw.word()}
    return Case(
        f"{draw.tool} {flags} {extras(draw, ('-Q', '--noreport', '-i', '-r', *more))} {draw.choice(EDGE_PATHS)}".replace(
            "  ", " "
        ),
        files,
        prep,
    )


def failing(draw, flags, own=()):
    """Calls that end with an error."""
    word = draw.word()
    wrong = draw.choice(
        (
            *own,
            f"--{word}",
            f"-L {word}",
            "-L 2.5",
            f"--sort {word}",
            f"--sort={word.upper()}",
            f"-o {word}/out.txt",
            "-o box",
            f"-z{word[0]}",
            "--noreport=perhaps",
            f"--max {draw.integer()}",
            "-L",
        )
    )
    parts = draw.sample((flags, wrong), 2) if wrong != "-L" else [flags, wrong]
    return Case(
        " ".join((draw.tool, *parts, *(("box",) if wrong != "-L" else ()))).replace("  ", " "),
        folder(draw, depth=1),
    )
