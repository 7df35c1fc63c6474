"""Locks between threads and processes. The kernel releases them however their holder ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def exclusive(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold the lock of this folder, or of this file, which is created, against other threads and processes.

    Raises `BlockingIOError` for a lock that is taken, unless it may `wait`.
    """
    if not path.is_dir():
        _create(path)
    with held(path.resolve(), wait=wait):
        yield


def share(path: Path) -> None:
    """Share the lock of this file, which is created, until this process ends. Waits for an exclusive holder's end."""
    _create(path)
    fcntl.flock(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), fcntl.LOCK_SH)


@contextmanager
def held(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold the lock of a folder or file that exists and is not a link. Raises as `exclusive` does."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _create(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
