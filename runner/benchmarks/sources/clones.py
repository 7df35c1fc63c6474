"""Pack the head of a git clone as a task's reference, with its digest and size."""

from __future__ import annotations

import tarfile
from pathlib import Path, PurePosixPath
from typing import Any

from runner.benchmarks.sources.checkouts import archive, head
from runner.benchmarks.sources.clients import file_digest

SUFFIXES = {"python": (".py",), "javascript": (".js", ".mjs", ".cjs", ".ts", ".jsx", ".tsx"), "go": (".go",)}
NOT_THE_TOOL = {"test", "tests", "__tests__", "node_modules", "vendor", "dist"}
"""Folders that are not counted."""
COMMENT = {"python": ("#",), "javascript": ("//", "/*", "*"), "go": ("//", "/*", "*")}
"""Language -> beginnings of a line that is only a comment."""


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
        **_size(into, language),
    }


def _size(packed: Path, language: str) -> dict[str, int]:
    """Return the numbers of `lines` and `files`, and the `depth` of the deepest file. Hidden files do not count.

    Lines are those of the language's files that are neither blank nor only a comment. Docstrings count.
    """
    lines = files = depth = 0
    with tarfile.open(packed) as members:
        for member in members:
            path = PurePosixPath(member.name)
            hidden = any(part.startswith(".") for part in path.parts)
            stream = members.extractfile(member) if member.isreg() else None
            if hidden or NOT_THE_TOOL & set(path.parts) or stream is None:
                continue
            files += 1
            depth = max(depth, len(path.parts) - 1)
            if path.suffix in SUFFIXES[language] and not path.name.endswith("_test.go"):
                stripped = (line.strip() for line in stream.read().decode(errors="replace").splitlines())
                lines += sum(bool(line) and not line.startswith(COMMENT[language]) for line in stripped)
    return {"lines": lines, "files": files, "depth": depth}
