"""Two versions of a table, and the calls that compare them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from fuzz import EVIL, Case, Draw, as_csv, quote

Row = dict[str, Any]
DELIMITERS = {"csv": ",", "tsv": "\t", "ssv": ";", "txt": ","}
UNICODE = (
    "naïve",
    "日本語",
    "🙂",
    "Ünï",
    'say "hi"',
    "a, b",
    "x;y",
    "",
    " padded ",
    "0",
    "None",
    "{id}",
    "line\nbreak",
    "a\tb",
)


@dataclass
class Pair:
    """Two versions of a table."""

    key: str
    old: list[Row]
    new: list[Row]

    def columns(self) -> list[str]:
        """Return the columns that both versions have."""
        return [name for name in self.old[0] if name in self.new[0]]


def value(draw: Draw, kind: str, *, typed: bool) -> Any:
    """Return a value of a cell."""
    if kind == "odd":
        return draw.choice((draw.choice(UNICODE), draw.word()))
    if typed and kind == "nested":
        return draw.choice(([1, draw.integer()], {"a": draw.word()}, None, True, False, [], draw.number()))
    found = {"word": draw.word, "integer": draw.integer, "number": draw.number, "date": draw.date}.get(
        kind, draw.word
    )()
    return found if typed else str(found)


def pair(draw: Draw, *, typed: bool = False, odd: bool = False, columns: bool = True, least: int = 1) -> Pair:
    """Return two versions of a table with rows that are changed (at least some), added, removed and moved."""
    names = draw.words(draw.integer(2, 4))
    key = draw.choice(("id", "id", "code", names[0]))
    others = [name for name in names if name != key]
    kinds = [
        draw.choice(
            (
                "word",
                "integer",
                "number",
                "date",
                *(("nested",) if typed else ()),
                *(("odd",) * 3 if odd else ()),
            )
        )
        for _ in others
    ]

    def row(identity: Any) -> Row:
        return {
            key: identity,
            **{name: value(draw, kind, typed=typed) for name, kind in zip(others, kinds, strict=True)},
        }

    style = draw.choice(("number", "number", "word"))
    identities = (
        draw.words(14) if style == "word" else [number if typed else str(number) for number in range(1, 15)]
    )
    count = draw.integer(2, 6)
    old = [row(identity) for identity in identities[:count]]
    new = [dict(line) for line in old]
    for line in draw.sample(new, draw.integer(least, 3)):
        for name, kind in draw.sample(list(zip(others, kinds, strict=True)), draw.integer(1, 2)):
            line[name] = value(draw, kind, typed=typed)
    for line in draw.sample(new[1:], draw.choice((0, 0, 1, 2))):
        new.remove(line)
    for identity in identities[count : count + draw.choice((0, 0, 1, 2))]:
        new.insert(draw.integer(0, len(new)), row(identity))
    if draw.chance(0.2):
        draw.random.shuffle(new)
    return (
        _columns(draw, Pair(key, old, new), kinds, typed=typed)
        if columns and draw.chance(0.35)
        else Pair(key, old, new)
    )


def _columns(draw: Draw, both: Pair, kinds: list[str], *, typed: bool) -> Pair:
    """Return the versions with a column more or less."""
    change = draw.choice(("add", "remove", "both", "rename"))
    if change != "remove":
        name = draw.choice(("extra", "note", "zone"))
        both.new = [{**line, name: value(draw, kinds[0], typed=typed)} for line in both.new]
    if change != "add" and len(both.old[0]) > 2:
        last = list(both.old[0])[-1]
        both.new = [{name: cell for name, cell in line.items() if name != last} for line in both.new]
    return both


def as_text(rows: list[Row], kind: str) -> str:
    """Return rows as a file of a kind: an extension of `DELIMITERS`, or `json`."""
    if kind == "json":
        return json.dumps(rows, ensure_ascii=False, indent=1 if len(rows) % 2 else None) + "\n"
    return as_csv([list(rows[0]), *([str(cell) for cell in row.values()] for row in rows)], DELIMITERS[kind])


def call(draw: Draw, both: Pair, options: str, kind: str = "", files: dict[str, str] | None = None) -> Case:
    """Return a comparison of both versions, the options before or behind the files."""
    kind = kind or draw.choice(("csv", "csv", "csv", "tsv", "ssv", "txt"))
    before, after = draw.choice(
        (("old", "new"), ("one", "two"), ("a/data", "b/data"), ("last year", "this year"))
    )
    names = [f"{before}.{kind}", f"{after}.{kind}"]
    found = files or {names[0]: as_text(both.old, kind), names[1]: as_text(both.new, kind)}
    words = " ".join(quote(name) for name in names)
    command = f"{draw.tool} {words} {options}" if draw.chance(0.6) else f"{draw.tool} {options} {words}"
    if draw.chance(0.1):
        command += " > out.txt"
    return Case(command.strip().replace("  ", " ") if "'" not in command else command.strip(), found)


def keyed(draw: Draw, both: Pair) -> str:
    """Return the option that names the key."""
    return draw.choice((f"--key {both.key}", f"--key={both.key}"))


def odd_call(draw: Draw, option: str, *, key: bool = True) -> Case:
    """Return a comparison of odd tables."""
    both = pair(draw, odd=True)
    options = f"{keyed(draw, both)} {option}" if key else option
    shape = draw.integer(0, 7)
    header = ",".join(both.old[0])
    names = ("old.csv", "new.csv")
    texts = {
        0: (as_text(both.old, "csv"), as_text(both.old, "csv")),
        1: (header + "\n", as_text(both.new, "csv")),
        2: ("", as_text(both.new, "csv")),
        3: (as_text(both.old[:1] * 3, "csv"), as_text(both.old[:1], "csv")),
        4: (as_text(both.old, "csv").replace("\n", "\r\n"), as_text(both.new, "csv")),
        5: (as_text(both.old, "csv").rstrip("\n"), as_text(both.new, "tsv")),
    }
    if shape in texts:
        old, new = texts[shape]
        return Case(f"{draw.tool} old.csv new.csv {options}", {names[0]: old, names[1]: new})
    if shape == 6:
        for line in both.new:
            line[list(line)[-1]] = draw.choice([text for text in EVIL if "\n" not in text])
    return call(draw, both, options)


def wrong(draw: Draw, option: str) -> Case:
    """Return a call that must fail, besides a sound option."""
    both = pair(draw)
    kind = draw.choice(("csv", "tsv"))
    files = {f"old.{kind}": as_text(both.old, kind), f"new.{kind}": as_text(both.new, kind)}
    word = draw.choice(("absent", "missing", "KEY", "Id", f"{both.key} "))
    calls = (
        f"old.{kind} {draw.word()}.{kind} {option}",
        f"{draw.word()}.{kind} new.{kind} {option}",
        f"old.{kind} {option}",
        f"old.{kind} new.{kind} {draw.file(kind)} {option}",
        f"old.{kind} new.{kind} {option} --key {quote(word)}",
        f"old.{kind} new.{kind} {option} --{draw.word()}",
        f"old.{kind} new.{kind} {option} --format {draw.choice(('xml', 'CSV', 'excel', 'yaml', draw.word()))}",
        f"old.{kind} new.{kind} {option} --format json",
        f"old.{kind} new.{kind} {option} --key",
        f"{option} . new.{kind}",
        f"old.{kind} new.{kind} {option} --json --extra {draw.word()} {draw.word()}",
        f"old.{kind} new.{kind} {option} --extra {draw.word()}",
    )
    return Case(f"{draw.tool} {draw.choice(calls)}", files)
