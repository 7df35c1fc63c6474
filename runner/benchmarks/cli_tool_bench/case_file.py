"""`cases.jsonl`: the fixed cases of a tool, one JSON object a line, whose fields are those of `records.cases.Case`."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from pathlib import Path

from pydantic import ValidationError

from runner.errors import TaskError
from runner.records.base import first_fault
from runner.records.cases import Case

_STATED = re.compile(r"\bCLI Tool Name\W*?:[*\s]*`?([^\s`*]+)|\bcommand-line tool `([^`]+)`", re.IGNORECASE)
"""How prompts state their tool's name: the authors' `**CLI Tool Name**: name`, ours "the command-line tool `name`"."""


def read_cases(path: Path, classes: Collection[str] = (), tool: str | None = None) -> tuple[Case, ...]:
    """All cases of a file, in its order.

    `classes`: those that there may be, and each of which there must be; empty: any. `tool`: the command that each case
    must name. Raises `TaskError` with file, line and reason.
    """
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError as error:
        raise TaskError(f"{path.name} is missing, so nothing could be compared: add it.") from error
    except UnicodeDecodeError as error:
        raise TaskError(f"{path.name} is not UTF-8 text (byte {error.start}): convert it.") from error
    cases = []
    # Not `splitlines`, which also breaks at U+2028 and its like, and these stand in texts as they are.
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        try:
            cases.append(_case(line, classes, tool))
        except ValueError as error:
            raise TaskError(f"{path.name}, line {number}: {error}.") from error
    if absent := sorted({*classes} - {case.command_class for case in cases}):
        raise TaskError(f"{path.name} has no case of class {', '.join(absent)}: add some, or take it out.")
    return tuple(cases)


def names(tool: str, text: str) -> bool:
    """Whether a text names a command: as a word of its own, no part of a path or of a longer name.

    Of a script that is enough: who executes it (`sh -c`, `xargs -n1`, `timeout 5`) takes no part in it.
    """
    return re.search(rf"(?<![\w./-]){re.escape(tool)}(?![\w/-]|\.\w)", text) is not None


def stated(prompt: str) -> list[str]:
    """Names that a prompt gives its tool, in their order."""
    return [match[1] or match[2] for match in _STATED.finditer(prompt)]


def check_prompt(prompt: str, tool: str) -> None:
    """Raises `TaskError` for a prompt after which nobody could pass: it states another name than `tool`, which the
    cases call; or it states none, and `tool` is no word of it.
    """
    other = [name for name in stated(prompt) if name != tool]
    if not other and names(tool, prompt):
        return
    found = f"calls the tool {other[0]!r}, and the cases {tool!r}" if other else f"never names {tool!r}"
    raise TaskError(f"instruction.md {found}: correct it, or set dataset.check_names=false.")


def _case(line: str, classes: Collection[str], tool: str | None) -> Case:
    try:
        case = Case.model_validate(json.loads(line))
    except json.JSONDecodeError as error:
        raise ValueError(f"it is no JSON ({error})") from error
    except ValidationError as error:
        raise ValueError(first_fault(error)) from error
    if classes and case.command_class not in classes:
        raise ValueError(f"unknown class {case.command_class!r}; task.toml has {', '.join(sorted(classes))}")
    if tool and not names(tool, case.command):
        raise ValueError(f"its command does not name {tool!r}, as the prompt calls the tool")
    return case
