"""The stream of a command that the engine runs: whatever it prints, from the first byte on."""

from __future__ import annotations

import os
import select
from typing import Any

from docker import APIClient

CHUNK = 1 << 16


class Attached:
    """Starts a created command; its multiplexed output (`execution.Frames` splits it) and its input.

    The client hands out the bare socket beneath the reader that read the headers of the engine's answer. What came in
    one packet with these stays behind in that reader, which is all that a quick command prints: on a busy machine one
    in sixty seemed to print nothing.
    """

    def __init__(self, api: APIClient, run: str) -> None:
        stream: Any = api.exec_start(run, socket=True)
        self._socket, self._response = stream, stream._response  # noqa: SLF001 - the client hangs it there
        self._early = _left_behind(self._response.raw._fp.fp)  # noqa: SLF001 - as the client itself finds the socket

    def receive(self, seconds: float) -> bytes | None:
        """What has arrived: None when nothing has after so long, nothing at the end, also if the engine went away."""
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
        """Number of bytes that were taken, 0 after so long.

        Raises `OSError` or `ValueError` when the other end of the stream or this one is closed.
        """
        if not self._is(select.POLLOUT, seconds):
            return 0
        try:
            return os.write(self._socket.fileno(), data)
        except BlockingIOError:
            return 0

    def close(self) -> None:
        """The command reads the end of its input; of what it still prints nothing is kept."""
        self._response.close()  # else its connection stays open: the socket's own end does not close that
        self._socket.close()

    def _is(self, event: int, seconds: float) -> bool:
        waiting = select.poll()
        waiting.register(self._socket.fileno(), event)
        return bool(waiting.poll(max(0.0, seconds) * 1000))


def _left_behind(reader: Any) -> bytes:
    """What a buffered reader of a socket has read ahead."""
    reader.raw._sock.settimeout(0)  # noqa: SLF001 - asked for more than it has, a reader would wait
    return bytes(reader.read1() or b"")
