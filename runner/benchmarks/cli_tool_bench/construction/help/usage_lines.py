"""Read usage lines such as `usage: tool [-a | -b] --level N FILE [FILE ...]`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

LONGEST_USAGE = 20_000
"""Largest number of characters that are read of a usage line."""
_REMARK = 3
"""Smallest number of plain words in brackets that count as a remark."""
DEEPEST = 8
"""Deepest nesting of brackets that is distinguished."""
_TOKEN = re.compile(r"\[|\]|\(|\)|\||\{[^{}\s]*\}|<[^<>|]*>|\.\.\.|[^\s\[\]()|{}<>]+|[{}<>]")
_PROGRAM = re.compile(r"(?:python[\d.]*|node|npx|deno)(?: -m)? +(?=\S)")
_OPTIONS = re.compile(r"(?:^|\W)(?:options?|opts?|flags?|switches)$", re.IGNORECASE)
_COMMANDS = frozenset({"command", "commands", "subcommand", "subcommands", "cmd", "task"})
_ARGUMENTS = frozenset({"args", "arguments", "arg", "subargs", "command-args"})


class UsedOption(NamedTuple):
    """A flag or option that a usage line mentions."""

    name: str
    value: str
    optional: bool


class UsedArgument(NamedTuple):
    """An argument that a usage line mentions."""

    name: str
    optional: bool
    repeatable: bool
    choices: tuple[str, ...] = ()


class Usage(NamedTuple):
    """Content of one usage line."""

    options: tuple[UsedOption, ...] = ()
    arguments: tuple[UsedArgument, ...] = ()
    exclusive: tuple[tuple[str, ...], ...] = ()
    """Groups of options, of each of which at most one may be given."""
    one_of: tuple[tuple[str, ...], ...] = ()
    commands: tuple[str, ...] = ()
    """Subcommands that the line lists."""
    takes_command: bool = False


class _Group(NamedTuple):
    opening: str
    items: list[str | _Group]


_Items = Sequence[str | _Group]


class _Reader:
    """Collects what the items of one usage line say."""

    def __init__(self, values: dict[str, int]) -> None:
        self.values = values
        self.options: dict[str, UsedOption] = {}
        self.arguments: dict[str, UsedArgument] = {}
        self.groups: dict[str, list[tuple[str, ...]]] = {"[": [], "(": []}
        self.commands: tuple[str, ...] = ()
        self.takes_command = False

    def read(self, items: _Items, *, optional: bool) -> None:
        """Read items that stand side by side. In brackets, all items after an option are its value."""
        place = 0
        while place < len(items):
            item, rest = items[place], items[place + 1 :]
            place += 1
            repeated = bool(rest) and rest[0] == "..."
            if isinstance(item, _Group):
                self._read_group(item, optional=optional, repeated=repeated)
            elif item.startswith("-"):
                place += self._read_option(item, rest, optional=optional)
            elif item not in {"...", "|"}:
                self._read_argument(item, optional=optional, repeated=repeated)

    def _read_group(self, group: _Group, *, optional: bool, repeated: bool) -> None:
        parts = _alternatives(group.items)
        heads = [part[0] for part in parts if part and isinstance(part[0], str)]
        if len(parts) > 1 and len(heads) == len(parts) and all(head.startswith("-") for head in heads):
            self.groups[group.opening].append(tuple(_split_option(head)[0] for head in heads))
        before = {*self.arguments}
        if _is_prose(group.items):
            return
        for part in parts:
            self.read(part, optional=optional or group.opening == "[" or len(parts) > 1)
        if repeated:
            for name in {*self.arguments} - before:
                self.arguments[name] = self.arguments[name]._replace(repeatable=True)

    def _read_option(self, item: str, rest: _Items, *, optional: bool) -> int:
        """Read an option, and return the number of items that are its value."""
        name, value = _split_option(item)
        if not re.fullmatch(r"--?[^\W_][\w.?-]*", name):
            return 0
        taken = 0 if value else self._value_length(name, rest, optional=optional)
        value = value or " ".join(map(_text, rest[:taken]))
        self.options.setdefault(name, UsedOption(name, value, optional))
        return taken

    def _value_length(self, name: str, rest: _Items, *, optional: bool) -> int:
        following = next((place for place, item in enumerate(rest) if _is_option(item)), len(rest))
        if optional:
            return following
        if name in self.values:
            return min(self.values[name], following)
        first = rest[0] if following else ""
        looks = isinstance(first, str) and (first.startswith(("<", "{")) or first.isupper())
        return int(looks)

    def _read_argument(self, item: str, *, optional: bool, repeated: bool) -> None:
        if item.startswith("{"):
            choices = tuple(choice for choice in item[1:-1].split(",") if choice)
            if repeated:
                self.commands, self.takes_command = choices, self.takes_command or not optional
                return
            item = "CHOICE"
        else:
            choices = ()
        name = argument_name(item)
        if name.lower() in _COMMANDS:
            self.takes_command = True
        elif name and not _OPTIONS.search(name) and name.lower() not in {*_COMMANDS, "global"}:
            repeated = repeated or item.rstrip(">]").endswith(("...", "…")) or name in self.arguments
            known = self.arguments.get(name)
            optional = known.optional if known else optional
            self.arguments[name] = UsedArgument(name, optional, repeated, choices)


def read_usage(form: str, words: Sequence[str], values: dict[str, int]) -> Usage:
    """Read one usage line. `words` are the command's own, `values` the number of words in each known option's value."""
    text = _PROGRAM.sub("", form[:LONGEST_USAGE].strip(), count=1)
    tokens = _TOKEN.findall(text)[1:]
    for word in words[1:]:
        if tokens and tokens[0].split("|")[0] == word:
            tokens = tokens[1:]
    reader = _Reader(values)
    reader.read(_nest(tokens), optional=False)
    arguments = tuple(reader.arguments.values())
    if reader.takes_command or reader.commands:
        arguments = tuple(used for used in arguments if used.name.lower() not in _ARGUMENTS)
    exclusive, one_of = map(tuple, (reader.groups["["], reader.groups["("]))
    options = tuple(reader.options.values())
    return Usage(options, arguments, exclusive, one_of, reader.commands, reader.takes_command)


def argument_name(text: str) -> str:
    """Return the name of an argument without brackets and dots, as one word."""
    return "-".join(text.replace("…", " ").strip(" <>[](){}.=*+,:'\"`").split())[:80].lstrip("-")


def _nest(tokens: Sequence[str]) -> list[str | _Group]:
    """Return tokens as nested groups; a bracket that does not close ends with the line."""
    stack = [_Group("", [])]
    for mark in tokens:
        if mark in {"[", "("} and len(stack) <= DEEPEST:
            stack.append(_Group(mark, []))
        elif mark in {"]", ")"}:
            if len(stack) > 1:
                group = stack.pop()
                stack[-1].items.append(group)
        elif mark not in {"[", "(", "{", "}", "<", ">"}:
            stack[-1].items.append(mark)
    while len(stack) > 1:
        group = stack.pop()
        stack[-1].items.append(group)
    return stack[0].items


def _alternatives(items: _Items) -> list[list[str | _Group]]:
    parts: list[list[str | _Group]] = [[]]
    for item in items:
        if item == "|":
            parts.append([])
        else:
            parts[-1].append(item)
    return parts


def _is_prose(items: _Items) -> bool:
    """Return whether a bracket holds a remark such as `[more options; see below]`."""
    words = [item for item in items if isinstance(item, str) and item[0].isalpha()]
    return len(words) == len(items) >= _REMARK


def _split_option(item: str) -> tuple[str, str]:
    name, _, value = item.partition("=")
    return name.rstrip(",.:"), value


def _is_option(item: str | _Group) -> bool:
    return isinstance(item, str) and item.startswith("-")


def _text(item: str | _Group) -> str:
    return item if isinstance(item, str) else f"[{' '.join(map(_text, item.items))}]".replace("[=", "[")
