"""`cases.jsonl`: the fixed cases of a tool, one JSON object per line, with the fields of `records.cases.Case`."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from pathlib import Path

from pydantic import ValidationError

from runner.errors import TaskError
from runner.records.base import first_fault
from runner.records.cases import Case

_NAME = re.compile(r"\bCLI Tool Name\W*?:[*\s]*`?([^\s`*]+)|\bcommand-line tool `([^`]+)`", re.IGNORECASE)
"""The tool's name in a prompt: `**CLI Tool Name**: name` in the authors', "the command-line tool `name`" in ours."""


def read_cases(path: Path, classes: Collection[str] = (), tool: str | None = None) -> tuple[Case, ...]:
    """Read all cases of a file, in its order.

    `classes` are the permitted command classes, each of which needs a case; if empty, any class is permitted. `tool` is
    the command that each case must mention. Raises `TaskError` with file, line and reason.
    """
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError as error:
        raise TaskError(f"{path.name} is missing, so nothing could be compared: add it.") from error
    except UnicodeDecodeError as error:
        raise TaskError(f"{path.name} is not UTF-8 text (byte {error.start}): convert it.") from error
    cases = []
    # `splitlines` would also break at U+2028 and the like, which JSON permits within strings.
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        try:
            cases.append(_read_case(line, classes, tool))
        except ValueError as error:
            raise TaskError(f"{path.name}, line {number}: {error}.") from error
    if absent := sorted({*classes} - {case.command_class for case in cases}):
        raise TaskError(
            f"{path.name} has no case of class {', '.join(absent)}: add one, or remove the class from task.toml."
        )
    return tuple(cases)


def mentions(text: str, tool: str) -> bool:
    """Return whether a text names a command as a word of its own, not as part of a path or of a longer name.

    How a script runs the command (`sh -c`, `xargs -n1`, `timeout 5`) does not matter.
    """
    return re.search(rf"(?<![\w./-]){re.escape(tool)}(?![\w/-]|\.\w)", text) is not None


def find_names(prompt: str) -> list[str]:
    """Return the names that a prompt gives its tool, in their order."""
    return [match[1] or match[2] for match in _NAME.finditer(prompt)]


def check_prompt(prompt: str, tool: str) -> None:
    """Raise `TaskError` if nobody could pass: the prompt gives the tool another name, or never mentions `tool`."""
    others = [name for name in find_names(prompt) if name != tool]
    if not others and mentions(prompt, tool):
        return
    defect = f"calls the tool {others[0]!r}, and the cases {tool!r}" if others else f"never names {tool!r}"
    raise TaskError(f"instruction.md {defect}: correct it, or set dataset.check_names=false.")


def _read_case(line: str, classes: Collection[str], tool: str | None) -> Case:
    """Read one line. Raises `ValueError`."""
    try:
        case = Case.model_validate(json.loads(line))
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON ({error})") from error
    except ValidationError as error:
        raise ValueError(first_fault(error)) from error
    if classes and case.command_class not in classes:
        raise ValueError(f"unknown class {case.command_class!r}; task.toml has {', '.join(sorted(classes))}")
    if tool and not mentions(case.command, tool):
        raise ValueError(f"its command does not name {tool!r}, as the prompt calls the tool")
    return case
