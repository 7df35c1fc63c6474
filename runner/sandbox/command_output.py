"""A command's output, deadline and disk: bounded memory however much it prints, limits that hold while it is silent."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from threading import Event, Thread
from typing import Literal, Self

from runner.sandbox.docker.exec_stream import Attached
from runner.sandbox.docker.faults import ENGINE_FAULTS

Excess = Literal["disk", "files"]
"""What a container has more of than its limits allow."""
Stop = Literal["deadline", "cancelled", Excess]
"""Why a command was not allowed to end by itself."""

POLL_SECONDS = 0.1
"""How late a deadline or a cancellation may be noticed."""
HEADER = 8
"""Bytes before each frame of the engine's stream: which stream, three zeros, length (big-endian)."""
STDERR = 2
FIRST_LOOK_SECONDS = 1.0
LOOK_SECONDS = 2.0
"""Longest pause between two quick looks at a container's disk."""
LOOK_SHARE = 10
"""A look that took long is followed by a pause this many times longer."""


class Output:
    """Both streams of a command, each kept up to `cap` bytes; what is beyond is counted and dropped."""

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._kept = (bytearray(), bytearray())
        self._frames = Frames()
        self.total = 0
        """Bytes written to both, kept or not."""

    def add(self, data: bytes | memoryview, *, stderr: bool) -> None:
        """Keep what there is room for."""
        kept = self._kept[stderr]
        kept += data[: self._cap - len(kept)]
        self.total += len(data)

    def split(self, data: bytes) -> None:
        """Add what comes next of the engine's stream."""
        for stderr, payload in self._frames.split(data):
            self.add(payload, stderr=stderr)

    @property
    def cut(self) -> bool:
        """Whether some of it was dropped."""
        return self.total > sum(map(len, self._kept))

    @property
    def stdout(self) -> str:
        """Decoded with replacement."""
        return self._kept[False].decode(errors="replace")

    @property
    def stderr(self) -> str:
        """Decoded with replacement."""
        return self._kept[True].decode(errors="replace")


class Frames:
    """Splits the engine's multiplexed stream, in whatever pieces it arrives."""

    def __init__(self) -> None:
        self._header = bytearray()
        self._left = 0

    def split(self, data: bytes) -> Iterator[tuple[bool, memoryview]]:
        """The payloads in `data`, each with whether it is stderr's."""
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
    """Looks at a container's disk from a thread of its own: a look can take seconds, a deadline cannot wait."""

    def __init__(self, look: Callable[[], Excess | None]) -> None:
        self._look = look
        self._ended = Event()
        self.excess: Excess | None = None

    def __enter__(self) -> Self:
        Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._ended.set()  # not joined: a look under way ends by itself and changes nothing any more

    def _watch(self) -> None:
        pause = FIRST_LOOK_SECONDS
        while not self._ended.wait(pause):
            began = time.monotonic()
            try:
                self.excess = self._look()
            except ENGINE_FAULTS:
                return  # the command's own stream tells of it
            if self.excess:
                return
            pause = max(min(2 * pause, LOOK_SECONDS), LOOK_SHARE * (time.monotonic() - began))


def stopper(
    timeout: float | None,
    cancelled: Callable[[], bool],
    extension: Callable[[], float] = lambda: 0.0,
) -> Callable[[], Stop | None]:
    """A function that says why the command that starts now must end, or None while it may go on."""
    deadline = None if timeout is None else time.monotonic() + timeout

    def reason() -> Stop | None:
        if cancelled():
            return "cancelled"
        if deadline is not None and time.monotonic() >= deadline + extension():
            return "deadline"
        return None

    return reason


def follow(stream: Attached, output: Output, stop: Callable[[], Stop | None]) -> Stop | None:
    """Read a command's output until it is closed; returns why it must end, or None when it closed by itself.

    May go on with the same `output` where an earlier call was stopped.
    """
    while (reason := stop()) is None:
        if (data := stream.receive(POLL_SECONDS)) is None:
            continue
        if not data:  # or the engine went away; the next call to it says so
            return None
        output.split(data)
    return reason
