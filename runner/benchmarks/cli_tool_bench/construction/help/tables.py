"""Read the tables of a help page: options, arguments and commands, one entry a line with its description."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from runner.benchmarks.cli_tool_bench.construction.help.layout import Section
from runner.benchmarks.cli_tool_bench.construction.help.option_lines import (
    LONGEST_LINE,
    OptionLine,
    read_option_line,
)

LONGEST_ABOUT = 300
_ENTRY = re.compile(
    r"(?P<name>[^\W_][\w.:+@-]*\*?)(?P<more>(?:(?:,\s?|\|)[^\W_][\w.:+@-]*\*?)*):?(?P<rest>(?:\s.*)?)"
)
_USED = re.compile(r"(?:\.\.\.|[<\[{(]|[A-Z][A-Z_]*(?:\s|$|\.\.\.))")
_CHOICE_LINE = re.compile(r"[-*] (?P<choice>[^\s:]{1,100})(?::.*)?")


@dataclass
class Row:
    """An entry of a table: its words, and the texts beside and below them."""

    names: tuple[str, ...]
    about: list[str] = field(default_factory=list)
    option: OptionLine | None = None
    choices: list[str] = field(default_factory=list)
    starred: bool = False
    """True if Typer marks the entry as required."""
    shared: bool = False
    """True if the entry's section says that other commands have the same entry."""
    listing: bool = False
    """True if a list of the entry's choices is being read."""

    def text(self) -> str:
        """Return the description as one line."""
        return " ".join(" ".join(self.about).split())[:LONGEST_ABOUT]

    def add(self, line: str) -> None:
        """Add a line that stands below the entry."""
        text = line.strip()
        self.listing = self.listing or text.lower() == "possible values:"
        if self.listing:
            if found := _CHOICE_LINE.fullmatch(text):
                self.choices.append(found["choice"])
        elif sum(map(len, self.about)) < LONGEST_ABOUT:
            self.about.append(text)


@dataclass
class Table:
    """The entries of a section, and the number of lines that are not entries."""

    rows: list[Row] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


def read_options(section: Section) -> Table:
    """Read definitions of options. A line that is indented more than the entry above continues that entry."""
    table = Table()
    row: Row | None = None
    shared = re.match(r"(?:global|inherited|persistent|common)\b", section.title) is not None
    for original in section.lines:
        if not original.strip():
            continue
        line, starred = _without_star(original, columns=section.columns)
        option = _option(line, row, section)
        indent = len(line) - len(line.lstrip(" "))
        if option:
            about = [option.about] if option.about else []
            row = Row(option.names, about, option, starred=starred, shared=shared)
            table.rows.append(row)
        elif row and row.option and indent > row.option.indent:
            row.add(line)
        else:
            table.unread.append(line)
    return table


def read_arguments(section: Section, placeholders: Collection[str]) -> tuple[Table, Table]:
    """Read descriptions of arguments, and the commands below those `placeholders` that stand for one (argparse)."""
    arguments, commands = Table(), Table()
    row: Row | None = None
    indent = 0
    for original in section.lines:
        if not original.strip():
            continue
        line, starred = _without_star(original, columns=section.columns)
        deep = len(line) - len(line.lstrip(" "))
        name, about = _argument(line)
        if name and (row is None or deep <= indent):
            row, indent = Row((name,), [about] if about else [], starred=starred), deep
            arguments.rows.append(row)
        elif row and deep == indent + 2 and row.names[0] in placeholders and (entry := _command(line)):
            commands.rows.append(entry)
        elif row and deep > indent:
            (commands.rows[-1] if commands.rows and row.names[0] in placeholders else row).add(line)
        else:
            arguments.unread.append(line)
    return arguments, commands


def read_commands(section: Section, words: Sequence[str]) -> Table:
    """Read a list of commands. `words`: the command's own, which yargs repeats before each."""
    table = Table()
    indent: int | None = None
    braces: set[str] = set()
    for line in section.lines:
        if not line.strip():
            continue
        deep = len(line) - len(line.lstrip(" "))
        text = _without_words(line.strip(), words)
        if text.startswith("{") and "}" in text[:LONGEST_LINE]:
            braces = {*text[1 : text.index("}")].split(",")}
            table.rows += [Row((name,)) for name in sorted(braces) if name]
            indent = None
        elif indent in {None, deep} and (row := _command(text)):
            indent = deep
            table.rows = [known for known in table.rows if known.names != row.names] if braces else table.rows
            table.rows.append(row)
        elif indent is not None and deep > indent and table.rows:
            table.rows[-1].add(line)
        else:
            table.unread.append(line)
    return table


def _option(line: str, row: Row | None, section: Section) -> OptionLine | None:
    """Return the definition in a line, unless it is prose or continues the entry above."""
    option = read_option_line(line, columns=section.columns)
    if option is None:
        return None
    beside = row is not None and row.option is not None and row.option.indent == option.indent
    if not (option.sure or beside or section.kind == "options"):
        return None
    if row is None or row.option is None or section.columns:
        return option
    above = row.option
    # A short name that is missing leaves a gap of four: `-o, --out` above `    --keep`.
    gap = 4 if not above.names[0].startswith("--") and option.names[0].startswith("--") else 0
    return option if option.indent <= above.indent + gap else None


def _without_star(line: str, *, columns: bool) -> tuple[str, bool]:
    body = line.lstrip(" ")
    if columns and body.startswith("* "):
        place = len(line) - len(body)
        return f"{line[:place]} {body[1:]}", True
    return line, False


def _argument(line: str) -> tuple[str, str]:
    """Return the name and the description in a line of arguments; two empty texts for any other line."""
    text = line.strip()[:LONGEST_LINE]
    name, gap, about = text.partition("  ")
    if not gap and len(name.split()) > 1 and not name.endswith(("]", ">", "...")):
        return "", ""
    return ("", "") if name.startswith("-") else (name, about.strip())


def _command(line: str) -> Row | None:
    """Return the entry of a command in a line."""
    text = line.strip()
    found = _ENTRY.fullmatch(text) if len(text) <= LONGEST_LINE else None
    if not found:
        return None
    name, rest = found["name"].rstrip("*:.,"), found["rest"]
    body = rest.strip()
    if not body or rest.startswith("  "):
        about = body
    elif _USED.match(body):
        about = body.partition("  ")[2].strip()
    elif text[found.end("more") :].startswith(":") or body.startswith(("- ", "– ", ": ")):
        about = body.lstrip("-–: ")
    else:
        return None
    return Row((name,), [about] if about else [])


def _without_words(text: str, words: Sequence[str]) -> str:
    """Return an entry without the command's own words before it."""
    rest = text
    for word in words:
        if not rest.startswith(f"{word} ") or rest.startswith(f"{word}  "):
            break
        rest = rest[len(word) + 1 :]
    return rest
