"""Measures of the working directory that a rollout left, and the choice of trials that keep the one they were given."""

from __future__ import annotations

import tarfile
from pathlib import Path
from threading import Lock
from typing import NamedTuple

DEPENDENCY_FOLDERS = frozenset({"node_modules", "venv", "site-packages", "__pycache__", "vendor", "target"})
"""Names of folders whose files are not counted. Files in hidden folders are not counted either."""


class Workspace(NamedTuple):
    """Measures of a workspace."""

    files: int
    """Number of regular files outside of hidden and dependency folders."""
    lines: int
    """Number of lines of those files."""
    depth: int
    """Number of folders above the deepest of those files, not counting the workspace itself."""
    changed: float
    """Latest change to anything in the workspace, in seconds since the epoch. A removal changes its folder."""


def measure(tar: Path) -> Workspace:
    """Measure a workspace that was copied out as `tar`."""
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


class GivenWorkspaces:
    """Chooses, for each task, the trial whose folder keeps the workspace as agents are given it.

    It is the same in all trials of a task, and packing it takes time, so one trial of each task and image keeps it for
    all: the base of the diffs in the report. A process that resumes a sweep chooses anew.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._keepers: dict[tuple[str, str, str], str] = {}

    def is_kept_by(self, key: str, dataset: str, task: str, image: str) -> bool:
        """Return whether the trial of this key is to keep the workspace. The answer stays the same for a repetition."""
        with self._lock:
            return self._keepers.setdefault((dataset, task, image), key) == key
