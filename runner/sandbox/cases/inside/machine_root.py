"""The installed root, prepared once: the same user, names and empty folders in every image."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from runner.sandbox.cases.inside import syscalls
from runner.sandbox.cases.inside.user import GID, HOME, NAME, UID

OURS = "/opt/assay"
STAGE = f"{OURS}/stage"
"""A mount of the engine's, so not a part of the root that cases see."""
SHELL = "/bin/sh"
_BOUND = ("/etc/hosts", "/etc/hostname", "/etc/resolv.conf")
"""Files that the engine mounts. In the root itself they are empty."""
_ACCOUNTS = {
    "/etc/passwd": ("root:x:0:0:root:/root:/bin/sh", f"{NAME}:x:{UID}:{GID}::{HOME}:{SHELL}"),
    "/etc/group": ("root:x:0:", f"{NAME}:x:{GID}:"),
}
"""Lines to add, unless another line has the same number."""
_OWNERS_ATTRIBUTES = ("user.", "system.posix_acl")
"""Prefixes of attributes that a folder's owner can set."""
_NUMBER = 2
"""Field of such a line that holds the uid or gid."""


@dataclass(frozen=True)
class Folder:
    """A folder to which a case may write, empty but for the case's own files."""

    path: str
    owner: int
    mode: int

    def clear(self) -> None:
        """Make the folder as it is before every case."""
        if os.path.islink(self.path):
            os.unlink(self.path)
        os.makedirs(self.path, exist_ok=True)
        os.chown(self.path, 0, 0)
        os.chmod(self.path, self.mode)  # only the owner may do this
        os.chown(self.path, self.owner, self.owner)
        for attribute in os.listxattr(self.path):
            if attribute.startswith(_OWNERS_ATTRIBUTES):
                os.removexattr(self.path, attribute)
        with os.scandir(self.path) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path)
                else:
                    os.unlink(entry.path)


def folders(files_root: str) -> tuple[Folder, ...]:
    """Return all such folders. Beside them a case can write only to `/dev/shm`."""
    own = (Folder(path, UID, 0o755) for path in (files_root, HOME))
    return (*own, Folder("/tmp", 0, 0o1777), Folder("/var/tmp", 0, 0o1777))  # noqa: S108 - a case's own


def prepare(files_root: str, workdir: str) -> None:
    """Prepare the root, as far as both kinds of isolation need the same.

    Raises `RuntimeError` for an image without a shell.
    """
    if not os.access(SHELL, os.X_OK):
        raise RuntimeError(f"the image has no {SHELL}")
    for folder in folders(files_root):
        folder.clear()
    os.makedirs(workdir, exist_ok=True)
    for path, lines in _ACCOUNTS.items():
        _complete(Path(path), lines)
    os.chmod(OURS, 0o700)


def keep_names() -> None:
    """Write the files that the engine mounts into the root itself. Needs a mount namespace of this process's own."""
    for path in map(Path, _BOUND):
        content = path.read_bytes()
        with suppress(OSError):  # it was not a mount
            syscalls.unmount(str(path))
        _make_plain(path)
        path.write_bytes(content)


def close() -> None:
    """Remove the case's user's rights to write outside its folders, since nothing there is restored."""
    for path in _within("/", os.lstat("/").st_dev):
        found = os.lstat(path)
        shift = 6 if found.st_uid == UID else 3 if found.st_gid == GID else 0
        if stat.S_ISLNK(found.st_mode) or not (shift or found.st_mode & stat.S_IWOTH):
            continue
        if shift:
            os.chown(path, 0, 0)
        # What that user could read stays readable.
        os.chmod(path, found.st_mode & 0o750 | found.st_mode >> shift & 0o005)


def _within(folder: str, device: int) -> Iterator[str]:
    """Yield everything on the same file system."""
    left = [folder]
    while left:
        with os.scandir(left.pop()) as entries:
            for entry in entries:
                if entry.stat(follow_symlinks=False).st_dev != device:
                    continue
                yield entry.path
                if entry.is_dir(follow_symlinks=False):
                    left.append(entry.path)


def _complete(file: Path, lines: tuple[str, ...]) -> None:
    """Add those lines whose number no other line has."""
    _make_plain(file)
    there = file.read_text(errors="surrogateescape").splitlines()
    numbers = {line.split(":")[_NUMBER] for line in there if line.count(":") >= _NUMBER}
    there += [line for line in lines if line.split(":")[_NUMBER] not in numbers]
    file.write_text("".join(f"{line}\n" for line in there), errors="surrogateescape")


def _make_plain(path: Path) -> None:
    """Make the path a regular file: a link in the image would lead elsewhere, and reading a pipe would block."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif path.is_symlink() or (path.exists() and not path.is_file()):
        path.unlink()
    path.parent.mkdir(exist_ok=True)
    path.touch()
