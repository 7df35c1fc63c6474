"""A command's output, deadline and disk use: bounded memory for any output, and limits that hold during silence."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from threading import Event, Thread
from typing import Literal, Self

from runner.sandbox.docker.exec_stream import Attached
from runner.sandbox.docker.faults import ENGINE_FAULTS

Excess = Literal["disk", "files"]
"""Limit that a container exceeds."""
Stop = Literal["deadline", "cancelled", Excess]
"""Reason for ending a command."""

POLL_SECONDS = 0.1
"""Longest delay in noticing a deadline or a cancellation."""
HEADER = 8
"""Bytes before each frame of the engine's stream: the stream's number, three zeros, the length (big-endian)."""
STDERR = 2
FIRST_LOOK_SECONDS = 1.0
LOOK_SECONDS = 2.0
"""Longest pause between two quick looks at a container's disk."""
LOOK_SHARE = 10
"""Pause after a slow look, as a multiple of its duration."""


class Output:
    """Both streams of a command, each stored up to `cap` bytes. The rest is counted and dropped."""

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._stored = (bytearray(), bytearray())
        self._frames = Frames()
        self.total = 0
        """Bytes written to both streams, stored or dropped."""

    def add(self, data: bytes | memoryview, *, stderr: bool) -> None:
        """Store the data as far as there is room."""
        stored = self._stored[stderr]
        stored += data[: self._cap - len(stored)]
        self.total += len(data)

    def split(self, data: bytes) -> None:
        """Add the next piece of the engine's stream."""
        for stderr, payload in self._frames.split(data):
            self.add(payload, stderr=stderr)

    @property
    def cut(self) -> bool:
        """Whether some output was dropped."""
        return self.total > sum(map(len, self._stored))

    @property
    def stdout(self) -> str:
        """Stored stdout, decoded with replacement."""
        return self._stored[False].decode(errors="replace")

    @property
    def stderr(self) -> str:
        """Stored stderr, decoded with replacement."""
        return self._stored[True].decode(errors="replace")


class Frames:
    """Splitter of the engine's multiplexed stream, which may arrive in any pieces."""

    def __init__(self) -> None:
        self._header = bytearray()
        self._left = 0

    def split(self, data: bytes) -> Iterator[tuple[bool, memoryview]]:
        """Yield the payloads in `data`, each after whether it belongs to stderr."""
        rest = memoryview(data)
        while rest:
            if self._left:
                payload, rest = rest[: self._left], rest[self._left :]
                self._left -= len(payload)
                yield self._header[0] == STDERR, payload
                continue
            if len(self._header) == HEADER:
                self._header.clear()
            missing = HEADER - len(self._header)
            self._header += rest[:missing]
            rest = rest[missing:]
            if len(self._header) == HEADER:
                self._left = int.from_bytes(self._header[4:], "big")


class DiskWatch:
    """A thread that looks at a container's disk. A look can take seconds, and a deadline cannot wait for it."""

    def __init__(self, look: Callable[[], Excess | None]) -> None:
        self._look = look
        self._ended = Event()
        self.excess: Excess | None = None

    def __enter__(self) -> Self:
        Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._ended.set()  # not joined: a look in progress ends by itself and has no effect any more

    def _watch(self) -> None:
        pause = FIRST_LOOK_SECONDS
        while not self._ended.wait(pause):
            began = time.monotonic()
            try:
                self.excess = self._look()
            except ENGINE_FAULTS:
                return  # the command's own stream reports the fault
            if self.excess:
                return
            pause = max(min(2 * pause, LOOK_SECONDS), LOOK_SHARE * (time.monotonic() - began))


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


def follow(stream: Attached, output: Output, stop: Callable[[], Stop | None]) -> Stop | None:
    """Read a command's output until it is closed. Return why the command must end, or None if the output ended by
    itself.

    A later call with the same `output` may continue where an earlier one stopped.
    """
    while (reason := stop()) is None:
        if (data := stream.receive(POLL_SECONDS)) is None:
            continue
        if not data:  # the end, or the engine is gone; in that case the next call to it says so
            return None
        output.split(data)
    return reason
