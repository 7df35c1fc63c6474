"""The scratch folder of a running process. If the process is killed, the next one removes the folder.

It holds sockets and all temporary files, so anything that several processes share must name its place. The folder is
locked for as long as its process lives. The lock is the kernel's, so neither a reused pid nor a clock that was set back
can be mistaken for an owner.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "assay-run-"
"""Beginning of the names of locked folders."""


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a folder that is closed to other users, and place all temporary files of the process in it meanwhile.

    Folders of processes that died are removed first. The name is short: paths of sockets are limited to 108 bytes.
    """
    _remove_abandoned()
    before, folder = tempfile.tempdir, Path(tempfile.mkdtemp(prefix="assay-"))
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        # The folder gets the name that others look for only now: without a lock they would take it for abandoned.
        folder = folder.rename(folder.with_name(folder.name.replace("assay-", _PREFIX, 1)))
        tempfile.tempdir = str(folder)
        yield folder
    finally:
        tempfile.tempdir = before
        shutil.rmtree(folder, ignore_errors=True)
        os.close(handle)


def _remove_abandoned() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):  # another user's folder, or another process removes the same one
            handle = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(handle)
