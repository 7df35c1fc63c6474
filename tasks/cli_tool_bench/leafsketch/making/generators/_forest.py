"""Folders to draw, shared by the generators of this tool."""

from __future__ import annotations

from fuzz import Case, Draw, quote

ODD_NAMES = (
    "a b.txt",
    "it's.md",
    "ünï.txt",
    "日本.txt",
    "$HOME",
    "semi;colon",
    "[box].c",
    "dash-.x",
    "🙂.png",
    "#1",
)
VERSIONS = ("v2", "v10", "v1", "v1.10", "v1.9", "V3", "file2", "file10", "File1", "9", "10", "08")
DECORATIONS = (
    "-F",
    "-Q",
    "-S",
    "-r",
    "-i",
    "-v",
    "--dirs-first",
    "--files-first",
    "--prune",
    "-f",
    "--sort version",
)
"""Options whose effects are independent of those that have a class."""


def name(draw: Draw) -> str:
    """Return the name of an entry."""
    if draw.chance(0.12):
        return draw.choice(ODD_NAMES)
    if draw.chance(0.15):
        return draw.choice(VERSIONS)
    word = draw.word().capitalize() if draw.chance(0.2) else draw.word()
    return word + draw.choice(("", "", ".txt", ".js", ".md", ".log", ".test.js", ".tar.gz"))


def grow(draw: Draw, top: str, depth: int = 3, hidden: float = 0.1) -> dict[str, str]:
    """Return files of a folder and of folders below it."""
    files: dict[str, str] = {}
    taken: set[str] = set()
    for _ in range(draw.integer(1, 4)):
        entry = name(draw)
        if draw.chance(hidden):
            entry = f".{entry}"
        if entry in taken:
            continue
        taken.add(entry)
        if depth > 0 and draw.chance(0.45):
            files |= grow(draw, f"{top}/{entry}", depth - 1, hidden)
        else:
            files[f"{top}/{entry}"] = draw.text(draw.integer(1, 3)) if draw.chance(0.8) else ""
    return files


def forest(draw: Draw, depth: int = 3, hidden: float = 0.1) -> tuple[str, dict[str, str]]:
    """Return the name of a folder, and files of which at least three lie in it."""
    top = draw.word()
    files: dict[str, str] = {}
    while len(files) < 3:
        files = grow(draw, top, depth, hidden)
    return top, files


def empty_folders(draw: Draw, top: str) -> str:
    """Return a script that makes empty folders."""
    places = [f"{top}/zz-{word}" for word in draw.words(draw.integer(1, 2))]
    if draw.chance(0.5):
        places.append(f"{top}/zz-{draw.word()}/{draw.word()}")
    return "mkdir -p " + " ".join(map(quote, places))


def start(draw: Draw, top: str) -> str:
    """Return one of the ways to name a folder."""
    return draw.choice((top, top, top, f"./{top}", f"{top}/", f"{top}/.", f"./{top}/../{top}"))


def dressed(draw: Draw, most: int = 2, without: tuple[str, ...] = ()) -> str:
    """Return some options that change how entries look, with a blank before each."""
    choices = [option for option in DECORATIONS if option not in without]
    return "".join(f" {option}" for option in draw.sample(choices, draw.integer(0, most)))


def line(draw: Draw, place: str, options: str, before: float = 0.4) -> str:
    """Return a command with its options before or behind the folder.

    A long flag whose name has two words takes a word behind it as its value, so none stands before the folder.
    """
    if draw.chance(before) and not options.rpartition(" ")[2].startswith("--"):
        return f"{draw.tool} {options} {place}"
    return f"{draw.tool} {place} {options}"


def drawn(draw: Draw, options: str, depth: int = 3, hidden: float = 0.1) -> Case:
    """Return a case that draws a folder with these options, before or behind the folder's name."""
    top, files = forest(draw, depth, hidden)
    prep = empty_folders(draw, top) if draw.chance(0.25) else ""
    place = quote(start(draw, top))
    command = line(draw, place, options)
    if draw.chance(0.1):
        command = f"cd {quote(top)} && {draw.tool} {options}"
    return Case(command.strip(), files, prep)


def edge(draw: Draw, options: str) -> Case:
    """Return a case at a boundary: an empty folder, a file, a link, many entries, an odd name, or a deep path."""
    kind = draw.integer(0, 6)
    word = draw.word()
    if kind == 0:
        return Case(f"{draw.tool} {word} {options}", {}, f"mkdir {word}")
    if kind == 1:
        return Case(f"{draw.tool} {word}.txt {options}", {f"{word}.txt": draw.text()})
    if kind == 2:
        target = draw.choice(("sub", "sub/x.txt", "nowhere"))
        prep = f"ln -s {target} {word}/link-{draw.word()}"
        return Case(f"{draw.tool} {word} {options}", {f"{word}/sub/x.txt": "x", f"{word}/y.md": ""}, prep)
    if kind == 3:
        files = {f"{word}/{draw.choice(VERSIONS)}{n}": "x" * n for n in range(draw.integer(20, 40))}
        return Case(f"{draw.tool} {word} {options}", files)
    if kind == 4:
        top = draw.choice(("ünï", "日本", "a b", "it's", "-dash", "🙂", "..two", "x" * 60))
        return Case(
            f"{draw.tool} {quote('./' + top)} {options}", {f"{top}/{name(draw)}/{word}": "1", f"{top}/b": ""}
        )
    if kind == 5:
        deep = "/".join(draw.words(draw.integer(8, 14)))
        return Case(f"{draw.tool} {word} {options}", {f"{word}/{deep}/end": "z", f"{word}/{deep}.txt": ""})
    top, files = forest(draw, 2)
    other, more = forest(draw, 1)
    return Case(
        f"{draw.tool} {top} {other} {options}",
        files | {f"{path}": text for path, text in more.items() if top != other},
    )


def failing(draw: Draw, options: str) -> Case:
    """Return a case whose start does not exist, or whose exclude option is wrong."""
    top, files = forest(draw, 1, 0)
    kind = draw.integer(0, 5)
    missing = f"{top}-{draw.letters(4)}"
    if kind == 0:
        return Case(f"{draw.tool} {missing} {options}", files)
    if kind == 1:
        return Case(line(draw, f"{top}/{missing}", options, 0.8), files)
    if kind == 2:
        return Case(f"{draw.tool} {missing}.txt/{draw.word()} {options}", {f"{missing}.txt": draw.text(1)})
    if kind == 3:
        broken = draw.choice(
            ("[", "(", "*", "a{2,1}", "+x", "(?<", "x)", "[z-a]", "\\", "a|[", f"{draw.word()}|(")
        )
        return Case(f"{draw.tool} {top} {options} -I {quote(broken)}", files)
    if kind == 4:
        return Case(f"{draw.tool} {top} {options} {draw.choice(('-I', '--exclude'))}", files)
    form = draw.choice(("-I", "--exclude"))
    return Case(f"{draw.tool} {top} {options} {form} {draw.word()} {form} {draw.word()}", files)
