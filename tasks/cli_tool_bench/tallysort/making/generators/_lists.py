"""What the generators of this tool share: lists of entries with numbers in them."""

from fuzz import Case, quote

UNITS = ("kg", "m", "px", "s", "%", "")
SEPARATORS = ("-", "_", " ", "", ".", "v", "#")
UNICODE = (
    "größe 2",
    "größe 10",
    "ﬁ 3",
    "é10",
    "e\u03019",
    "日本3",
    "日本12",
    "²x",
    "x½",
    "٣ items",
    "x٢٠",
    "🙂 4",
    "🙂 11",
)


def plain(draw, count=0):
    """Return entries such as `amber-12` that share few words, so that numbers decide."""
    words = draw.words(draw.integer(1, 3))
    made = []
    for _ in range(count or draw.integer(5, 14)):
        word = draw.choice(words)
        if draw.chance(0.2):
            word = word.capitalize()
        number = draw.choice((draw.integer(0, 9), draw.integer(0, 20), draw.integer(90, 1200)))
        digits = str(number).zfill(draw.choice((1, 1, 1, 3)))
        entry = word + draw.choice(SEPARATORS) + digits
        if draw.chance(0.3):
            entry += draw.choice((".txt", "b", " of 12", "-2", "-10", "x7"))
        made.append(digits if draw.chance(0.08) else entry)
    return made


def decimals(draw, count=0, signs=True, exponents=True):
    """Return entries with signs, decimals and exponents."""
    words = draw.words(draw.integer(1, 2))
    made = []
    for _ in range(count or draw.integer(6, 14)):
        sign = draw.choice(("", "-", "+", "-")) if signs else ""
        value = draw.choice(
            (
                str(draw.integer(0, 30)),
                f"{draw.number(0, 12):.2f}",
                f"{draw.number(0, 3):.1f}",
                f".{draw.integer(1, 99)}",
                f"{draw.integer(1, 9)}.",
            )
        )
        if exponents and draw.chance(0.4):
            value += draw.choice(("e2", "e-1", "E3", "e+1", "e1", "e"))
        made.append(
            f"{draw.choice(words)}{draw.choice((' ', '', '=', ' ('))}{sign}{value}{draw.choice(UNITS)}"
        )
    return made


def paths(draw, count=0):
    """Return paths with numbers in folders, names and extensions."""
    folders = draw.words(2)
    names = draw.words(2)
    made = []
    for _ in range(count or draw.integer(6, 14)):
        folder = draw.choice(folders)
        folder += draw.choice(
            ("", "", f" ({draw.integer(1, 12)})", str(draw.integer(1, 12)), f"-{draw.integer(1, 3)}")
        )
        lead = draw.choice(("", "", "/", "./", "../"))
        middle = draw.choice(("", "", "", f"part{draw.integer(1, 20)}/", "sub/", "/"))
        name = draw.choice(names) + draw.choice(
            (
                "",
                str(draw.integer(1, 30)),
                f" ({draw.integer(1, 12)})",
                f"_{draw.integer(1, 9)}.{draw.integer(1, 20)}",
            )
        )
        extension = draw.choice(
            (".txt", ".txt", ".tar.gz", ".csv", "", ".7z", ".backup", ".TXT", ".v2.tar.gz")
        )
        made.append(f"{lead}{folder}/{middle}{name}{extension}")
    return made


def mixed(draw):
    """Return entries with characters from everywhere."""
    made = draw.sample(UNICODE, draw.integer(3, 8)) + plain(draw, draw.integer(1, 4))
    if draw.chance(0.4):
        made += ["", "  ", " leading 3"]
    draw.random.shuffle(made)
    return made


def evil(draw):
    """Return entries that are awkward on one line, without line ends in them."""
    made = [text.replace("\n", " ") for text in (draw.evil() for _ in range(draw.integer(2, 6)))]
    return made + plain(draw, draw.integer(1, 3))


def given(draw, options, entries, style=""):
    """Return a case that passes entries to the tool as arguments, as a file on standard input, or through a pipe."""
    style = style or draw.choice(("arguments", "input", "input", "pipe", "output"))
    options = f" {options}" if options else ""
    text = "".join(f"{entry}\n" for entry in entries)
    if style == "arguments" and entries and not any(entry.startswith("-") for entry in entries):
        return Case(f"{draw.tool}{options} {' '.join(quote(entry) for entry in entries)}".replace("  ", " "))
    name = draw.file(draw.choice(("txt", "list", "log")))
    if style == "pipe":
        half = len(entries) // 2
        first, second = text[: len("".join(f"{e}\n" for e in entries[:half]))], ""
        second = text[len(first) :]
        return Case(f"cat one.txt two.txt | {draw.tool}{options}", {"one.txt": first, "two.txt": second})
    if style == "output":
        return Case(
            f"{draw.tool}{options} < {name} > sorted.out && head -n {draw.integer(1, 4)} sorted.out",
            {name: text},
        )
    if draw.chance(0.15):
        text = text.removesuffix("\n")
    elif draw.chance(0.1):
        text = text.replace("\n", "\r\n")
    return Case(f"{draw.tool}{options} < {name}", {name: text})


def wrong(draw, options=""):
    """Return a case of wrong usage that has nothing to do with a particular option."""
    options = f" {options}" if options else ""
    tail = draw.choice(
        (
            f"--{draw.word()}",
            f"--{draw.word()} {quote(draw.choice(plain(draw)))}",
            f"-t {draw.word()}",
            f"--number-type={draw.choice(('INT', 'double', 'decimal', '1', 'complex'))}",
            f"-f {draw.integer(5, 9)} {draw.integer(1, 4)}",
            f"-F {draw.integer(3, 9)} {draw.integer(-4, 2)}",
            f"--filter {draw.integer()}",
            f"-e {draw.word()}",
            f"--filter {draw.word()} {draw.integer()}",
            "-t",
            "-e",
            f"-Z{draw.integer()}",
        )
    )
    return Case(f"{draw.tool}{options} {tail} < list.txt", {"list.txt": "\n".join(plain(draw, 4)) + "\n"})


def span(draw, decimals=False):
    """Return the two ends of a range."""
    low = draw.choice((0, 1, 2, 5, 10, 100, draw.integer(-3, 20)))
    high = low + draw.choice((1, 3, 10, 15, 200, draw.integer(1, 60)))
    if decimals and draw.chance(0.5):
        return f"{low}.{draw.integer(0, 9)}", f"{high}.{draw.integer(0, 99)}"
    return str(low), str(high)
