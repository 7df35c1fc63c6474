"""Readers of tar and zip files. Names and kinds are reported as the file has them, and nothing is trusted."""

from __future__ import annotations

import bz2
import gzip
import lzma
import math
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, cast

from runner.errors import ConfigError

UNREADABLE = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError),
    *(EOFError, OSError, RuntimeError, ValueError),  # truncated; encrypted; malformed numbers
)
"""Exceptions of reading a file that is broken or not an archive."""
ZIP_BEGINNINGS = (b"PK\x03\x04", b"PK\x05\x06")
"""First bytes of a zip file with members, and of one without."""
HEADER_BYTES = 1 << 20
"""Largest number of bytes read to find the next member of a tar file: its headers are held in memory."""
PATH_BYTES, NAME_BYTES, DEPTH = 2000, 255, 100
"""Limits on a member's path: its length in bytes, the length of a name in it in bytes, and the number of names."""
_LATEST = float(1 << 33)
"""Latest modification time of a file, in seconds since the epoch."""
_OPENERS: tuple[tuple[bytes, Callable[[Path], Any]], ...] = (
    (b"\x1f\x8b", gzip.open),
    (b"BZh", bz2.open),
    (b"\xfd7zXZ\x00", lzma.open),
    (b"\x5d\x00\x00", lzma.open),
)
"""First bytes of a compressed tar file, and the function that opens it."""
Place = tuple[str, ...]
"""Names of a path, from the archive's top down."""


class Member(NamedTuple):
    """One checked member."""

    kind: Literal["file", "folder", "link"]
    size: int = 0
    mode: int = 0o644
    """Permissions in the archive. Only the owner's right to execute is used, unless the archive is a `machine`'s."""
    modified: float | None = None
    """Modification time in seconds since the epoch, since build tools compare times. None: unknown."""
    target: str = ""
    """Target of a link."""
    copied: Place | None = None
    """Place of the file that this one, a hard link, copies."""
    source: Any = None
    """The archive library's own entry, which its reader opens."""


FOLDER = Member("folder")


