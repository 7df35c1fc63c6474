"""Waiting for what a test has set going."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from runner.files import write_atomically
from runner.locks import exclusive

PATIENCE_SECONDS = 60.0
"""Far more than anything takes, on a slow and busy machine too."""


def until(true: Callable[[], object], patience: float = PATIENCE_SECONDS) -> None:
    """Wait for it to come true."""
    end = time.monotonic() + patience
    while not true():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.02)


def once(file: Path, make: Callable[[], str]) -> str:
    """What a file holds, which whoever needs it first makes; the others wait."""
    with exclusive(file.with_suffix(".lock")):
        if not file.is_file():
            write_atomically(file, make().encode())
        return file.read_text()
