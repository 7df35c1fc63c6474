"""Pairs of folders, shared by the generators of this tool."""

from __future__ import annotations

from fuzz import Case, Draw, quote

VIEWS = ("-a", "-a", "--show-all", "-d", "-e", "-l", "-r", "-l -r", "-d -e", "-lr", "-ad")
EXTENSIONS = ("", ".txt", ".js", ".md", ".test.js", ".log")
ODD_NAMES = (
    "a b.txt",
    "ünï.md",
    "日本.txt",
    ".hidden",
    "it's",
    "🙂.js",
    "[x].txt",
    "#1.log",
    "x,y.csv",
    "dash-.md",
)
PLACES = (("left", "right"), ("old", "new"), ("a", "b"), ("one", "two"), ("v1/src", "v2/src"), ("./x", "y/"))


def tree(draw: Draw, depth: int = 2) -> dict[str, str]:
    """Return files below a folder: relative path -> text."""
    files: dict[str, str] = {}
    for word in draw.words(draw.integer(2, 4)):
        name = draw.choice(ODD_NAMES) if draw.chance(0.12) else word + draw.choice(EXTENSIONS)
        if depth > 0 and draw.chance(0.4):
            files |= {f"{word}/{path}": text for path, text in tree(draw, depth - 1).items()}
        else:
            files[name] = draw.text(draw.integer(1, 2)) if draw.chance(0.85) else ""
    return files


def twin(draw: Draw, files: dict[str, str], change: float = 0.5) -> tuple[dict[str, str], dict[str, str]]:
    """Return the files of two folders, which differ in this share of the files."""
    left, right = {}, {}
    for path, text in files.items():
        kind = draw.integer(0, 6) if draw.chance(change) else 7
        folder, _, name = path.rpartition("/")
        if kind != 0:
            left[path] = text
        if kind == 1:
            continue
        if kind in (2, 3):
            text = text.swapcase() if text else ""
        elif kind == 4:
            text += draw.word()
        elif kind == 5:
            path = f"{folder}/{name.swapcase()}".lstrip("/")
        elif kind == 6 and draw.chance(0.4):
            path = f"{path}/{draw.word()}.txt"
        right[path] = text
    return left, right


def pair(draw: Draw, change: float = 0.5, depth: int = 2) -> tuple[str, str, dict[str, str]]:
    """Return two folders, neither of which is empty, and their files."""
    first, second = draw.choice(PLACES)
    left, right = twin(draw, tree(draw, depth), change)
    left.setdefault("same.txt", "same\n")
    right.setdefault("same.txt", "same\n")
    files = {f"{first.strip('./')}/{path}": text for path, text in left.items()}
    return first, second, files | {f"{second.strip('./')}/{path}": text for path, text in right.items()}


def told(draw: Draw, command: str) -> str:
    """Return a command that succeeds and tells the exit code of this one, or only its output at times."""
    return f'{command}; echo "code $?"' if draw.chance(0.75) else f"{command} | cat"


def compared(draw: Draw, options: str, prep: str = "", change: float = 0.5) -> Case:
    """Return a case that compares ordinary folders; it succeeds."""
    first, second, files = pair(draw, change)
    if draw.chance(0.15):
        first, second = second, first
    command = (
        f"{draw.tool} {options} {first} {second}"
        if draw.chance(0.7)
        else f"{draw.tool} {first} {second} {options}"
    )
    return Case(told(draw, command), files, prep)


def odd(draw: Draw, options: str, prep: str = "") -> Case:
    """Return a case that compares odd folders."""
    kind = draw.integer(0, 6)
    word = draw.word()
    text = draw.text()
    if kind == 0:
        return Case(
            f"{draw.tool} {options} {word} {word}",
            {f"{word}/{path}": one for path, one in tree(draw).items()},
            prep,
        )
    if kind == 1:
        return Case(
            told(draw, f"{draw.tool} {options} p q"),
            {f"p/{word}": text},
            f"mkdir -p q {draw.choice(('q/r', 'p/r', 'p/r/s'))}; {prep}",
        )
    if kind == 2:
        return Case(f"{draw.tool} {options} p q", {}, f"mkdir p q; {prep}")
    if kind == 3:
        return Case(
            told(draw, f"{draw.tool} {options} p/{word} q/{word}.x"),
            {f"p/{word}": text, f"q/{word}.x": text[: draw.choice((3, 999))]},
            prep,
        )
    if kind == 4:
        files = {f"p/{word}/a.txt": text, f"q/{word}": text, "p/z": "", "q/z": ""}
        return Case(told(draw, f"{draw.tool} {options} p q"), files, prep)
    if kind == 5:
        deep = "/".join(draw.words(7))
        return Case(
            told(draw, f"{draw.tool} {options} p q"),
            {f"p/{deep}/x": "1", f"q/{deep}/x": "2", f"q/{deep}.js": text},
            prep,
        )
    files = {
        f"{side}/{name}": draw.choice((text, text.upper(), ""))
        for side in "pq"
        for name in draw.sample(ODD_NAMES, 5)
    }
    return Case(told(draw, f"{draw.tool} {options} p q"), files, prep)


def failing(draw: Draw, options: str, prep: str = "", wrong: tuple[str, ...] = ()) -> Case:
    """Return a case that finds differences and does not hide its exit code, or that has an error."""
    first, second, files = pair(draw)
    kind = draw.integer(0, 5)
    missing = f"{draw.word()}-{draw.letters(3)}"
    if kind <= 1:
        files[f"{first.strip('./')}/ZZ-{draw.integer(100, 999)}/ZZ"] = (
            "only here"  # no pattern hides this folder
        )
        return Case(f"{draw.tool} {options} {first} {second}", files, prep)
    if kind == 2:
        return Case(
            f"{draw.tool} {options} {draw.choice((f'{first} {missing}', f'{missing} {second}'))}", files, prep
        )
    if kind == 3 and wrong:
        return Case(f"{draw.tool} {draw.choice(wrong)} {first} {second}", files, prep)
    if kind == 4:
        bad = draw.choice(
            ("-D --date-tolerance soon", "--date-tolerance=x", "-x -a", "-f -c", "--filter --csv")
        )
        return Case(f"{draw.tool} {first} {second} {bad}", files, prep)
    unknown = draw.choice(("--bogus", "-z", "--content", "-q", "--show", "--size", f"--{draw.word()}"))
    return Case(f"{draw.tool} {options} {first} {second} {unknown}", files, prep)


def patterns(draw: Draw, share: float = 0.4) -> str:
    """Return one to three glob patterns, quoted."""
    simple = (
        "*.txt",
        "*.js",
        "*.md",
        "*.log",
        "*.test.js",
        "/*.txt",
        "**/*.md",
        "[a-m]*",
        "?????",
        "same.*",
        "*e*",
        "**/[n-z]*/*",
        "/*/*",
    )
    found = [
        draw.word() + draw.choice(("", "*", ".*", ".txt")) if draw.chance(share) else draw.choice(simple)
        for _ in range(draw.integer(1, 3))
    ]
    return quote(",".join(f"/{one}" if draw.chance(0.1) and "/" not in one else one for one in found))
