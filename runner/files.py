"""Files: written atomically, digested, and refused when the disk is full."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from runner.errors import OutputsError

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
"""Error numbers of a full disk."""


def write_atomically(path: Path, content: bytes | Iterable[bytes], *, lasting: bool = True) -> None:
    """Write a file beside its place, flush it to disk and rename it, so that nobody reads half of it.

    A large content may come in pieces, which are never in memory together.
    A file that need not outlast a power cut is not flushed (`lasting`), which spares a busy disk.

    Raises `OutputsError` if the disk is full or the folder cannot be written.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("wb") as handle:
            handle.writelines([content] if isinstance(content, bytes) else content)
            if lasting:
                handle.flush()
                os.fsync(handle.fileno())
        beside.replace(path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink()  # a full disk needs the room
        raise no_room(path, error) from error


def no_room(path: Path, error: OSError) -> OutputsError:
    """Return the error for a disk that is full or cannot be written."""
    message = (
        f"Cannot write {path} ({error.strerror}). Make room or mend permissions; the same command resumes."
    )
    return OutputsError(message)


def code_digest(files: Iterable[Path]) -> str:
    """Return the SHA-256 of source files in the order of their paths, since changed code may judge differently."""
    return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(files))).hexdigest()
