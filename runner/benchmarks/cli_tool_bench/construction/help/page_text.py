"""Read one help page without a model, in the layouts of the usual libraries.

These are argparse and optparse, click and Typer, commander, yargs, cobra, Go's flag package, clap and the GNU tools.
Lines that fit none of them are counted and left to a model or a person.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic import ValidationError

from runner.benchmarks.cli_tool_bench.construction import schema
from runner.benchmarks.cli_tool_bench.construction.help.layout import Section, divide, usage_forms
from runner.benchmarks.cli_tool_bench.construction.help.option_lines import split_value
from runner.benchmarks.cli_tool_bench.construction.help.tables import (
    LONGEST_ABOUT,
    Row,
    Table,
    read_arguments,
    read_commands,
    read_options,
)
from runner.benchmarks.cli_tool_bench.construction.help.usage_lines import (
    Usage,
    UsedArgument,
    argument_name,
    read_usage,
)
from runner.benchmarks.cli_tool_bench.construction.schema import Constraint, Parameter, ParameterType

LONGEST_PAGE = 1 << 17
"""Number of characters of a page that are read."""
_ROWS = 4 * schema.PARAMETERS
"""Number of entries that are read of each kind of table."""
_HINT = re.compile(r"\[(boolean|count|string|number|array)\]")
_CHOICES = re.compile(
    r"[\[(](?:choices|possible values|one of|allowed values): ?([^\[\]()]{1,2000})[\])]", re.IGNORECASE
)
_VALUED = re.compile(r"\[(?:choices: |default: (?!true|false|null))", re.IGNORECASE)
"""Type remark that only yargs prints, for an option whose value has no placeholder."""
_DEFAULT = re.compile(r", default: ")
_REPEATABLE = re.compile(
    r"\[array\]|multiple allowed|(?:multiple|several|many) times|more than once|be repeated|repeatable",
    re.IGNORECASE,
)
_REQUIRED = re.compile(r"[\[(;]\s?required[\]);]", re.IGNORECASE)
_HELPERS = frozenset({"help"})
_TYPES: tuple[tuple[ParameterType, re.Pattern[str]], ...] = (
    (
        "integer",
        re.compile(r"u?int(?:\d\d|eger|eger range|s)?|n|num|count|lines|bytes|port|depth|size|width"),
    ),
    ("number", re.compile(r"float(?:\d\d| range|s)?|number|double|decimal|seconds|secs?")),
    ("path", re.compile(r".*(?:file|path|dir|directory|folder|filename)s?|file.*|path.*")),
)


class PageParts(NamedTuple):
    """Parts of a command that one page describes."""

    about: str = ""
    parameters: tuple[Parameter, ...] = ()
    shared: frozenset[str] = frozenset()
    """Longest names of parameters that the page ascribes to all commands."""
    constraints: tuple[Constraint, ...] = ()
    commands: tuple[tuple[str, str], ...] = ()
    """Names of subcommands, and what they are about."""
    runnable: bool = True
    unread: tuple[str, ...] = ()
    """Lines that were not understood."""


@dataclass
class _Found:
    """Entries of all sections of a page."""

    options: list[Row] = field(default_factory=list)
    arguments: list[Row] = field(default_factory=list)
    commands: list[Row] = field(default_factory=list)
    about: str = ""
    unread: list[str] = field(default_factory=list)

    def take(self, table: Table, rows: list[Row]) -> None:
        """Add a table's rows to those of its kind, up to the number that is read."""
        rows += table.rows[: max(0, _ROWS - len(rows))]
        self.unread += table.unread


def read_page(text: str, words: Sequence[str]) -> PageParts:
    """Return what a page says about the command with these words, such as `("tool", "add")`."""
    sections = divide(text[:LONGEST_PAGE])
    forms = [
        form for section in sections if section.kind == "usage" for form in usage_forms(section, words[0])
    ]
    found = _Found()
    for section in sections:
        if section.kind in {"options", "about", "group"}:
            _read_section(section, found)
    values = {
        name: len(split_value(row.option.value)) for row in found.options if row.option for name in row.names
    }
    usages = [read_usage(form, words, values) for form in forms[:64]]
    placeholders = _placeholders(usages, forms)
    for section in sections:
        if section.kind == "arguments":
            arguments, commands = read_arguments(section, placeholders)
            found.take(arguments, found.arguments)
            found.take(commands, found.commands)
        elif section.kind == "commands":
            _read_command_section(section, found, words)
    return _combine(found, usages)


