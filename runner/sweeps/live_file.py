"""Read and write `live.json`, in which the process of a sweep describes its present state.

It is written beside the sweep by a thread of its own, without flushing, at most once a second and at least once in
`BEAT_SECONDS`. Nothing depends on it, so a full disk only leaves it out of date.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from typing import Any, Self

from pydantic import ValidationError

from runner.errors import OutputsError
from runner.files import write_atomically
from runner.records import LiveSweep

NAME = "live.json"
LOOK_SECONDS = 1.0
"""Least time between two writes."""
BEAT_SECONDS = 5.0
"""Longest time between two writes."""


def read(folder: Path) -> LiveSweep | None:
    """Return the state of the sweep in this folder; None without a file that this version can read."""
    try:
        return parse((folder / NAME).read_bytes())
    except OSError:
        return None


def parse(content: bytes) -> LiveSweep | None:
    """Return the state in the content of such a file; None if this version cannot read it."""
    try:
        return LiveSweep.model_validate_json(content)
    except ValidationError:
        return None


class LiveFile:
    """Keeps a sweep's `live.json` up to date while its context is open."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._over = folder, Event()
        self._fixed = {"host": socket.gethostname(), "pid": os.getpid(), "began": datetime.now(UTC)}
        self._describe: Callable[[], dict[str, Any]] = dict
        self._beat = Thread(target=self._write_regularly, name="live file", daemon=True)

    def __enter__(self) -> Self:
        self._write()
        self._beat.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._beat.join()
        self.finish("")
        self._write(ended=datetime.now(UTC))

    def follow(self, describe: Callable[[], dict[str, Any]]) -> None:
        """Write the fields of `LiveSweep` that this function returns, from now on. A thread of its own calls it."""
        self._describe = describe

    def finish(self, doing: str) -> None:
        """Note that all trials have ended, and what is being done now."""
        told = self._describe() | {"running": (), "waiting": 0, "left": "", "doing": doing}
        self._describe = lambda: told

    def _write_regularly(self) -> None:
        before, quiet = self._describe(), 0.0
        while not self._over.wait(LOOK_SECONDS):
            content, quiet = self._describe(), quiet + LOOK_SECONDS
            if content != before or quiet >= BEAT_SECONDS:
                self._write()
                before, quiet = content, 0.0

    def _write(self, ended: datetime | None = None) -> None:
        state = LiveSweep(**self._fixed, written=datetime.now(UTC), ended=ended, **self._describe())
        with suppress(OutputsError):  # whoever writes a record says so
            write_atomically(self._folder / NAME, state.model_dump_json(indent=1).encode(), lasting=False)
