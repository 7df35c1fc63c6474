"""Pack the head of a git clone, or a folder, as a task's reference: the same bytes for the same content."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from runner.benchmarks.sources.checkouts import archive, head
from runner.benchmarks.sources.clients import file_digest
from runner.benchmarks.sources.sizes import File, size


def pack_head(clone: Path, language: str, into: Path) -> dict[str, Any]:
    """Pack the head of a clone as the tar file `into`: the same bytes for the same commit.

    Returns `version` (the commit), `digest`, `license`, `lines`, `files` and `depth` of a task's `[reference]`. Raises
    `TaskError`.
    """
    version = head(clone)
    archive(clone, version, into)
    return {
        "version": version,
        "digest": file_digest(into),
        "license": "NOASSERTION",  # the SPDX word for an unknown license
        **size(_files(into), language),
    }


def pack(folder: Path, into: Path) -> None:
    """Write a tar file of a folder: the same bytes for the same content."""
    with tarfile.open(into, "w") as archive:
        for path in sorted(folder.rglob("*")):
            member = archive.gettarinfo(path, str(path.relative_to(folder)))
            member.uid = member.gid = member.mtime = 0
            member.uname = member.gname = ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            if member.isreg():
                with path.open("rb") as content:
                    archive.addfile(member, content)
            elif member.isdir() or member.issym():
                archive.addfile(member)


def _files(packed: Path) -> Iterator[File]:
    """Yield the regular files of a tar file. Each file can be read until the next one is requested."""
    with tarfile.open(packed) as members:
        for member in members:
            stream = members.extractfile(member) if member.isreg() else None
            if stream is not None:
                yield PurePosixPath(member.name), stream.read
