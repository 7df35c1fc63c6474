"""Unroll a schema into command classes: functional paths with valid combinations of parameters (section 2.2.2)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping

from pydantic import Field

from runner.benchmarks.cli_tool_bench.construction.help.option_lines import is_standard
from runner.benchmarks.cli_tool_bench.construction.schema import (
    Command,
    Constraint,
    Parameter,
    Path,
    Schema,
    walk,
)
from runner.benchmarks.sources.rejections import rejected
from runner.records import Record

LONGEST_DESCRIPTION = 120
LONGEST_NAME = 100
"""Longest name of a class, in characters. Files are named after it, and a tool's help may list words of any length."""
BASE = "BASIC"
"""Name of the base class that stands for the tool itself, without a subcommand."""


class CommandClass(Record):
    """A functional path: a command, and what its cases exercise."""

    name: str = Field(pattern=r"^[A-Z0-9][A-Z0-9_]*$")
    """Name of the class in task.toml, and of the generator's file."""
    words: tuple[str, ...] = Field(min_length=1)
    """Words of the command, the tool's own first."""
    exercised: tuple[str, ...] = ()
    """Longest names of the flags and options that the class is about; none for a base class."""
    parameters: tuple[str, ...] = ()
    """Longest names of all parameters of a valid call: the exercised ones, and those that the constraints also
    require."""
    description: str = Field(min_length=1, max_length=LONGEST_DESCRIPTION)
    """One line for task.toml."""


class ExcludedClass(Record):
    """A command class that was excluded, with the reason."""

    name: str
    reason: str


class Unrolled(Record):
    """All command classes of a schema, in their order."""

    classes: tuple[CommandClass, ...]
    dropped: tuple[str, ...] = ()
    """Names of classes beyond the cap."""
    excluded: tuple[ExcludedClass, ...] = ()


def unroll(schema: Schema, cap: int, exclude: Mapping[str, str] | None = None) -> Unrolled:
    """Return the classes: one for each runnable command, then one for each flag and option, then those of pairs.

    `cap` limits the number of classes. `exclude` has the parameters without a class, as `--flag` for all commands or as
    `sub --flag` for one, each with the reason. Raises `RejectedError` if one of them does not exist, or if nothing is
    left.
    """
    if cap < 1:
        raise ValueError(f"a cap of {cap} leaves no class")
    exclude = exclude or {}
    found: list[CommandClass] = []
    excluded: list[ExcludedClass] = []
    names: set[str] = set()
    for wanted in _wanted(schema.command):
        name = _unique(wanted.name, names)
        names.add(name)
        fault, parameters = _completed(wanted, exclude)
        if fault:
            excluded.append(ExcludedClass(name=name, reason=fault))
            continue
        words = (schema.command.name, *wanted.path)
        exercised = tuple(parameter.name for parameter in wanted.exercised)
        description = _description(words, wanted)
        found.append(
            CommandClass(
                name=name, words=words, exercised=exercised, parameters=parameters, description=description
            )
        )
    _check_excluded(schema.command, exclude)
    if not found:
        raise rejected("classes", "no command class is left: exclude less.")
    dropped = tuple(command_class.name for command_class in found[cap:])
    return Unrolled(classes=tuple(found[:cap]), dropped=dropped, excluded=tuple(excluded))


def _check_excluded(root: Command, exclude: Mapping[str, str]) -> None:
    """Raise `RejectedError` if a parameter is to be excluded that no command has."""
    known = {key for path, command in walk(root) for p in command.parameters for key in _keys(p, path)}
    if unknown := [key for key in exclude if key not in known]:
        raise rejected(
            "classes", f"{unknown[0]!r} is to be excluded, and no command has it: correct tool.yaml."
        )


class _Wanted(Record):
    """A class before its parameters are completed and its name is made unique."""

    name: str
    path: Path
    command: Command
    exercised: tuple[Parameter, ...] = ()


