"""The scratch folder of a runner at work, which nobody removes when it is killed but the next one.

Sockets lie in it, and all temporary files: what several runners share must name its place. It is locked for as long as
its process lives. The lock is the kernel's, so neither a pid that came back nor a clock that went back can be mistaken
for an owner.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from runner.locks import held

_PREFIX = "assay-run-"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder closed to other users, in which all temporary files of the process are meanwhile.

    Its name is short, since paths of sockets are limited to 108 bytes. Those of runners that died are removed first.
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
