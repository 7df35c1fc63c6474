"""List the files of a project on the host. The project is untrusted: it may be huge and full of traps."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from runner.records import Record

MOST_ENTRIES = 20_000
"""Largest number of files and folders that are visited. Those near the top come first."""
NOT_OURS = frozenset({".git", ".hg", ".svn", ".tox", ".venv", "__pycache__", "node_modules", "site-packages"})
"""Folders whose content was written by programs, and not by the project's authors."""


class Source(Record):
    """A regular file of a project."""

    path: str
    """Path relative to the project, with `/`."""
    size: int
    """Size in bytes."""


def sources(project: Path) -> Iterator[Source]:
    """Yield regular files from the top down, ordered by name alone. Links are not followed."""
    folders, left = deque([""]), MOST_ENTRIES
    while folders and left:
        folder = folders.popleft()
        for entry in _entries(project / folder)[:left]:
            left -= 1
            path = f"{folder}{entry.name}"
            if entry.is_file(follow_symlinks=False):
                yield Source(path=path, size=entry.stat(follow_symlinks=False).st_size)
            elif entry.is_dir(follow_symlinks=False) and entry.name not in NOT_OURS:
                folders.append(f"{path}/")


def head(project: Path, source: Source, most: int) -> str:
    """Return the first `most` bytes of a file as text, with invalid bytes replaced; empty if it cannot be read."""
    try:
        with (project / source.path).open("rb") as file:
            return file.read(most).decode(errors="replace")
    except OSError:
        return ""


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            named = [entry for entry in entries if entry.name.isprintable()]  # names must be text
    except OSError:
        return []
    return sorted(named, key=lambda entry: entry.name)