def _wanted(root: Command) -> Iterator[_Wanted]:
    """Yield all classes in their order: base classes, options, pairs."""
    commands = [(path, command) for path, command in walk(root) if command.runnable]
    for path, command in commands:
        yield _Wanted(name=_name(*path) if path else BASE, path=path, command=command)
    for path, command in commands:
        for parameter in command.parameters:
            if parameter.kind != "argument" and not is_standard(parameter.names, parameter.about):
                yield _Wanted(
                    name=_name(*path, parameter.name), path=path, command=command, exercised=(parameter,)
                )
    for path, command in commands:
        for constraint in command.constraints:
            owners = _owners(command, constraint)
            if constraint.kind == "requires":
                name = _name(*path, *(owner.name for owner in owners))
                yield _Wanted(name=name, path=path, command=command, exercised=owners)


def _name(*words: str) -> str:
    """Return a class's name made of words: upper case, `_` for all but letters and digits, cut if it is too long."""
    parts = [re.sub(r"[^A-Z0-9]", "_", word.lstrip("-").upper()) for word in words]
    name = "_".join(
        part if part.strip("_") else _spelled(word) for part, word in zip(parts, words, strict=True)
    )
    name = name.lstrip("_")
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[: LONGEST_NAME - 9]}_{hashlib.sha256(name.encode()).hexdigest()[:8].upper()}"


def _spelled(word: str) -> str:
    """Return a name for an option without letters and digits, such as `-?`, from its characters' code points."""
    return "_".join(f"X{ord(character):X}" for character in word.lstrip("-") or word)


def _unique(name: str, taken: set[str]) -> str:
    number, unique = 1, name
    while unique in taken:
        number += 1
        unique = f"{name}_{number}"
    return unique


def _owners(command: Command, constraint: Constraint) -> tuple[Parameter, ...]:
    return tuple(owner for owner in map(command.find, constraint.parameters) if owner)


def _completed(wanted: _Wanted, exclude: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Return why a class is left out (empty if it is not), and the names of all parameters of a valid call."""
    command = wanted.command
    chosen = {parameter.name: parameter for parameter in wanted.exercised}
    chosen |= {parameter.name: parameter for parameter in command.parameters if parameter.required}
    groups = [(constraint.kind, _owners(command, constraint)) for constraint in command.constraints]
    forbidden = [group for kind, group in groups if kind != "requires"]
    for kind, group in groups:
        if kind == "one_of" and not any(owner.name in chosen for owner in group):
            free = [owner for owner in group if not _clashes({*chosen, owner.name}, forbidden)]
            chosen |= {owner.name: owner for owner in free[:1]}
    for _ in groups:  # what is required may require more
        for kind, group in groups:
            if kind == "requires" and group[0].name in chosen:
                chosen |= {owner.name: owner for owner in group}
    for owner in chosen.values():
        if key := next((key for key in _keys(owner, wanted.path) if key in exclude), None):
            own = owner in wanted.exercised
            return exclude[key] if own else f"it needs {owner.name}, which is excluded: {exclude[key]}", ()
    if clash := _clashes({*chosen}, forbidden):
        return f"{' and '.join(clash)} exclude each other", ()
    return "", tuple(chosen)


def _clashes(names: set[str], forbidden: list[tuple[Parameter, ...]]) -> list[str]:
    """Return the first parameters of which at most one may be given."""
    for group in forbidden:
        both = [owner.name for owner in group if owner.name in names]
        if len(both) > 1:
            return both
    return []


def _keys(parameter: Parameter, path: Path) -> list[str]:
    """Return the keys by which a parameter can be excluded."""
    return [key for name in parameter.names for key in (name, " ".join((*path, name)))]


def _description(words: tuple[str, ...], wanted: _Wanted) -> str:
    abouts = (
        [parameter.about for parameter in wanted.exercised] if wanted.exercised else [wanted.command.about]
    )
    text = "; ".join(about.strip() for about in abouts if about.strip())
    text = text or " ".join((*words, *(parameter.name for parameter in wanted.exercised)))
    return text if len(text) <= LONGEST_DESCRIPTION else f"{text[: LONGEST_DESCRIPTION - 2].rstrip()}.."
