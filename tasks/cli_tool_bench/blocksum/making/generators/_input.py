"""Input for checksums, shared by the generators of this tool."""

from __future__ import annotations

from fuzz import EVIL, Case, Draw, quote

UNKNOWN = (
    "--bogus",
    "-z",
    "-dx",
    "--seeds=3",
    "-ux",
    "--Hex",
    "--hexadecimal",
    "-f",
    "--",
    "-1",
    "---",
    "-xX",
    "--format-s",
)


def text(draw: Draw) -> str:
    """Return an ordinary text."""
    kind = draw.integer(0, 4)
    if kind == 0:
        return draw.json_text(2, 2)
    if kind == 1:
        return draw.csv(draw.integer(3, 12))
    if kind == 2:
        return "".join(
            draw.choice(("größe", "naïve", "日本", "🙂", draw.word())) + " "
            for _ in range(draw.integer(3, 60))
        )
    return draw.text(draw.integer(1, 40))


def reading(draw: Draw, options: str) -> Case:
    """Return a case that reads an ordinary file, or standard input, with these options."""
    first, second = draw.sample(
        (f"{draw.word()}.txt", f"{draw.word()}.csv", draw.word(), "a b.md", "ünï.log"), 2
    )
    files = {first: text(draw)}
    name = quote(first)
    kind = draw.integer(0, 7)
    if kind == 0:
        return Case(f"{draw.tool} {options} < {name}", files)
    if kind == 1:
        return Case(f"cat {name} | {draw.tool} {options} -", files)
    if kind == 2:
        return Case(f"{draw.tool} {name} {options}", files)
    if kind == 3:
        files[second] = text(draw)
        return Case(f"cat {name} {quote(second)} | {draw.tool} {options}", files)
    if kind == 4:
        files[second] = text(draw)
        return Case(f'for f in {name} {quote(second)}; do {draw.tool} {options} "$f"; done', files)
    if kind == 5:
        files[second] = text(draw)
        return Case(f"{draw.tool} {options} {name} {quote(second)}", files)
    return Case(f"{draw.tool} {options} {name}", files)


def odd(draw: Draw, options: str) -> Case:
    """Return a case whose input is empty, large, binary or strange."""
    kind = draw.integer(0, 4)
    if kind == 0:
        return Case(
            draw.choice((f"{draw.tool} {options} < /dev/null", f"{draw.tool} none {options}")), {"none": ""}
        )
    if kind == 1:
        size = draw.choice((1, 3849, 3850, 3851, 5552, 5553, 65521, 65536, 100000, 300000, 1048576))
        byte = draw.choice(("\\\\377", "x", "\\\\000", "\\\\200", "\\\\001"))
        return Case(
            f"{draw.tool} {options} big", {}, f"head -c {size} /dev/zero | tr '\\000' '{byte[1:]}' > big"
        )
    if kind == 2:
        octets = "".join(f"\\{draw.integer(0, 255):03o}" for _ in range(draw.integer(1, 40)))
        return Case(f"printf '{octets}' | {draw.tool} {options}")
    if kind == 3:
        return Case(
            f"{draw.tool} {options} odd.txt",
            {"odd.txt": draw.choice([one for one in EVIL if one]) * draw.integer(1, 300)},
        )
    return Case(
        f"{draw.tool} {options} a",
        {"a": draw.choice(("a", "\r\n", "\n", "\t\t", "Wikipedia", "\x00", "\x7f", "\ufeffx"))},
    )


def failing(draw: Draw, options: str) -> Case:
    """Return a case without input, or with an unknown option."""
    name = f"{draw.word()}-{draw.letters(3)}.txt"
    kind = draw.integer(0, 3)
    if kind == 0:
        return Case(f"{draw.tool} {options} {name}", {draw.file(): text(draw)})
    if kind == 1:
        folder = draw.word()
        return Case(f"{draw.tool} {folder} {options}", {f"{folder}/{name}": text(draw)})
    if kind == 2:
        unknown = draw.choice((*UNKNOWN, f"--{draw.word()}", f"--{draw.word()}={draw.integer()}"))
        return Case(f"{draw.tool} {options} {unknown} {name}", {name: text(draw)})
    return Case(f"cat {draw.word()}.txt 2>&1 | {draw.tool} {options} {draw.choice(UNKNOWN)}", {})
