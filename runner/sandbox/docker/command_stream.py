"""The output and input of a command that the engine runs, complete from the first byte."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Iterator
from typing import Any

from docker import APIClient

from runner.sandbox.command_output import CHUNK, POLL_SECONDS, Output, Stop
from runner.sandbox.docker.freezing import despite_late_events

HEADER = 8
"""Bytes before each frame of the engine's stream: the stream's number, three zeros, the length (big-endian)."""
STDERR = 2
LONGEST_PAUSE_SECONDS = 0.25
"""Longest pause between two questions whether a silent command still runs."""


class Attached:
    """The multiplexed output and the input of a created command, which the constructor starts.

    The client returns the bare socket beneath the reader that parsed the response headers. Bytes that arrived in the
    same packet as the headers stay in that reader. For a quick command these are its whole output: on a busy machine
    about one in sixty seemed to print nothing.
    """

    def __init__(self, api: APIClient, run: str) -> None:
        stream: Any = despite_late_events(lambda: api.exec_start(run, socket=True))
        self._socket, self._response = stream, stream._response  # noqa: SLF001 - the client keeps the response there
        self._early = _left_behind(self._response.raw._fp.fp)  # noqa: SLF001 - as the client finds it
        self.frames = Frames()
        """Splitter of what `receive` returns."""

    def receive(self, seconds: float) -> bytes | None:
        """Return the bytes that have arrived.

        None means that nothing arrived within `seconds`; empty bytes mean the end of the stream or a lost engine.
        """
        if early := self._early:
            self._early = b""
            return early
        if not self._is(select.POLLIN, seconds):
            return None
        try:
            return os.read(self._socket.fileno(), CHUNK)
        except BlockingIOError:
            return None
        except ConnectionError:
            return b""

    def send(self, data: memoryview, seconds: float) -> int:
        """Send what the socket takes and return its number of bytes: 0 if it takes nothing within `seconds`.

        Raises `OSError` or `ValueError` when either end of the stream is closed.
        """
        if not self._is(select.POLLOUT, seconds):
            return 0
        try:
            return os.write(self._socket.fileno(), data)
        except BlockingIOError:
            return 0

    def close(self) -> None:
        """Close both directions: the command reads the end of its input, and its further output is dropped."""
        self._response.close()  # closing the socket alone leaves the connection open
        self._socket.close()

    def _is(self, event: int, seconds: float) -> bool:
        waiting = select.poll()
        waiting.register(self._socket.fileno(), event)
        return bool(waiting.poll(max(0.0, seconds) * 1000))


class Frames:
    """Splitter of the engine's multiplexed stream, which may arrive in any pieces."""

    def __init__(self) -> None:
        self._header = bytearray()
        self._left = 0

    def split(self, data: bytes) -> Iterator[tuple[bool, memoryview]]:
        """Yield the payloads in `data` as pairs: whether the payload belongs to stderr, and the payload."""
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


def follow(stream: Attached, output: Output, stop: Callable[[], Stop | None]) -> Stop | None:
    """Read a command's output to its end, and return None; or return why the command must end before.

    A later call may continue where an earlier one stopped.
    """
    while (reason := stop()) is None:
        if (data := stream.receive(POLL_SECONDS)) is None:
            continue
        if not data:  # the end, or the engine is gone; in that case the next call to it says so
            return None
        for stderr, payload in stream.frames.split(data):
            output.add(payload, stderr=stderr)
    return reason


def exit_code(api: APIClient, run: str, stop: Callable[[], Stop | None]) -> int | Stop:
    """Wait for a command whose output has ended. Return its exit code, or why the command must end before.

    A command that closes its own streams may run on for long.
    """
    pause = 0.005
    while (reason := stop()) is None:
        state = api.exec_inspect(run)
        if not state["Running"] and state["ExitCode"] is not None:
            return int(state["ExitCode"])
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
    return reason


def _left_behind(reader: Any) -> bytes:
    """Return what a buffered reader of a socket has read ahead."""
    reader.raw._sock.settimeout(0)  # noqa: SLF001 - without this, the reader would wait for more
    return bytes(reader.read1() or b"")
