"""Texts with numbers, and the ways to hand them to the tool."""

from __future__ import annotations

from fuzz import EVIL, Case, Draw, quote

EVEN = ("01", "1", "001", "10", "2", "02", "100", "0", "00", "9", "11", "1000000000000000000000", "20", "3")
EXPONENTS = (
    "1e3",
    "1e-2",
    "2E4",
    "5e",
    "e5",
    "1e3e2",
    "3.5e2",
    ".5e1",
    "7e+1",
    "12e0",
    "1e10",
    "100",
    "20",
    "0.5",
)


def version(draw: Draw) -> str:
    """Return a version with or without a letter in front."""
    numbers = [str(draw.choice((0, 1, 2, 3, 9, 10, 11, 100))) for _ in range(draw.integer(2, 4))]
    return (
        draw.choice(("", "v", "V", "rel-"))
        + ".".join(numbers)
        + draw.choice(("", "", "a1", "rc2", "-beta10"))
    )


def name(draw: Draw) -> str:
    """Return a name of a file with a number."""
    stem = draw.choice(("file", "img", "Img", "chapter", draw.word(), draw.word().upper()))
    return f"{stem}{draw.choice(('', '-', '_', ' ', ' ('))}{draw.choice(EVEN)}{draw.choice(('.txt', '.TXT', '', ').md'))}"


def decimal(draw: Draw) -> str:
    """Return a measure with decimals, or only such a number."""
    number = draw.choice(
        (f"{draw.number(0, 20, 2)}", f"{draw.integer(0, 30)}", f".{draw.integer(0, 99)}", "3.", "5.10", "5.9")
    )
    return draw.choice(("", "", f"{draw.word()} ", "x", "w=")) + number + draw.choice(("", " kg", "%", "s"))


def signed(draw: Draw) -> str:
    """Return a text with a number that has a sign."""
    number = draw.choice(
        (
            f"-{draw.integer(0, 40)}",
            f"+{draw.integer(0, 40)}",
            f"{draw.integer(0, 40)}",
            f"-{draw.number(0, 9, 1)}",
        )
    )
    return draw.choice(("t", "temp ", "a", "num", "")) + number + draw.choice(("", "", "C", " deg"))


def exponent(draw: Draw) -> str:
    """Return a text with a number that may have an exponent."""
    return (
        draw.choice(("", "", "a", "val ", "x=")) + draw.choice(EXPONENTS) + draw.choice(("", "", "m", " u"))
    )


def path(draw: Draw) -> str:
    """Return a path of a file."""
    folders = [
        draw.choice(("Folder", "Folder (1)", "Folder (10)", "Folder 2", "a", "b10", "b9", "..", "lib"))
        for _ in range(draw.integer(0, 3))
    ]
    last = draw.choice(
        ("file", "File", f"{draw.word()}{draw.choice(EVEN)}", "x1.10", "x1.9", "Folder", ".hidden", "a b")
    )
    suffix = draw.choice(
        ("", "/", ".txt", ".tar.gz", ".tar.10", ".json5", ".backup", ".x.y.z", " (2).txt", "-2.txt")
    )
    return draw.choice(("", "", "/", "./")) + "/".join([*folders, last + suffix])


KINDS = (version, name, decimal, signed, exponent)
UNICODE = (
    "é1",
    "e\u03012",
    "e3",
    "é10",
    "日本2",
    "日本10",
    "x²",
    "x3",
    "x①",
    "٣a",
    "½ cup",
    "0.75 cup",
    "ß1",
    "Ä2",
    "Z9",
    "🙂2",
    "🙂10",
)


def texts(draw: Draw, kind: object = None, low: int = 4, high: int = 12) -> list[str]:
    """Return texts, most of one kind, few of them twice."""
    chosen = kind or draw.choice(KINDS)
    found = [
        chosen(draw) if draw.chance(0.85) else draw.choice(KINDS)(draw)
        for _ in range(draw.integer(low, high))
    ]  # type: ignore[operator]
    return [*found, found[0]] if draw.chance(0.2) else found


def odd(draw: Draw) -> list[str]:
    """Return texts that trip careless programs."""
    return draw.choice(
        (
            [],
            [""],
            ["", "  ", "a"],
            draw.sample(UNICODE, draw.integer(2, 9)),
            draw.sample(EVIL, draw.integer(2, 8)),
            draw.sample(EVEN, draw.integer(2, 10)),
            [draw.choice(("a", "B", "b", "A")) + draw.choice(EVEN) for _ in range(draw.integer(3, 9))],
            ["9" * draw.integer(20, 60), "1" + "0" * draw.integer(20, 60), "5"],
            [f"  {draw.word()}{draw.integer(0, 20)}\t" for _ in range(4)],
            [draw.word()],
        )
    )


def call(draw: Draw, options: str, found: list[str]) -> Case:
    """Return a case whose texts come from standard input or are arguments."""
    lines = "".join(f"{text}\n" for text in found)
    if draw.chance(0.15):
        lines = lines.rstrip("\n")
    way = draw.integer(0, 4) if found and all(text.strip() and "\n" not in text for text in found) else 0
    words = " ".join(quote(text) for text in found)
    if way == 4 and not words.startswith(("-", "'-")) and " -" not in words and " '-" not in words:
        return Case(f"{draw.tool} {words} {options}")
    if way >= 3:
        return Case(f"{draw.tool} {options} -- {words}")
    file = draw.file("lst")
    if way == 1:
        return Case(f"cat {file} | {draw.tool} {options}", {file: lines})
    if way == 2 and options:
        return Case(f"{draw.tool} {options} < {file} > out.txt", {file: lines})
    return Case(f"{draw.tool} {options} < {file}", {file: lines})


def wrong(draw: Draw, option: str) -> Case:
    """Return a case with an error in its options, besides a sound option."""
    low = draw.integer(-5, 50)
    faults = (
        f"--{draw.word()}",
        f"-{draw.choice('xyzqwk')}",
        f"-t {draw.choice(('decimal', 'INT', 'complex', 'floats', 'x', quote('')))}",
        "-t",
        f"-f {low} {low - draw.integer(0, 9)}",
        f"-F {low} {low - draw.integer(0, 9)}",
        f"-f {low} {draw.word()}",
        f"-f {low}",
        f"-e {draw.word()}",
        f"--exclude={draw.choice(('1,2', '1-', 'x1', '--3'))}",
        f"--reverse={draw.word()}",
        f"--filter {draw.word()} {low}",
    )
    fault = draw.choice(faults)
    first, second = (option, fault) if draw.chance(0.5) else (fault, option)
    if fault in ("-t", f"-f {low}"):
        first, second = option, fault
    file = draw.file("lst")
    return Case(
        f"{draw.tool} {first} {second} < {file}", {file: "".join(f"{text}\n" for text in texts(draw))}
    )
