"""The control centre's terminal: one shell that lives as long as the rollout (ExecutionAgent, section 2.4.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from runner.protocols import Sandbox
from runner.records import Record


class Shown(Record):
    """What a model is shown of a command."""

    state: Literal["ended", "running", "lost", "gone"]
    """running: the time limit has passed; wait, write or terminate. lost: the terminal ended under the command and is
    started anew for the next one. gone: the machine itself takes no commands any more, nor will it."""
    output: str = ""
    """What was printed since the last time, both streams in their order, cleaned; the middle of much is left out."""
    exit_code: int | None = None
    """None unless it ended by itself or by a signal (128 + n)."""
    seconds: float = 0.0
    """Since the command began."""
    note: str = ""
    """What else there is to know, in sentences: a new shell, an end by force. Empty: nothing."""


class Terminal:
    """A shell in a sandbox that keeps its folder, variables and background processes between commands.

    `limit_seconds` is how long each call waits for a command's end. `check` is called several times a second and
    raises `Stopped` when the rollout may go no further; the sandbox's processes are dead then, its files are not.
    Every method raises `EngineError` when the sandbox cannot be reached, and nothing for what a command does.
    """

    def __init__(self, sandbox: Sandbox, limit_seconds: float, check: Callable[[], None]) -> None:
        self._sandbox = sandbox
        self._limit = limit_seconds
        self._check = check

    @property
    def cwd(self) -> str:
        """The shell's folder after the last command."""
        raise NotImplementedError

    def run(self, command: str) -> Shown:
        """Run a command until it ends or the limit passes; while another one runs it is not started, and so said."""
        raise NotImplementedError

    def wait(self) -> Shown:
        """Wait for the running command once more."""
        raise NotImplementedError

    def write(self, text: str) -> Shown:
        """Type text and a line's end into the running command's terminal, and wait."""
        raise NotImplementedError

    def terminate(self) -> Shown:
        """End the running command and all that it started; the shell stays."""
        raise NotImplementedError


class Answer(Record):
    """Of a tool for files."""

    text: str
    """What was asked for, or a sentence that says why there is none."""
    failed: bool = False


def read_file(sandbox: Sandbox, path: str, cwd: str) -> Answer:
    """The text of a file of the sandbox, its end left out when it is long. Raises `EngineError`."""
    raise NotImplementedError


def write_file(sandbox: Sandbox, path: str, content: str, cwd: str) -> Answer:
    """Write a file of the sandbox, and the folders above it. Raises `EngineError`."""
    raise NotImplementedError
