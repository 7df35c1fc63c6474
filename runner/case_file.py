"""`cases.jsonl`: the fixed cases of a tool, a JSON object a line; `runner.cases.Case` says what a line may hold."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Collection
from pathlib import Path

from pydantic import ValidationError

from runner.cases import Case
from runner.errors import TaskError

SIGNS = "();<>|&\n"
"""What ends a word of a shell's, and is none."""
BEFORE = frozenset(
    ("!", "{", "if", "then", "elif", "else", "while", "until", "do", "env", "exec", "time", "xargs")
)
"""Words after which a command's name still comes."""


def read_cases(path: Path, classes: Collection[str] = (), tool: str | None = None) -> tuple[Case, ...]:
    """All cases of a file, in its order.

    `classes`: those that there may be, and each of which there must be; empty: any. `tool`: the command that each case
    must call. Raises `TaskError` with file, line and reason.
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
    """Whether a text names a command: as a word of its own, no part of a path or of a longer name."""
    return re.search(rf"(?<![\w./-]){re.escape(tool)}(?![\w/-]|\.\w)", text) is not None


def calls(tool: str, command: str) -> bool:
    """Whether a shell that is given `command` executes `tool`: it is the first word of a simple command, assignments,
    redirections and `BEFORE` left out. A name within quotes (`sh -c 'tool'`) is not seen.
    """
    words = shlex.shlex(command, posix=True, punctuation_chars=SIGNS)
    words.whitespace, words.whitespace_split, words.commenters = " \t\r", True, ""
    first, redirected = True, False
    try:
        for word in words:
            if re.fullmatch(rf"[{SIGNS}]+", word):
                redirected = "<" in word or ">" in word
                first = first or not redirected
            elif redirected:
                redirected = False
            elif first and word == tool:
                return True
            else:
                first = first and (word in BEFORE or re.match(r"[A-Za-z_]\w*=", word) is not None)
    except ValueError:  # a quote that nothing closes, and the tool was not called before it
        return False
    return False


def _case(line: str, classes: Collection[str], tool: str | None) -> Case:
    try:
        case = Case.model_validate(json.loads(line))
    except json.JSONDecodeError as error:
        raise ValueError(f"it is no JSON ({error})") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        what = first["msg"].removeprefix("Value error, ")
        raise ValueError(f"{where}: {what}" if where else what) from error
    if classes and case.command_class not in classes:
        raise ValueError(f"unknown class {case.command_class!r}; task.toml has {', '.join(sorted(classes))}")
    if tool and not calls(tool, case.command):
        raise ValueError(f"its command does not call {tool!r}, as the prompt names the tool")
    return case
