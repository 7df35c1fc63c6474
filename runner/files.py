"""Files and folders: written or replaced at once, digested, and refused when the disk is full."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from runner.errors import OutputsError

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
"""Error numbers of a full disk."""


def write_atomically(path: Path, content: bytes | Iterable[bytes], *, lasting: bool = True) -> None:
    """Write a file beside its place, flush it to disk and rename it, so that nobody reads half of it.

    A large content may come in pieces, which are never in memory together. A file that need not outlast a
    power cut is not flushed (`lasting`), which spares a busy disk.

    Raises `OutputsError` if the disk is full or the folder cannot be written.
    """
    with written_beside(path, content, lasting=lasting) as beside:
        beside.replace(path)


@contextmanager
def written_beside(path: Path, content: bytes | Iterable[bytes], *, lasting: bool = True) -> Iterator[Path]:
    """Write a file beside its place and flush it to disk (`lasting`), for the block to rename.

    If the block fails, the file is removed, and an `OSError` becomes an `OutputsError`.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        try:
            _write(beside, content, lasting)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            _write(beside, content, lasting)
        yield beside
    except BaseException as error:
        with suppress(OSError):
            beside.unlink()  # a full disk needs the room
        if isinstance(error, OSError):
            raise no_room(path, error) from error
        raise


def _write(path: Path, content: bytes | Iterable[bytes], lasting: bool) -> None:  # noqa: FBT001
    with path.open("wb") as handle:
        handle.writelines([content] if isinstance(content, bytes) else content)
        if lasting:
            handle.flush()
            os.fsync(handle.fileno())


def replace_folder(made: Path, target: Path) -> None:
    """Move a folder to its place, and an earlier one from there to a folder beside `made`, which the caller removes.

    A command that is killed meanwhile leaves the earlier folder, the new one or none, but never a part of one. Two
    commands that replace one folder need a lock.
    """
    if target.exists():
        target.rename(made.with_name(f"{made.name}.replaced"))
    made.rename(target)


def no_room(path: Path, error: OSError) -> OutputsError:
    """Return the error for a disk that is full or cannot be written."""
    message = (
        f"Cannot write {path} ({error.strerror}). Make room or mend permissions; the same command resumes."
    )
    return OutputsError(message)


def code_digest(files: Iterable[Path]) -> str:
    """Return the SHA-256 of source files in the order of their paths, since changed code may judge differently."""
    return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(files))).hexdigest()
