"""Library for generators of cases: `from fuzz import Case, Draw, quote`.

A generator is a file with three functions, one per dimension of section 2.2.2: `common(draw)`, `boundary(draw)` and
`error(draw)`. Each returns one `Case` and is called many times; everything random comes from `draw`, so the same seed
gives the same cases. `drive.py` calls them, in a sandbox.
"""

from __future__ import annotations

import csv
import io
import json
import random
import shlex
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")
WORDS = (
    *(
        "amber",
        "basin",
        "cedar",
        "delta",
        "ember",
        "fjord",
        "grove",
        "heron",
        "inlet",
        "jetty",
        "knoll",
        "lagoon",
    ),
    *(
        "maple",
        "north",
        "otter",
        "pearl",
        "quartz",
        "ridge",
        "saffron",
        "tundra",
        "umber",
        "velvet",
        "willow",
        "yarrow",
    ),
    "zephyr",
)
EVIL = (
    "",
    " ",
    "-",
    "--",
    "a b",
    "it's",
    'say "hi"',
    "$HOME",
    "`id`",
    "*",
    "a;b",
    "a|b",
    "back\\slash",
    "tab\there",
    "two\nlines",
    "%s %d",
    "../up",
    "ünïcödé",
    "日本語",
    "🙂",
    "e\u0301",
    "\u202eright to left",
    "x" * 300,
    "NULL",
    "nan",
    "-1",
    "0x1F",
    "1e309",
    "<b>&amp;</b>",
    "{{name}}",
)
"""Texts that trip careless programs. None holds a NUL, which no command line can carry."""


@dataclass(frozen=True)
class Case:
    """One command, and the files that it finds in its folder."""

    command: str
    """Script for `sh -c`; it starts in the folder of the files."""
    files: dict[str, str] = field(default_factory=dict)
    """Relative path -> text."""
    prep: str = ""
    """Script for `sh -c`, run before the command; what it changes is no effect of the command."""
    env: dict[str, str] = field(default_factory=dict)
    """Additional environment variables."""


def quote(text: object) -> str:
    """Return a text as one word for a shell."""
    return shlex.quote(str(text))


class Draw:
    """Random values for one generator, from one seed."""

    def __init__(self, tool: str, seed: str) -> None:
        self.tool = tool
        """Name of the command."""
        self.random = random.Random(seed)  # noqa: S311 - cases are repeatable, not secret

    def choice(self, options: Sequence[T]) -> T:
        """Return one of the options."""
        return self.random.choice(options)

    def sample(self, options: Sequence[T], count: int) -> list[T]:
        """Return distinct options: `count` of them, or all if there are fewer."""
        return self.random.sample(options, min(count, len(options)))

    def chance(self, share: float) -> bool:
        """Return True with this probability."""
        return self.random.random() < share

    def integer(self, low: int = 0, high: int = 100) -> int:
        """Return an integer between `low` and `high`, both included."""
        return self.random.randint(low, high)

    def number(self, low: float = 0, high: float = 100, digits: int = 2) -> float:
        """Return a number between `low` and `high` with at most `digits` decimals."""
        return round(self.random.uniform(low, high), digits)

    def word(self) -> str:
        """Return a short English word in lower case."""
        return self.choice(WORDS)

    def words(self, count: int) -> list[str]:
        """Return distinct words, at most 25."""
        return self.sample(WORDS, count)

    def sentence(self, words: int = 0) -> str:
        """Return some words (3 to 9 if the number is 0) with a capital and a full stop."""
        count = words or self.integer(3, 9)
        return " ".join(self.word() for _ in range(count)).capitalize() + "."

    def text(self, lines: int = 0) -> str:
        """Return lines of text (1 to 8 if the number is 0), the last one with a line end, too."""
        return "".join(f"{self.sentence()}\n" for _ in range(lines or self.integer(1, 8)))

    def letters(self, count: int = 8, alphabet: str = string.ascii_lowercase) -> str:
        """Return random characters of an alphabet."""
        return "".join(self.random.choices(alphabet, k=count))

    def evil(self) -> str:
        """Return a text that trips careless programs; quote it before it enters a command."""
        return self.choice(EVIL)

    def file(self, extension: str = "txt") -> str:
        """Return the name of a file, such as `amber.txt`."""
        return f"{self.word()}.{extension}" if extension else self.word()

    def path(self, extension: str = "txt", depth: int = 2) -> str:
        """Return a relative path with up to `depth` folders."""
        return "/".join([*self.words(self.integer(0, depth)), self.file(extension)])

    def date(self, first: int = 1990, last: int = 2030) -> str:
        """Return a date between two years as `YYYY-MM-DD`."""
        return f"{self.integer(first, last):04}-{self.integer(1, 12):02}-{self.integer(1, 28):02}"

    def version(self) -> str:
        """Return a version as `1.2.3`."""
        return ".".join(str(self.choice((0, 1, 2, 3, 9, 10, 19, 99))) for _ in range(3))

    def email(self) -> str:
        """Return an address at a domain that exists nowhere."""
        return f"{self.word()}@{self.word()}.example"

    def url(self) -> str:
        """Return an address of the web that exists nowhere."""
        query = f"?{self.word()}={self.integer()}" if self.chance(0.3) else ""
        return f"https://{self.word()}.example/{'/'.join(self.words(self.integer(0, 3)))}{query}"

    def json(self, depth: int = 2) -> Any:
        """Return a JSON value with up to `depth` nested objects and arrays; an object if there are any."""
        if depth <= 0:
            simple = (self.word(), self.integer(-50, 500), self.number(), True, False, None, self.sentence())
            return self.choice(simple)
        keys = self.words(self.integer(1, 4))
        if self.chance(0.2):
            return {keys[0]: [self.json(depth - 2) for _ in range(self.integer(0, 4))]}
        return {key: self.json(depth - self.integer(1, 2)) for key in keys}

    def json_text(self, depth: int = 2, indent: int | None = None) -> str:
        """Return a JSON text with a line end."""
        return json.dumps(self.json(depth), indent=indent, ensure_ascii=False) + "\n"

    def table(self, rows: int = 0, columns: int = 0) -> list[list[str]]:
        """Return a table whose first row is a header: 2 to 6 rows and 2 to 4 columns if these are 0."""
        header = self.words(columns or self.integer(2, 4))
        kinds = [self.choice(("word", "integer", "number", "date")) for _ in header]
        cells: dict[str, Callable[[], Any]] = {
            "word": self.word,
            "integer": self.integer,
            "number": self.number,
            "date": self.date,
        }
        return [header, *([str(cells[kind]()) for kind in kinds] for _ in range(rows or self.integer(2, 6)))]

    def csv(self, rows: int = 0, columns: int = 0, delimiter: str = ",") -> str:
        """Return `table` as CSV."""
        return as_csv(self.table(rows, columns), delimiter)


def as_csv(table: Sequence[Sequence[str]], delimiter: str = ",") -> str:
    """Return rows as CSV with line feeds."""
    lines = io.StringIO()
    csv.writer(lines, delimiter=delimiter, lineterminator="\n").writerows(table)
    return lines.getvalue()
