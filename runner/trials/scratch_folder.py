"""The scratch folder of a running process. If the process is killed, the next one removes the folder.

It holds sockets and all temporary files, so anything that several processes share must name its place. The folder is
locked for as long as its process lives. The lock is the kernel's, so neither a reused pid nor a clock that was set back
can be mistaken for an owner.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from runner.locks import held

_PREFIX = "assay-run-"
"""Beginning of the names of locked folders."""


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a folder that is closed to other users, and place all temporary files of the process in it meanwhile.

    Folders of processes that died are removed first. The name is short: paths of sockets are limited to 108 bytes.
    """
    _remove_abandoned()
    before, folder = tempfile.tempdir, Path(tempfile.mkdtemp(prefix="assay-"))
    with held(folder):
        try:
            # Only now by the name that others look for: without its lock they would take it for abandoned.
            folder = folder.rename(folder.with_name(folder.name.replace("assay-", _PREFIX, 1)))
            tempfile.tempdir = str(folder)
            yield folder
        finally:
            tempfile.tempdir = before
            shutil.rmtree(folder, ignore_errors=True)


def _remove_abandoned() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        # The folder may be another user's, or another runner removes it at this moment.
        with suppress(OSError), held(folder, wait=False):
            shutil.rmtree(folder, ignore_errors=True)
