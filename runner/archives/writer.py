"""Write checked members beneath a folder."""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
from contextlib import suppress
from pathlib import Path
from typing import IO, Self

from runner.archives.readers import Member, Place, Tar, Zip

CHUNK = 1 << 16


def write(members: dict[Place, Member], reader: Tar | Zip, into: Path, *, over: bool) -> None:
    """Write files in the archive's order, then links, so that nothing is ever written through a link."""
    with Writer(into, over=over) as writer:
        for place, member in members.items():
            if member.kind == "folder":
                writer.enter(place)
        for place, member in members.items():
            if member.kind == "file" and member.copied is None:
                with reader.open(member) as content:
                    writer.write_file(place, member, content)
        for place, member in members.items():
            if member.copied is not None:
                with writer.open(member.copied) as content:
                    writer.write_file(place, member, content)
        for place, member in members.items():
            if member.kind == "link":
                writer.make_link(place, member.target)


class Writer:
    """A writer beneath a folder. It addresses folders by their descriptors, so it never passes through a link."""

    def __init__(self, into: Path, *, over: bool) -> None:
        self._over = over
        self._root = os.open(into, os.O_RDONLY | os.O_DIRECTORY)
        self._at: Place = ()
        self._folder = os.dup(self._root)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        os.close(self._folder)
        os.close(self._root)

    def enter(self, place: Place) -> None:
        """Enter a folder, and make it if it is missing."""
        if place == self._at:
            return
        os.close(self._folder)
        self._at, self._folder = (), os.dup(self._root)
        for name in place:
            self._enter_name(name)

    def write_file(self, place: Place, member: Member, content: IO[bytes]) -> None:
        """Write a file. Raises `tarfile.ReadError` when its content is longer or shorter than declared."""
        self.enter(place[:-1])
        name = place[-1]
        self._clear(name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with open(os.open(name, flags, 0o600, dir_fd=self._folder), "wb") as file:  # noqa: PTH123 - a descriptor
            left = member.size
            while left and (chunk := content.read(min(CHUNK, left))):
                file.write(chunk)
                left -= len(chunk)
            if left or content.read(1):
                raise tarfile.ReadError(f"{'/'.join(place)!r} is not as long as it says")
            file.flush()
            usual = 0o755 if member.mode & 0o100 else 0o644
            os.fchmod(file.fileno(), member.mode if self._over else usual)
            if member.modified is not None:
                os.utime(file.fileno(), (member.modified, member.modified))

    def make_link(self, place: Place, target: str) -> None:
        """Make a symbolic link."""
        self.enter(place[:-1])
        self._clear(place[-1])
        os.symlink(target, place[-1], dir_fd=self._folder)

    def open(self, place: Place) -> IO[bytes]:
        """Open a file that has been written."""
        self.enter(place[:-1])
        flags = os.O_RDONLY | os.O_NOFOLLOW
        return open(os.open(place[-1], flags, dir_fd=self._folder), "rb")  # noqa: PTH123 - as above

    def _enter_name(self, name: str) -> None:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
        try:
            os.mkdir(name, 0o755, dir_fd=self._folder)
        except FileExistsError:
            if self._over and not self._is_folder(name):
                os.unlink(name, dir_fd=self._folder)
                os.mkdir(name, 0o755, dir_fd=self._folder)
        inner = os.open(name, flags, dir_fd=self._folder)
        os.close(self._folder)
        self._at, self._folder = (*self._at, name), inner

    def _clear(self, name: str) -> None:
        with suppress(FileNotFoundError):
            if self._over and self._is_folder(name):
                shutil.rmtree(name, dir_fd=self._folder)
            elif self._over:
                os.unlink(name, dir_fd=self._folder)

    def _is_folder(self, name: str) -> bool:
        return stat.S_ISDIR(os.lstat(name, dir_fd=self._folder).st_mode)
