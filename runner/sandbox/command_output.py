"""A command's output and time limit. Any output takes bounded memory, and limits hold even during silence."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

from runner.records import ExecResult

Excess = Literal["disk", "files"]
"""Limit that a container exceeds."""
Stop = Literal["deadline", "cancelled", Excess]
"""Reason for ending a command."""

CHUNK = 1 << 16
"""Number of bytes that are read at once from a command's output."""
POLL_SECONDS = 0.1
"""Longest delay in noticing a deadline or a cancellation."""


class Output:
    """The two output streams of a command, each stored up to `cap` bytes. The rest is counted and dropped."""

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._stored = (bytearray(), bytearray())
        self.total = 0
        """Bytes written to both streams, stored or dropped."""

    def add(self, data: bytes | memoryview, *, stderr: bool) -> None:
        """Store the data as far as there is room."""
        stored = self._stored[stderr]
        stored += data[: self._cap - len(stored)]
        self.total += len(data)

    @property
    def cut(self) -> bool:
        """Return whether some output was dropped."""
        return self.total > sum(map(len, self._stored))

    @property
    def stdout(self) -> str:
        """Stored stdout, decoded with replacement."""
        return self._stored[False].decode(errors="replace")

    @property
    def stderr(self) -> str:
        """Stored stderr, decoded with replacement."""
        return self._stored[True].decode(errors="replace")

    def result(self, ending: int | Stop | Literal["lost"], seconds: float) -> ExecResult:
        """Return the command's result. `ending` is its exit code or why it has none; `seconds` are its wall time."""
        exited = isinstance(ending, int)
        return ExecResult(
            exit_code=ending if exited else None,
            ended="exited" if exited else ending,
            stdout=self.stdout,
            stderr=self.stderr,
            seconds=seconds,
            output_bytes=self.total,
            output_cut=self.cut,
        )


def stopper(
    timeout: float | None,
    cancelled: Callable[[], bool],
    extension: Callable[[], float] = lambda: 0.0,
) -> Callable[[], Stop | None]:
    """Return a function that says why the command that starts now must end; it returns None while it may go on."""
    deadline = None if timeout is None else time.monotonic() + timeout

    def reason() -> Stop | None:
        if cancelled():
            return "cancelled"
        if deadline is not None and time.monotonic() >= deadline + extension():
            return "deadline"
        return None

    return reason
