"""An index of records, with which a sweep of finished trials resumes without reading them all.

    outputs/.index/<kk>               a line for each record whose key begins with these two digits

A line holds the facts of one record that planning needs, and the size, times and inode that its file then had. The line
is valid only while the file still has them: a record that was removed, changed, replaced or copied from elsewhere is
read again. The index is a cache. It may be deleted at any time, and lines that make no sense are passed over.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from runner import records
from runner.files import code_digest
from runner.records import TrialRecord

FOLDER = ".index"
"""Folder in `outputs`. No sweep can have its name."""


class Ended(NamedTuple):
    """The facts of a trial's record that planning and resuming need."""

    finished: bool
    """True if the trial need not run again (`Status.finished`)."""
    judged: bool
    wall_seconds: float
    finished_at: str
    """Time at which the trial ended, in ISO format."""

    @classmethod
    def of(cls, record: TrialRecord) -> Ended:
        """Return these facts of a record."""
        return cls(record.status.finished, record.judged, record.wall_seconds, record.finished_at.isoformat())


class FileState(NamedTuple):
    """Properties that distinguish two states of a file without reading it."""

    size: int
    modified: int
    """Time of the last change to the content, in nanoseconds."""
    changed: int
    """Time of the last change to the file or its metadata, in nanoseconds. No program can set it back."""
    inode: int

    @classmethod
    def of(cls, path: str) -> FileState:
        """Return the state of a file. Raises `OSError`."""
        found = os.stat(path)  # noqa: PTH116 - a `Path` for each of 100,000 records takes a second
        return cls(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


Line = list[Any]
"""Version, key, and the fields of `FileState` and `Ended`."""
_STATE = 2
_ENDED = _STATE + len(FileState._fields)
_FIELDS = _ENDED + len(Ended._fields)


class RecordIndex:
    """Index of the records in `outputs`. Its methods may be called by any thread."""

    def __init__(self, outputs: Path) -> None:
        self._folder = outputs / FOLDER
        self._lock = Lock()
        self._parts: dict[str, dict[str, Line]] = {}
        self._unwritten: dict[str, list[str]] = {}

    def find(self, key: str, state: FileState) -> Ended | None:
        """Return the facts of a record; None if its file is unknown or no longer in the state in which it was read."""
        with self._lock:
            line = self._part(key[:2]).get(key)
        return Ended(*line[_ENDED:]) if line and line[_STATE:_ENDED] == [*state] else None

    def add(self, record: TrialRecord, state: FileState) -> Ended:
        """Add the facts of a record. `state` is that of its file just before it was read, or just after it was
        written.
        """
        ended = Ended.of(record)
        line: Line = [_version(), record.key, *state, *ended]
        with self._lock:
            self._part(record.key[:2])[record.key] = line
            self._unwritten.setdefault(record.key[:2], []).append(json.dumps(line))
        return ended

    def save(self) -> None:
        """Append new lines. If the disk is full or read-only, the only loss is the time to read those records again."""
        with self._lock:
            unwritten, self._unwritten = self._unwritten, {}
        if not unwritten:  # also of a dry run, which leaves no folder behind
            return
        with suppress(OSError):
            for part, lines in unwritten.items():
                # Each line begins with its line break, so that one that was cut off by a crash spoils no other.
                self._append(part, "".join(f"\n{line}" for line in lines).encode())

    def _append(self, part: str, content: bytes) -> None:
        """Append to a part of the index. Raises `OSError`."""
        try:
            file = (self._folder / part).open("ab", buffering=0)
        except FileNotFoundError:
            self._folder.mkdir(parents=True, exist_ok=True)
            file = (self._folder / part).open("ab", buffering=0)
        with file:
            file.write(content)

    def _part(self, name: str) -> dict[str, Line]:
        if name not in self._parts:
            self._parts[name] = _read(self._folder / name)
        return self._parts[name]


def _read(path: Path) -> dict[str, Line]:
    """Return the lines of a part of the index that this version of the records wrote; of two, the later one counts."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError:
        return {}
    version = _version()
    return {
        line[1]: line
        for line in _parsed([line for line in lines if line])
        if isinstance(line, list) and len(line) == _FIELDS and line[0] == version and isinstance(line[1], str)
    }


def _parsed(lines: list[bytes]) -> Iterable[Any]:
    try:
        return list(json.loads(b"[%b]" % b",".join(lines)))  # at once, which takes half the time
    except (ValueError, RecursionError):
        return _sound(lines)


def _sound(lines: list[bytes]) -> Iterator[Any]:
    """Yield the lines that are valid JSON. A line that a crash cut off is not."""
    for line in lines:
        with suppress(ValueError, RecursionError):
            yield json.loads(line)


@cache
def _version() -> str:
    """Return the digest of the code that reads records, because other code may read them differently."""
    return code_digest(Path(records.__file__).parent.glob("*.py"))[:12]
