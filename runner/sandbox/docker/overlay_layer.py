"""List what a container wrote, from the folders of its layers, where this process may read them.

The engine compares every file of the image with the container's for this, which takes most of a short trial's processor
time. The overlay file system already holds the answer: its upper folder has only what was written. Whatever is unusual
here (another storage driver, an engine elsewhere, a process without the rights) is left to the engine, whose list means
the same.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from runner.records import Changes

OPAQUE = "trusted.overlay.opaque"
"""Extended attribute of a folder that replaces the folder of the same name in the layers below."""
HARMLESS = ("trusted.overlay.origin", "trusted.overlay.impure", "trusted.overlay.nlink", OPAQUE)
"""Attributes of the overlay file system that this module understands, or need not understand."""
CAPABILITY = "security.capability"
SYS_ADMIN = 1 << 21
"""Bit of the capability without which attributes named `trusted` seem not to be there."""


class UnknownLayoutError(Exception):
    """The layer holds something that this module does not understand."""


class Layers(NamedTuple):
    """The folders of one container's file system."""

    upper: str
    """Folder with what the container wrote."""
    lower: tuple[str, ...]
    """Folders of the image's layers, the topmost first."""

    def count_paths(self, most: int) -> tuple[int, None] | None:
        """Return the number of paths that a living container has written. Links are never followed.

        Return None if there are more than `most` or they cannot be counted, so that the engine has to be asked.
        """
        count = 0
        with suppress(OSError, RecursionError):
            for _, folders, files, _ in os.fwalk(self.upper, onerror=_unless_gone):
                count += len(folders) + len(files)
                if count > most:
                    return None
            return count, None
        return None

    def list_changes(self, most: int) -> tuple[int, Changes | None] | None:
        """Return the number of paths that a dead container changed, and the changes, or None if they exceed `most`.

        Return None if the engine has to be asked.
        """
        found = _Search(most)
        try:
            found.walk(self.upper, list(self.lower), "")
        except (OSError, RecursionError, UnicodeEncodeError, UnknownLayoutError):
            return None
        except OverflowError:
            return found.count, None
        return found.count, Changes(
            added=frozenset(found.added), changed=frozenset(found.changed), deleted=frozenset(found.deleted)
        )


def layers_of(inspected: Mapping[str, Any]) -> Layers | None:
    """Return the layers of a container, as the engine describes it; None if this process cannot read them."""
    driver = inspected.get("GraphDriver") or {}
    data = driver.get("Data") or {}
    if driver.get("Name") != "overlay2" or not _has_rights():
        return None
    layers = Layers(data["UpperDir"], tuple(data["LowerDir"].split(":")))
    return layers if all(map(os.path.isdir, (layers.upper, *layers.lower))) else None


class _Search:
    """A search for changes under way."""

    def __init__(self, most: int) -> None:
        self.added: set[str] = set()
        self.changed: set[str] = set()
        self.deleted: set[str] = set()
        self._most = most

    @property
    def count(self) -> int:
        return len(self.added) + len(self.changed) + len(self.deleted)

    def walk(self, folder: str, below: Sequence[str], path: str, *, replaced: bool = False) -> None:
        """Add the changes in a folder of the upper layer. `below` are the folders that it was made of before.

        `replaced` tells that a parent hides what the layers below have here. Raises `OverflowError` as soon as there
        are more than `most` changes.
        """
        replaced = replaced or _is_opaque(folder)
        names = set()
        with os.scandir(folder) as entries:
            for entry in entries:
                entry.name.encode()  # only the engine knows how it spells other names
                names.add(entry.name)
                self._look(entry, below, f"{path}/{entry.name}", replaced=replaced)
                if self.count > self._most:
                    raise OverflowError
        if replaced:
            self.deleted.update(f"{path}/{name}" for name in _names(below) - names)

    def _look(self, entry: os.DirEntry[str], below: Sequence[str], path: str, *, replaced: bool) -> None:
        new = entry.stat(follow_symlinks=False)
        was_at, old = _find(below, entry.name)
        if _is_whiteout(new):
            self.deleted.update([path] if old else ())
            return
        _check(entry.path)
        if old is None:
            self.added.add(path)
        elif _differs(was_at, old, entry.path, new):
            self.changed.add(path)
        if stat.S_ISDIR(new.st_mode):
            before = self.count
            self.walk(entry.path, _folders(below, entry.name) if old else (), path, replaced=replaced)
            if self.count > before and old:
                self.changed.add(path)


def _unless_gone(error: OSError) -> None:
    """Ignore that a folder was removed or replaced meanwhile. Raises any other error."""
    if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
        raise error


def _find(folders: Sequence[str], name: str) -> tuple[str, os.stat_result | None]:
    """Return where the layers below have this name and what is there; None if nothing is."""
    for folder in folders:
        path = f"{folder}/{name}"
        try:
            found = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        return path, None if _is_whiteout(found) else found
    return "", None


def _folders(folders: Sequence[str], name: str) -> list[str]:
    """Return the folders of which the layers below make the folder of this name."""
    found = []
    for folder in folders:
        path = f"{folder}/{name}"
        try:
            mode = os.lstat(path).st_mode
        except FileNotFoundError:
            continue
        if not stat.S_ISDIR(mode):  # also a deletion
            break
        _check(path)
        found.append(path)
        if _is_opaque(path):
            break
    return found


def _names(folders: Sequence[str]) -> set[str]:
    """Return the names in a folder that is made of these."""
    seen: dict[str, bool] = {}
    for folder in folders:
        with os.scandir(folder) as entries:
            for entry in entries:
                seen.setdefault(entry.name, _is_whiteout(entry.stat(follow_symlinks=False)))
    return {name for name, is_gone in seen.items() if not is_gone}


def _differs(was_at: str, old: os.stat_result, is_at: str, new: os.stat_result) -> bool:
    """Return whether the engine would call the two different: it compares no content, and no times of folders."""
    if (old.st_mode, old.st_uid, old.st_gid, old.st_rdev) != (
        new.st_mode,
        new.st_uid,
        new.st_gid,
        new.st_rdev,
    ):
        return True
    if stat.S_ISDIR(new.st_mode):
        return False
    if old.st_size != new.st_size or not _same_time(old.st_mtime_ns, new.st_mtime_ns):
        return True
    return stat.S_ISREG(new.st_mode) and _attribute(was_at, CAPABILITY) != _attribute(is_at, CAPABILITY)


def _same_time(one: int, other: int) -> bool:
    """Return whether two times in nanoseconds are the same, also if one of them was cut to seconds."""
    second = 10**9
    return one == other or (one // second == other // second and 0 in (one % second, other % second))


def _is_whiteout(found: os.stat_result) -> bool:
    """Return whether this stands for a deleted file."""
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == 0


def _is_opaque(folder: str) -> bool:
    return _attribute(folder, OPAQUE) == b"y"


def _attribute(path: str, name: str) -> bytes | None:
    if name not in os.listxattr(path, follow_symlinks=False):
        return None
    return os.getxattr(path, name, follow_symlinks=False)


def _check(path: str) -> None:
    """Raise `UnknownLayoutError` if part of this file or folder is kept elsewhere."""
    for name in os.listxattr(path, follow_symlinks=False):
        if name.startswith("trusted.overlay.") and name not in HARMLESS:
            raise UnknownLayoutError(name)


def _has_rights() -> bool:
    """Return whether this process may read all of another user's files and their attributes."""
    if os.geteuid() != 0:
        return False
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return False
    effective = next((line.split()[1] for line in lines if line.startswith("CapEff:")), "0")
    return bool(int(effective, 16) & SYS_ADMIN)
