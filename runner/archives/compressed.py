"""Compress what a trial leaves: a workspace may hold 200 MB, and a sweep has hundreds of trials."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

from runner.files import no_room

LEVEL = 1
"""Fastest level of gzip: 200 MB take 2.6 s and shrink to a quarter. Level 6 takes 8 s for a fifth."""
CHUNK = 1 << 20


def compress_archives(folder: Path) -> None:
    """Replace every tar of a trial, and of its second verdict, by a `.tar.gz`. Raises `OutputsError`.

    Archives of earlier tries are left as they are.
    """
    for tar in sorted([*folder.glob("*.tar"), *folder.glob("again/*.tar")]):
        target = tar.with_name(f"{tar.name}.gz")
        part = target.with_suffix(".part")
        try:
            _compress(tar, part)
            part.replace(target)
            tar.unlink()
        except OSError as error:
            part.unlink(missing_ok=True)
            raise no_room(target, error) from error


def _compress(source: Path, target: Path) -> None:
    """Compress without a time and a name, so that equal archives stay equal."""
    with (
        source.open("rb") as tar,
        target.open("wb") as file,
        gzip.GzipFile("", "wb", LEVEL, file, mtime=0) as packed,
    ):
        shutil.copyfileobj(tar, packed, CHUNK)
