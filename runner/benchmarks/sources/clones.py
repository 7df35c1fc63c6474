"""Pack the head of a git clone as a task's reference, with its digest and size."""

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


def _files(packed: Path) -> Iterator[File]:
    """Yield the regular files of a tar file. Each can be read until the next one is asked for."""
    with tarfile.open(packed) as members:
        for member in members:
            stream = members.extractfile(member) if member.isreg() else None
            if stream is not None:
                yield PurePosixPath(member.name), stream.read
