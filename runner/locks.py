"""Locks between threads and processes, which the kernel releases however their holder ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock of this folder, or of this file, which is made, against other threads and processes."""
    if not path.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