def _read_section(section: Section, found: _Found) -> None:
    table = read_options(section)
    prose = [line for line in table.unread if line.strip()]
    if section.kind == "about" and not found.about and prose:
        found.about = _paragraph(section.lines, prose[0])
        counted = len(found.about)
        while prose and counted > 0:
            counted -= len(prose.pop(0).strip()) + 1
    found.take(Table(table.rows, prose), found.options)


def _read_command_section(section: Section, found: _Found, words: Sequence[str]) -> None:
    """Read commands, or options if that is what the section holds in spite of its title."""
    if any(line.strip().startswith("-") for line in section.lines):
        options = read_options(section)
        found.take(Table(options.rows), found.options)
        section.lines = options.unread
    found.take(read_commands(section, words), found.commands)


def _paragraph(lines: Sequence[str], first: str) -> str:
    start = lines.index(first) if first in lines else 0
    text: list[str] = []
    for line in lines[start:]:
        if not line.strip() or sum(map(len, text)) > LONGEST_ABOUT:
            break
        text.append(line.strip())
    return _clean(" ".join(text))


def _placeholders(usages: Sequence[Usage], forms: Sequence[str]) -> set[str]:
    """Return the words that stand for a subcommand in argparse's usage: those before a final `...`."""
    found = {"{" + ",".join(usage.commands) + "}" for usage in usages if usage.commands}
    for form in forms:
        tokens = form.split()
        if len(tokens) > 1 and tokens[-1] == "...":
            found.add(tokens[-2])
    return found


def _combine(found: _Found, usages: Sequence[Usage]) -> PageParts:
    """Return the parts of a page from its tables and its usage lines."""
    parameters: list[Parameter] = []
    shared: set[str] = set()
    for row in found.options:
        for parameter in _option_parameters(row):
            _add(parameters, parameter, found.unread)
            if row.shared:
                shared.add(parameter.name)
    _add_used(parameters, usages, found.unread)
    listed = {name: "" for usage in usages for name in usage.commands}
    listed |= {row.names[0]: _clean(row.text()) for row in found.commands}
    commands = tuple(
        (name, about)
        for name, about in listed.items()
        if schema.COMMAND_NAME.fullmatch(name) and len(name) <= schema.LONGEST_NAME
    )
    used = _argument_parameters(found.arguments, usages, listed)
    for argument in used:
        _add(parameters, argument, found.unread)
    return PageParts(
        found.about,
        tuple(parameters[: schema.PARAMETERS]),
        frozenset(shared),
        _constraints(parameters, usages),
        tuple((name, about) for name, about in commands if name not in _HELPERS),
        not commands or not _only_groups(usages),
        tuple(found.unread),
    )


def _add(parameters: list[Parameter], parameter: Parameter | None, unread: list[str]) -> None:
    """Add a parameter unless one of its names is known."""
    if parameter is None:
        return
    known = {name for other in parameters for name in other.names}
    if known.isdisjoint(parameter.names):
        parameters.append(parameter)
    elif not known.issuperset(parameter.names):
        unread.append(" ".join(parameter.names))


def _option_parameters(row: Row) -> Iterator[Parameter]:
    """Yield the parameter of an entry, and the one that switches it off."""
    if row.option is None:
        return
    value, about = row.option.value, row.text()
    hint = _HINT.search(about)
    flag = not value.strip(".") and (hint is None or hint[1] in {"boolean", "count"})
    flag = flag and not (
        hint is None and re.search(r"\[(?:choices|default): (?!true|false)", about) and "[" in about
    )
    choices = [] if flag else row.choices or _value_choices(value) or _about_choices(about)
    value_type: ParameterType = "boolean" if flag else _type(value, hint[1] if hint else "")
    for names in filter(None, (row.names, row.option.opposite)):
        made = _parameter(
            names=names,
            kind="flag" if flag else "option",
            type="choice" if choices else value_type,
            required=row.starred or bool(_REQUIRED.search(about)),
            repeatable="..." in value or value in {"strings", "ints"} or bool(_REPEATABLE.search(about)),
            choices=tuple(choices),
            about=_clean(about),
        )
        if made:
            yield made


def _parameter(**fields: object) -> Parameter | None:
    """Return a parameter, or None if the entry is not a valid parameter by the rules of a schema."""
    try:
        return Parameter.model_validate(fields)
    except ValidationError:
        return None


def _value_choices(value: str) -> list[str]:
    inner = value.strip("<>[](){} .")
    for separator in "|,":
        if separator in inner and (separator == "|" or value.startswith(("{", "<"))):
            choices = [choice.strip() for choice in inner.split(separator)]
            plain = (
                all(choice and len(choice) <= schema.LONGEST_CHOICE for choice in choices)
                and "..." not in choices
            )
            return list(dict.fromkeys(choices)) if plain and len(choices) <= schema.CHOICES else []
    return [inner] if re.fullmatch(r"\{[^\s{}]+\}", value) else []


