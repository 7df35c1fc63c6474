"""The schema of a tool, S = <C, S_sub, P, K> (the paper's equation 1): its commands, parameters and constraints.

A schema comes from a person, from the reader of help pages, or from a language model, whose answer nobody trusts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError, model_validator

from runner.benchmarks.cli_tool_bench.construction.help.layout import defined
from runner.benchmarks.cli_tool_bench.construction.help.option_lines import is_standard, shows
from runner.benchmarks.sources.answers import fenced
from runner.records import Record
from runner.records.base import first_fault

DEPTH = 4
"""Largest number of levels of subcommands below the tool itself."""
NODES = 64
"""Largest number of commands of a tool, the tool itself included."""
PARAMETERS = 256
"""Largest number of parameters of one command."""
CHOICES = 64
GROUP = 32
"""Largest number of parameters of a constraint."""
LONGEST_NAME = 80
LONGEST_CHOICE = 100
LONGEST_ANSWER = 1 << 20
"""Longest answer of a model that is read, in characters."""
OPTION_NAME = re.compile(r"--?[^\W_][\w?@#%$!.:+-]*|-[?@#%$!+]")
_LEVELS = 2 * DEPTH + 8
"""Levels of JSON that are read: two for each level of commands, and some for the content of a command."""
COMMAND_NAME = re.compile(r"[^\W_][\w.:+@-]*")

ParameterKind = Literal["flag", "option", "argument"]
ParameterType = Literal["boolean", "string", "path", "integer", "number", "choice"]
Path = tuple[str, ...]
"""Words of a subcommand below the tool; empty for the tool itself."""


def _one_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("a text must be one line without control characters")
    return text


def _word(text: str) -> str:
    if any(character.isspace() for character in _one_line(text)):
        raise ValueError(f"{text!r} must be one word")
    return text


Line = Annotated[str, Field(max_length=1_000), AfterValidator(_one_line)]
Choice = Annotated[str, Field(min_length=1, max_length=LONGEST_CHOICE), AfterValidator(_one_line)]
Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME), AfterValidator(_word)]


class Parameter(Record):
    """One element of P: a flag, an option with a value, or an argument."""

    names: tuple[Name, ...] = Field(min_length=1, max_length=8)
    """All spellings of a flag or option, with their dashes; the one name of an argument, such as `FILE`."""
    kind: ParameterKind
    type: ParameterType
    required: bool = False
    repeatable: bool = False
    choices: tuple[Choice, ...] = Field(default=(), max_length=CHOICES)
    about: Line = ""

    @model_validator(mode="after")
    def _fits_together(self) -> Parameter:
        name = self.names[0]
        if self.kind == "argument":
            if len(self.names) > 1 or name.startswith("-"):
                raise ValueError(f"argument {name!r} must have one name, without a dash before it")
        elif wrong := [name for name in self.names if not OPTION_NAME.fullmatch(name)]:
            raise ValueError(f"{wrong[0]!r} is not the name of a {self.kind}, such as '-k' or '--keep'")
        if len({*self.names}) < len(self.names):
            raise ValueError(f"{name!r} names one of its spellings twice")
        if self.kind == "flag" and self.type != "boolean":
            raise ValueError(f"flag {name!r} takes no value, so its type must be 'boolean'")
        if (self.type == "choice") != bool(self.choices):
            raise ValueError(f"{name!r} must have choices if, and only if, its type is 'choice'")
        return self

    @property
    def name(self) -> str:
        """The longest of the names; among equally long ones, the first."""
        return max(self.names, key=len)


class Constraint(Record):
    """One element of K: `requires` (the first needs the others), `excludes` (at most one), `one_of` (exactly one)."""

    kind: Literal["requires", "excludes", "one_of"]
    parameters: tuple[Name, ...] = Field(min_length=2, max_length=GROUP)


class Command(Record):
    """A command C with its parameters, constraints and subcommands."""

    name: Name
    about: Line = ""
    runnable: bool = True
    """False for a command that only groups subcommands."""
    parameters: tuple[Parameter, ...] = Field(default=(), max_length=PARAMETERS)
    constraints: tuple[Constraint, ...] = Field(default=(), max_length=64)
    subcommands: tuple[Command, ...] = Field(default=(), max_length=NODES)

    @model_validator(mode="after")
    def _fits_together(self) -> Command:
        if not COMMAND_NAME.fullmatch(self.name):
            raise ValueError(f"{self.name!r} is not the name of a command")
        if twice := _first_twice([name for parameter in self.parameters for name in parameter.names]):
            raise ValueError(f"command {self.name!r} has two parameters called {twice!r}")
        if twice := _first_twice([command.name for command in self.subcommands]):
            raise ValueError(f"command {self.name!r} has two subcommands called {twice!r}")
        if not self.runnable and not self.subcommands:
            raise ValueError(f"command {self.name!r} has no subcommands, so it must be runnable")
        for constraint in self.constraints:
            self._check(constraint)
        return self

    def _check(self, constraint: Constraint) -> None:
        """Raise `ValueError` unless the constraint is about several parameters of this command."""
        owners = [self.find(name) for name in constraint.parameters]
        for name, owner in zip(constraint.parameters, owners, strict=True):
            if owner is None:
                raise ValueError(f"a constraint names {name!r}, which command {self.name!r} does not have")
        if twice := _first_twice([owner.name for owner in owners if owner]):
            raise ValueError(f"a constraint of command {self.name!r} names {twice!r} twice")

    def find(self, name: str) -> Parameter | None:
        """Return the parameter with such a name."""
        return next((parameter for parameter in self.parameters if name in parameter.names), None)


class Schema(Record):
    """All commands of a tool, and the author of this description."""

    written_by: Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_one_line)]
    """`by hand`, `help pages`, or the name of a model."""
    command: Command

    @model_validator(mode="after")
    def _bounded(self) -> Schema:
        paths = [path for path, _ in walk(self.command)]
        if len(paths) > NODES:
            raise ValueError(f"the tool has {len(paths)} commands; at most {NODES} are read")
        if max(map(len, paths)) > DEPTH:
            raise ValueError(f"subcommands are nested more than {DEPTH} levels deep")
        return self

    def to_json(self) -> str:
        """Return the text of `schema.json`, without fields that have their default."""
        fields = self.model_dump(mode="json", exclude_defaults=True)
        return json.dumps(fields, indent=1, ensure_ascii=False) + "\n"


def walk(command: Command) -> Iterator[tuple[Path, Command]]:
    """Yield the command and all commands below it with their paths, each before its subcommands."""
    waiting: list[tuple[Path, Command]] = [((), command)]
    while waiting:
        path, node = waiting.pop()
        yield path, node
        waiting += [((*path, below.name), below) for below in reversed(node.subcommands)]


def read_schema(text: str, written_by: str | None = None) -> Schema:
    """Return the schema in a model's answer: JSON alone, or in one fenced block.

    `written_by` replaces the author that the answer names. Raises `ValueError` with the first fault as a sentence.
    """
    if len(text) > LONGEST_ANSWER:
        raise ValueError(f"The answer has {len(text)} characters; at most {LONGEST_ANSWER} are read.")
    try:
        found = json.loads(
            fenced(text)[1] or text, object_pairs_hook=_without_twice, parse_constant=_refuse_constant
        )
    except json.JSONDecodeError as error:
        raise ValueError(f"The answer is not JSON: {error}.") from error
    except RecursionError:
        raise ValueError("The answer is nested too deeply.") from None
    if not isinstance(found, dict):
        raise ValueError(  # noqa: TRY004 - as every other fault of an answer
            "The answer must be one JSON object with the keys 'written_by' and 'command'."
        )
    if _is_deep(found):
        raise ValueError(f"The answer is nested too deeply; subcommands have at most {DEPTH} levels.")
    if written_by is not None:
        found["written_by"] = written_by
    try:
        return Schema.model_validate(found)
    except ValidationError as error:
        raise ValueError(f"The schema is wrong at {first_fault(error, 'its top')}."[:2_000]) from error


def _is_deep(found: Any) -> bool:
    """Return whether a JSON value has more levels than any schema."""
    level = [found]
    for _ in range(_LEVELS):
        values = [value.values() if isinstance(value, dict) else value for value in level]
        level = [below for value in values for below in value if isinstance(below, (dict, list))]
    return bool(level)


def _without_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if twice := _first_twice([key for key, _ in pairs]):
        raise ValueError(f"The answer has the key {twice[:80]!r} twice in one object.")
    return dict(pairs)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"The answer holds {name}, which is not JSON.")


def _first_twice(names: Sequence[str]) -> str | None:
    known: set[str] = set()
    for name in names:
        if name in known:
            return name
        known.add(name)
    return None


class Word(Record):
    """A flag, an option or a subcommand of a command."""

    command: Path
    name: str


class CheckedSchema(Record):
    """A schema reduced to what the help pages show, and its differences from the pages."""

    schema_checked: Schema
    invented: tuple[Word, ...] = ()
    """Words that were removed from the schema because no help page shows them."""
    unlisted: tuple[Word, ...] = ()
    """Words that the pages show and the schema lacks, except flags for help and version."""


def checked(schema: Schema, pages: Mapping[Path, str]) -> CheckedSchema:
    """Return the schema without flags, options and subcommands that no help page shows as a word.

    A page counts for its command and for all below it.
    """
    invented: list[Word] = []
    command = _shown(schema.command, (), pages, invented)
    kept = schema.model_copy(update={"command": command})
    return CheckedSchema(
        schema_checked=kept, invented=tuple(invented), unlisted=tuple(_unlisted(command, pages))
    )


def _shown(command: Command, path: Path, pages: Mapping[Path, str], invented: list[Word]) -> Command:
    texts = [pages[path[:length]] for length in range(len(path) + 1) if path[:length] in pages]
    parameters: list[Parameter] = []
    renamed: dict[str, str] = {}
    for parameter in command.parameters:
        names = tuple(
            name
            for name in parameter.names
            if parameter.kind == "argument" or any(shows(text, name) for text in texts)
        )
        invented += [Word(command=path, name=name) for name in parameter.names if name not in names]
        if names:
            parameters.append(parameter.model_copy(update={"names": names}))
            renamed |= {name: name if name in names else names[0] for name in parameter.names}
    subcommands: list[Command] = []
    for below in command.subcommands:
        if (*path, below.name) in pages or any(shows(text, below.name) for text in texts[-1:]):
            subcommands.append(_shown(below, (*path, below.name), pages, invented))
        else:
            invented.append(Word(command=path, name=below.name))
    changed = {
        "parameters": tuple(parameters),
        "constraints": tuple(_renamed(command.constraints, renamed)),
        "subcommands": tuple(subcommands),
        "runnable": command.runnable or not subcommands,
    }
    return command.model_copy(update=changed)


def _renamed(constraints: Iterable[Constraint], names: Mapping[str, str]) -> Iterator[Constraint]:
    """Yield the constraints whose parameters all still exist, under the parameters' present names."""
    for constraint in constraints:
        if names.keys() >= {*constraint.parameters}:
            kept = tuple(names[name] for name in constraint.parameters)
            yield constraint.model_copy(update={"parameters": kept})


