"""Wait for something that a test has started."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from runner.files import write_atomically
from runner.locks import exclusive

PATIENCE_SECONDS = 60.0
"""Far more than anything takes, even on a slow and busy machine."""
LONGEST_PAUSE = 0.3
"""Longest time between two looks, unless a longer one is asked for, in seconds."""


def until(true: Callable[[], object], patience: float = PATIENCE_SECONDS, pause: float = 0.02) -> None:
    """Wait until a condition is true. Looking takes a fifth of the time at most, for others wait on the same cores."""
    end = time.monotonic() + patience
    while True:
        began = time.monotonic()
        if true():
            return
        looked = time.monotonic()
        assert looked < end, "it never came true"
        time.sleep(max(pause, min(4 * (looked - began), LONGEST_PAUSE)))


def once(file: Path, make: Callable[[], str]) -> str:
    """Return the content of a file. The first worker that needs it makes it, and the others wait."""
    with exclusive(file.with_suffix(".lock")):
        if not file.is_file():
            write_atomically(file, make().encode())
        return file.read_text()