def _about_choices(about: str) -> list[str]:
    found = _CHOICES.search(about)
    if not found:
        return []
    choices = [choice.strip(" \"'`") for choice in _DEFAULT.split(found[1])[0].split(",")]
    plain = [choice for choice in dict.fromkeys(choices) if choice and len(choice) <= schema.LONGEST_CHOICE]
    return plain if len(plain) <= schema.CHOICES and "..." not in plain else []


def _type(value: str, hint: str = "") -> ParameterType:
    """Return the type that a placeholder suggests."""
    if hint == "number":
        return "number"
    word = value.strip("<>[](){} .=").split(" ...")[0].split("[")[0].strip(" .<>").lower()
    return next((kind for kind, pattern in _TYPES if pattern.fullmatch(word)), "string")


def _clean(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:LONGEST_ABOUT]


def _add_used(parameters: list[Parameter], usages: Sequence[Usage], unread: list[str]) -> None:
    """Add options that only usage lines show, and mark those that a single usage line requires."""
    for usage in usages:
        for used in usage.options:
            place = next((i for i, known in enumerate(parameters) if used.name in known.names), None)
            required = not used.optional and len(usages) == 1
            if place is not None:
                if required and parameters[place].kind == "option":
                    parameters[place] = parameters[place].model_copy(update={"required": True})
                continue
            choices = _value_choices(used.value)
            kind = "option" if used.value.strip(".") else "flag"
            value_type = "choice" if choices else _type(used.value)
            made = _parameter(
                names=(used.name,),
                kind=kind,
                type="boolean" if kind == "flag" else value_type,
                required=required and kind == "option",
                repeatable="..." in used.value,
                choices=choices if kind == "option" else (),
            )
            _add(parameters, made, unread)


def _argument_parameters(
    rows: Sequence[Row], usages: Sequence[Usage], commands: Collection[str]
) -> Iterator[Parameter | None]:
    """Yield the arguments in the order of the usage lines, then those that only a table shows."""
    table = {argument_name(_column(row.names[0])[0]).lower(): row for row in rows}
    used = {argument.name.lower(): argument for usage in usages for argument in usage.arguments}
    needed = [
        {argument.name.lower() for argument in usage.arguments if not argument.optional} for usage in usages
    ]
    for key, argument in used.items():
        row = table.pop(key, None)
        if row is not None or not (commands and argument.optional):
            optional = not all(key in names for names in needed)
            yield _argument(argument._replace(optional=optional), row.text() if row else "")
    for key, row in table.items():
        name, value = _column(row.names[0])
        if key and key not in {"command", "subcommand"} and not name.startswith("{"):
            about = f"{value} {row.text()}".strip()
            required = row.starred or _REQUIRED.search(about) or not (usages or row.names[0].startswith("["))
            yield _argument(UsedArgument(argument_name(name), not required, "..." in row.names[0]), about)


def _column(name: str) -> tuple[str, str]:
    """Divide `NAME TEXT` as Typer prints it."""
    head, _, value = name.partition(" ")
    return (head, value) if value.isupper() else (name, "")


def _argument(used: UsedArgument, about: str) -> Parameter | None:
    choices = used.choices or tuple(_about_choices(about))
    return _parameter(
        names=(used.name,),
        kind="argument",
        type="choice" if choices else _type(used.name),
        required=not used.optional,
        repeatable=used.repeatable,
        choices=choices,
        about=_clean(about),
    )


def _constraints(parameters: Sequence[Parameter], usages: Sequence[Usage]) -> tuple[Constraint, ...]:
    """Return the exclusive groups of the only usage line. Several lines are several ways to call the tool."""
    if len(usages) != 1:
        return ()
    found: list[Constraint] = []
    for kind, groups in (("excludes", usages[0].exclusive), ("one_of", usages[0].one_of)):
        for group in groups[:16]:
            owners = dict.fromkeys(p.name for name in group for p in parameters if name in p.names)
            if 1 < len(owners) <= schema.GROUP:
                found.append(Constraint.model_validate({"kind": kind, "parameters": tuple(owners)}))
    return tuple(found)


def _only_groups(usages: Sequence[Usage]) -> bool:
    """Return whether every usage line requires a subcommand."""
    return bool(usages) and all(u.takes_command and not u.arguments for u in usages)