def _unlisted(root: Command, pages: Mapping[Path, str]) -> Iterator[Word]:
    commands = dict(walk(root))
    for path, page in pages.items():
        if path not in commands:
            yield Word(command=path[:-1], name=path[-1] if path else root.name)
            continue
        above = [commands[path[:length]] for length in range(len(path) + 1)]
        known = {name for command in above for parameter in command.parameters for name in parameter.names}
        lines = defined(page)
        standard = {name for line in lines if is_standard(line.names, line.about) for name in line.names}
        shown = dict.fromkeys(name for line in lines for name in (*line.names, *line.opposite))
        yield from (Word(command=path, name=name) for name in shown if name not in known | standard)


def merged(read: Schema, answered: Schema) -> Schema:
    """Return what the reader of help pages and a model found together, in the model's order.

    Of a flag or option that both have, names, kind, choices and description are the reader's, and the type is the
    model's unless the reader saw choices or a flag. It is required or repeatable if either says so. Everything that
    only the model has is taken over; see `checked`. Raises `ValueError` if the whole breaks a rule of schemas.
    """
    command = _merge(read.command, answered.command)
    return Schema.model_validate({"written_by": answered.written_by, "command": command.model_dump()})


def _merge(read: Command, answered: Command) -> Command:
    parameters = _merge_parameters(read.parameters, answered.parameters)
    theirs = {below.name: below for below in answered.subcommands}
    ours = {below.name: below for below in read.subcommands}
    subcommands = [_merge(ours[name], below) if name in ours else below for name, below in theirs.items()]
    subcommands += [below for name, below in ours.items() if name not in theirs]
    names = {name for parameter in parameters for name in parameter.names}
    known: dict[tuple[str, frozenset[str]], Constraint] = {}
    for constraint in (*read.constraints, *answered.constraints):
        if names.issuperset(constraint.parameters):
            owners = frozenset(
                p.name for p in parameters for name in constraint.parameters if name in p.names
            )
            known.setdefault((constraint.kind, owners), constraint)
    several = (known[key] for key in known if len(key[1]) == len(known[key].parameters))
    return Command.model_construct(
        name=read.name,
        about=answered.about or read.about,
        runnable=(read.runnable and answered.runnable) if subcommands else True,
        parameters=tuple(parameters),
        constraints=tuple(several),
        subcommands=tuple(subcommands),
    )


def _merge_parameters(read: Sequence[Parameter], answered: Sequence[Parameter]) -> list[Parameter]:
    owners = {_key(name): parameter for parameter in read for name in parameter.names}
    found: dict[str, Parameter] = {}
    for parameter in answered:
        same = next((owners[_key(name)] for name in parameter.names if _key(name) in owners), None)
        if same is None:
            found.setdefault(parameter.name, parameter)
        else:
            found.setdefault(same.name, _same(same, parameter))
    return [*found.values(), *(parameter for parameter in read if parameter.name not in found)]


def _key(name: str) -> str:
    """Return the name by which parameters are compared. The case of an argument's name does not matter."""
    return name if name.startswith("-") else name.lower()


def _same(read: Parameter, answered: Parameter) -> Parameter:
    """Return the merged form of a parameter that both schemas have."""
    free = read.kind != "flag" and not read.choices and answered.kind != "flag"
    changed = {
        "type": answered.type if free else read.type,
        "choices": answered.choices if free else read.choices,
        "required": read.required or answered.required,
        "repeatable": read.repeatable or answered.repeatable,
        "about": read.about or answered.about,
    }
    return read.model_copy(update=changed)
