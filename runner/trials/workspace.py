"""What a rollout left in its working directory, as far as it is measured; the files themselves stay in the tar."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import NamedTuple

DEPENDENCY_FOLDERS = frozenset({"node_modules", "venv", "site-packages", "__pycache__", "vendor", "target"})


class Workspace(NamedTuple):
    """A measured workspace."""

    files: int
    """Regular ones; hidden and dependency folders are left out."""
    lines: int
    """Of those files."""
    depth: int
    """Folders above the deepest of them; the workspace itself is none."""
    changed: float
    """Seconds since the epoch of the latest change to anything in it; a folder changes when something in it goes."""


def measure(tar: Path) -> Workspace:
    """The measures of a workspace taken out as `tar`."""
    files = lines = depth = 0
    changed = 0.0
    with tarfile.open(tar) as archive:
        for member in archive:
            changed = max(changed, member.mtime)
            parts = member.name.split("/")[1:]
            if member.isreg() and not any(
                part.startswith(".") or part in DEPENDENCY_FOLDERS for part in parts
            ):
                files += 1
                depth = max(depth, len(parts) - 1)
                lines += sum(chunk.count(b"\n") for chunk in archive.extractfile(member) or ())
    return Workspace(files, lines, depth, changed)
