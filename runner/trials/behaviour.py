"""How an agent worked, read from its model calls and its ending: the same for every agent."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from metrics.terminal import phase, programs
from runner.records import Status, ToolCall

COMMANDS: Final = ("command", "cmd", "keystrokes", "script")
"""Names under which agents' terminals take what is to be run; the first that a call has counts."""
LONGEST_COMMAND: Final = 1 << 16
"""Characters of one command that are read. They are hostile text, read in linear time."""
LONGEST_COMMANDS: Final = 1 << 22
"""Characters of all commands of a trial that are read."""


def kinds(names: Sequence[str], tools: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The kind of each tool call, in their order; a name that no kind has is `other`."""
    kind = {name: kind for kind, of in tools.items() for name in of}
    return tuple(kind.get(name, "other") for name in names)


def own_finish(status: Status, kinds: Sequence[str], tools: Mapping[str, Sequence[str]]) -> bool:
    """Whether the agent ended its work itself (section 4.3.3): it exited well and, where it has a tool to say that it
    is done, said so with it. An agent without one that stops to ask cannot be told from one that is done.
    """
    return status is Status.COMPLETED and (not tools.get("finish") or "finish" in kinds)


class TerminalUse(NamedTuple):
    """What an agent did in its terminal."""

    phases: tuple[str, ...]
    """Phase of each tool call, in their order."""
    programs: tuple[str, ...]
    """Every program that the calls of kind `execute` run, in their order."""
    cut: bool
    """Whether some command was longer than what is read, so that programs may be missing."""


def in_terminal(calls: Sequence[ToolCall], kinds: Sequence[str]) -> TerminalUse:
    """Read what the commands of a trial run, as far as `LONGEST_COMMAND` and `LONGEST_COMMANDS` allow."""
    texts, left, cut = [], LONGEST_COMMANDS, False
    for call, kind in zip(calls, kinds, strict=True):
        text = command(call) if kind == "execute" else ""
        readable = text[: min(LONGEST_COMMAND, left)]
        cut |= len(readable) < len(text)
        left -= len(readable)
        texts.append(readable)
    phases = tuple(phase(kind, text) for kind, text in zip(kinds, texts, strict=True))
    return TerminalUse(phases, tuple(name for text in texts for name in programs(text)), cut)


def command(call: ToolCall) -> str:
    """The shell text that a call of a terminal runs; empty if it says none."""
    try:
        given: Any = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return call.arguments  # a freeform tool's
    value = (
        next((given[name] for name in COMMANDS if name in given), "") if isinstance(given, dict) else given
    )
    if isinstance(value, list):  # argv, of a shell as a rule: bash -lc TEXT
        words = [str(word) for word in value]
        return words[-1] if words[1:2] and words[1] in ("-c", "-lc") else shlex.join(words)
    return str(value or "")