class _Bounded:
    """A file of which only as many bytes may be read as `allow` has granted. Skipping bytes costs nothing."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._left = 0
        self.seek, self.tell, self.close = file.seek, file.tell, file.close

    def allow(self, size: int) -> None:
        """Allow `size` bytes to be read from here on."""
        self._left = size

    def read(self, size: int = -1) -> bytes:
        """Read up to `size` bytes. Raises `tarfile.ReadError` if more is read than `allow` has granted."""
        if size < 0 or size > self._left:
            raise tarfile.ReadError("a header is too long")
        content = self._file.read(size)
        self._left -= len(content)
        return content


class Tar:
    """A tar file, compressed or not."""

    def __init__(self, packed: Path) -> None:
        with packed.open("rb") as file:
            start = file.read(8)
        opener = next((opener for magic, opener in _OPENERS if start.startswith(magic)), None)
        self._file = _Bounded(opener(packed) if opener else packed.open("rb"))
        self._file.allow(HEADER_BYTES)
        try:
            self._tar = tarfile.open(fileobj=cast("IO[bytes]", self._file), mode="r:")  # noqa: SIM115 - closed by `close`
        except UNREADABLE as error:
            self._file.close()
            raise tarfile.ReadError(
                f"it is neither a tar nor a zip file, or it is broken ({error})"
            ) from error

    def close(self) -> None:
        """Close the file."""
        self._tar.close()
        self._file.close()

    def members(self) -> Iterator[tuple[str, Member]]:
        """Yield each member with its name; only its kind and size have been checked."""
        while True:
            self._file.allow(HEADER_BYTES)
            if (entry := self._tar.next()) is None:
                return
            # Drop tarfile's list of all entries: a `Member` has what is needed of one.
            self._tar.members = []  # type: ignore[attr-defined]
            if entry.size < 0:  # would be read forever (CVE-2025-8194)
                raise tarfile.ReadError(f"{entry.name!r} has a negative size")
            yield entry.name, self._member(entry)

    def _member(self, entry: tarfile.TarInfo) -> Member:
        if entry.isdir():
            return FOLDER
        if entry.issym():
            return Member("link", target=entry.linkname)
        if not entry.isreg() and not entry.islnk():
            raise refusal(entry.name, "is neither a file nor a folder nor a link")
        known = math.isfinite(entry.mtime) and 0 <= entry.mtime <= _LATEST
        return Member(
            "file",
            size=0 if entry.islnk() else entry.size,
            mode=entry.mode & 0o777,
            modified=float(entry.mtime) if known else None,
            copied=place_of(entry.linkname) if entry.islnk() else None,
            source=entry,
        )

    def open(self, member: Member) -> IO[bytes]:
        """Return the content of a file."""
        self._file.allow(member.size + HEADER_BYTES)
        content = self._tar.extractfile(member.source)
        if content is None:
            raise tarfile.ReadError(f"{member.source.name!r} has no content")
        return content


class Zip:
    """A zip file."""

    def __init__(self, packed: Path) -> None:
        self._zip = zipfile.ZipFile(packed)

    def close(self) -> None:
        """Close the file."""
        self._zip.close()

    def members(self) -> Iterator[tuple[str, Member]]:
        """Yield each member with its name, as `Tar.members` does."""
        for entry in self._zip.infolist():
            # `filename` is cut at a NUL and its separators are changed; this is the name in the file.
            yield entry.orig_filename, self._member(entry)

    def _member(self, entry: zipfile.ZipInfo) -> Member:
        mode = entry.external_attr >> 16
        kind = stat.S_IFMT(mode)
        if entry.filename.endswith("/") or kind == stat.S_IFDIR:
            return FOLDER
        if kind == stat.S_IFLNK:
            if entry.file_size > PATH_BYTES:
                raise refusal(entry.filename, "is a link that is too long")
            return Member("link", target=os.fsdecode(self._zip.read(entry)))
        if kind not in (0, stat.S_IFREG):
            raise refusal(entry.filename, "is neither a file nor a folder nor a link")
        return Member("file", size=entry.file_size, mode=mode & 0o777, source=entry)

    def open(self, member: Member) -> IO[bytes]:
        """Return the content of a file, as `Tar.open` does."""
        return self._zip.open(member.source)


@contextmanager
def open_archive(packed: Path) -> Iterator[Tar | Zip]:
    """Yield the reader of a file. Within the block every error of the readers becomes a `ConfigError`."""
    reader: Tar | Zip | None = None
    try:
        reader = Zip(packed) if _is_zip(packed) else Tar(packed)
        yield reader
    except UNREADABLE as error:
        reason = str(error) or type(error).__name__
        raise ConfigError(f"{packed.name} cannot be unpacked: {reason}.") from error
    finally:
        if reader is not None:
            with suppress(*UNREADABLE):
                reader.close()


def _is_zip(packed: Path) -> bool:
    """Return whether a file begins and ends like a zip file. A tar file that ends with a zip file only ends so."""
    with packed.open("rb") as file:
        return file.read(4) in ZIP_BEGINNINGS and zipfile.is_zipfile(file)


def place_of(name: str) -> Place:
    """Return the names of a member's path. Raises `tarfile.ReadError` if the path is refused."""
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if name.startswith("/"):
        raise refusal(name, "has an absolute path")
    if ".." in parts:
        raise refusal(name, "leads outside")
    longest = max((len(os.fsencode(part)) for part in parts), default=0)
    if longest > NAME_BYTES or len(parts) > DEPTH or len(os.fsencode(name)) > PATH_BYTES:
        raise refusal(name, "has a path that is too long")
    return parts


def refusal(name: str, why: str) -> tarfile.ReadError:
    """Return the error for a refused member."""
    return tarfile.ReadError(f"its member {name[:200]!r} {why}")
