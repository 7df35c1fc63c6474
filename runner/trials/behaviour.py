"""The behaviour of an agent, read from its model calls and its ending in the same way for every agent."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from metrics.actions import of_commands, of_kind
from metrics.terminal import is_read, phase, programs
from runner.records import Status, ToolCall

SUBMITTED: Final = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
"""Word that mini-swe-agent prints in its terminal to say that it is done; it has no tool for that."""
COMMANDS: Final = ("command", "cmd", "keystrokes", "script")
"""Argument names under which agents' terminals take a command. The first one that a call has counts."""
LONGEST_COMMAND: Final = 1 << 16
"""Number of characters that are read of one command. A command is hostile text; reading takes linear time."""
LONGEST_COMMANDS: Final = 1 << 22
"""Number of characters that are read of all commands of a trial together."""


def kinds(names: Sequence[str], tools: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the kind of each tool call, in their order. A name that belongs to no kind is `other`."""
    kind_of = {name: kind for kind, members in tools.items() for name in members}
    return tuple(kind_of.get(name, "other") for name in names)


def own_finish(status: Status, kinds: Sequence[str], tools: Mapping[str, Sequence[str]]) -> bool:
    """Return whether the agent ended its work itself (section 4.3.3).

    It must exit well and, where it has a tool to say that it is done, use it. Without such a tool, an agent that stops
    to ask a question looks the same as one that is done.
    """
    return status is Status.COMPLETED and (not tools.get("finish") or "finish" in kinds)


class TerminalUse(NamedTuple):
    """An agent's use of its terminal."""

    phases: tuple[str, ...]
    """Phases of the tool calls, in the calls' order."""
    programs: tuple[str, ...]
    """Programs that the calls of kind `execute` run, in the order of the calls."""
    cut: bool
    """True if a text was cut because it was too long, so that programs may be missing."""


def terminal_use(calls: Sequence[ToolCall], kinds: Sequence[str]) -> TerminalUse:
    """Read the commands of a trial, as far as `LONGEST_COMMAND` and `LONGEST_COMMANDS` allow."""
    texts, left, cut = [], LONGEST_COMMANDS, False
    for call, kind in zip(calls, kinds, strict=True):
        text = command(call) if kind == "execute" else ""
        readable = text[: min(LONGEST_COMMAND, left)]
        cut |= len(readable) < len(text)
        left -= len(readable)
        texts.append(readable)
    phases = tuple(phase(kind, text) for kind, text in zip(kinds, texts, strict=True))
    return TerminalUse(phases, tuple(name for text in texts for name in programs(text)), cut)


def actions(calls: Sequence[ToolCall], kinds: Sequence[str]) -> tuple[str, ...]:
    """Return what a trial's calls did, in order (`metrics.actions`), whatever the tools are called.

    A call of a terminal without a command waits for one, or types into one, and is no action. Commands are read as far
    as `LONGEST_COMMAND` and `LONGEST_COMMANDS` allow.
    """
    found: list[str] = []
    left = LONGEST_COMMANDS
    for call, kind in zip(calls, kinds, strict=True):
        if kind != "execute":
            found.append(of_kind(kind, _subcommand(call) if kind == "edit" else ""))
            continue
        text = "" if _is_input(call) else command(call)[: min(LONGEST_COMMAND, left)]
        left -= len(text)
        found += ("finish",) if SUBMITTED in text else of_commands(text)
    return tuple(found)


def _subcommand(call: ToolCall) -> str:
    """Return the sub-command of an editing tool that has several, such as `view`; empty if it has none."""
    value = _arguments(call).get("command", "")
    return value if isinstance(value, str) else ""


def _is_input(call: ToolCall) -> bool:
    """Return whether a call types into a running command (OpenHands: `is_input`)."""
    return str(_arguments(call).get("is_input", "")).lower() == "true"


def _arguments(call: ToolCall) -> dict[str, Any]:
    try:
        value: Any = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


class FileReads(NamedTuple):
    """File reads of a trial."""

    reads: int
    """Number of calls of kind `read`, and of terminal calls that only print files."""
    repeated: int
    """Number of these reads that repeat an earlier one: the same tool with the same arguments."""


def file_reads(calls: Sequence[ToolCall], kinds: Sequence[str]) -> FileReads:
    """Count reads and repeated reads, in commands as far as `LONGEST_COMMAND` and `LONGEST_COMMANDS` allow."""
    seen: Counter[tuple[str, str]] = Counter()
    left = LONGEST_COMMANDS
    for call, kind in zip(calls, kinds, strict=True):
        if kind == "read":
            seen[call.name, _canonical(call.arguments)] += 1
        elif kind == "execute":
            text = command(call)[: min(LONGEST_COMMAND, left)]
            left -= len(text)
            if is_read(text):
                seen[call.name, text.strip()] += 1
    return FileReads(seen.total(), seen.total() - len(seen))


def _canonical(arguments: str) -> str:
    """Return arguments in one notation, whatever the order and spacing in which the model wrote them."""
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments


def command(call: ToolCall) -> str:
    """Return the shell text that a call of a terminal tool runs; empty if the call has none."""
    try:
        arguments: Any = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return call.arguments  # the tool takes free text
    value = (
        next((arguments[name] for name in COMMANDS if name in arguments), "")
        if isinstance(arguments, dict)
        else arguments
    )
    if isinstance(value, list):  # argv, usually of a shell: bash -lc TEXT
        words = [str(word) for word in value]
        return words[-1] if words[1:2] and words[1] in ("-c", "-lc") else shlex.join(words)
    return str(value or "")
