"""Check whether the classes of a schema cover those of a task that was written by hand."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence

from runner.benchmarks.cli_tool_bench.construction.classes import CommandClass
from runner.benchmarks.cli_tool_bench.construction.schema import Command, Schema
from runner.records.cases import Case


def uncovered(cases: Iterable[Case], schema: Schema, classes: Sequence[CommandClass]) -> dict[str, list[str]]:
    """Return hand-written class -> uncovered words of its positive cases. Classes that are fully covered are absent.

    A subcommand is covered by any derived class of it, an option by a derived class of the same command that exercises
    the option.
    """
    exercised = {(one.words[1:], name) for one in classes for name in one.exercised}
    commands = {one.words[1:] for one in classes}
    found: dict[str, list[str]] = {}
    for case in cases:
        if case.negative:
            continue
        for path, name in _used(case.command, schema.command):
            known = (path, name) in exercised if name else path in commands
            words = " ".join((*path, name)).strip() or schema.command.name
            if not known and words not in found.setdefault(case.command_class, []):
                found[case.command_class].append(words)
    return {name: words for name, words in found.items() if words}


def _used(command: str, root: Command) -> Iterable[tuple[tuple[str, ...], str]]:
    """Yield (subcommand, option) of every call of the tool in a shell command; the call itself has an empty option."""
    try:
        lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError:
        words = command.split()
    for index, word in enumerate(words):
        if word == root.name:
            yield from _call(words[index + 1 :], root)


def _call(words: Sequence[str], root: Command) -> Iterable[tuple[tuple[str, ...], str]]:
    node = root
    path: tuple[str, ...] = ()
    options: list[tuple[tuple[str, ...], str]] = []
    for word in words:
        if set(word) <= set("|&;<>()"):
            break
        below = next((one for one in node.subcommands if one.name == word), None)
        if below is not None:
            node, path = below, (*path, word)
            continue
        name = word.partition("=")[0] if word.startswith("--") else word
        owner = node.find(name) or (node.find(name[:2]) if name.startswith("-") and len(name) > 2 else None)  # noqa: PLR2004
        if owner is not None and owner.kind != "argument":
            options.append((path, owner.name))
        elif owner is None and re.match(r"--?[A-Za-z]", name):
            options.append((path, name))  # the schema lacks it, so no class has it
    yield path, ""
    yield from options
