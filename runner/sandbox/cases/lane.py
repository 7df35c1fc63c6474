"""One lane: a supervisor in a side's container that answers one case after another."""

from __future__ import annotations

import time
from collections.abc import Sequence

from docker import APIClient

from runner.sandbox.command_output import stopper
from runner.sandbox.docker.command_stream import Attached, exit_code
from runner.sandbox.docker.freezing import despite_late_events

COMPLAINT = 2_000
"""Number of characters of a supervisor's stderr that an error carries."""
HANGS = 124


class LaneDied(Exception):  # noqa: N818 - says what happened
    """The supervisor ended in the middle of a case, hangs, or sent nonsense.

    The message says which, or is the end of its stderr.
    """


class Lane:
    """A running supervisor, started by the constructor. Not thread-safe: one case at a time."""

    def __init__(self, api: APIClient, container: str, command: Sequence[str], longest: int) -> None:
        """Start the supervisor. A supervisor that answers more than `longest` bytes counts as dead."""
        self._api, self._longest = api, longest
        self._run = despite_late_events(
            lambda: api.exec_create(container, list(command), stdin=True, user="0")
        )["Id"]
        self._stream = Attached(api, self._run)
        self._answer, self._complaint = bytearray(), bytearray()

    def ask(self, request: bytes, seconds: float) -> bytes:
        """Send a line and return the answering line.

        Raises `LaneDied`, also when there is no answer in time or more than one.
        """
        until = time.monotonic() + seconds
        self._send(request + b"\n", until)
        looked = 0
        while (end := self._answer.find(b"\n", looked)) < 0:
            looked = len(self._answer)
            self._receive(until)
        answer, rest = bytes(self._answer[:end]), self._answer[end + 1 :]
        self._answer = bytearray()
        if rest:
            raise LaneDied("it answered more than once")
        return answer

    def wait(self, seconds: float) -> int:
        """Return the exit code of a supervisor that ends by itself, or `HANGS`. `complaint` is complete afterwards."""
        until = time.monotonic() + seconds
        try:
            while True:
                self._receive(until)
        except LaneDied:
            code = exit_code(self._api, self._run, stopper(until - time.monotonic(), lambda: False))
            return code if isinstance(code, int) else HANGS

    @property
    def complaint(self) -> str:
        """The end of the supervisor's stderr."""
        return self._complaint[-COMPLAINT:].decode(errors="replace").strip()

    def close(self) -> None:
        """Close the supervisor's input, which ends it."""
        self._stream.close()

    def _send(self, data: bytes, until: float) -> None:
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[self._stream.send(rest, self._left(until)) :]
            except (OSError, ValueError) as error:  # either end of the stream is closed
                raise LaneDied(self.complaint) from error

    def _receive(self, until: float) -> None:
        data = self._stream.receive(self._left(until))
        if data is None:
            return
        if not data:
            raise LaneDied(self.complaint)
        if len(self._answer) > self._longest:
            raise LaneDied("its answer is too long")
        for stderr, payload in self._stream.frames.split(data):
            (self._complaint if stderr else self._answer).extend(payload)
        del self._complaint[:-COMPLAINT]

    def _left(self, until: float) -> float:
        if (left := until - time.monotonic()) <= 0:
            raise LaneDied("it did not answer in time")
        return left
