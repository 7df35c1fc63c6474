"""Tar streams in and out of sandboxes. A sandbox's own tars are counted and stored, never extracted on this machine."""

from __future__ import annotations

import io
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple, Self

from runner.errors import EngineError, WorkspaceTooLarge
from runner.sandbox.inside import AGENT_DIR
from runner.sandbox.limits import MEGABYTE, Caps


class Owner(NamedTuple):
    """Numeric owner of a file."""

    uid: int
    gid: int


ROOT = Owner(0, 0)


class Packer:
    """One tar stream of everything that goes into a sandbox, unpacked at `/` by a single call."""

    def __init__(self) -> None:
        self._buffer = tempfile.SpooledTemporaryFile(max_size=MEGABYTE)  # noqa: SIM115 - closed by `__exit__`
        self._tar = tarfile.open(fileobj=self._buffer, mode="w")  # noqa: SIM115 - closed by `stream`
        self.empty = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._tar.close()
        self._buffer.close()

    def directory(self, path: str, mode: int, owner: Owner = ROOT) -> None:
        """Add a directory. An existing one keeps its content and gets mode and owner; anything else is replaced."""
        self._add(_entry(path, tarfile.DIRTYPE, mode, owner))

    def file(self, path: str, text: str, user: str | None) -> None:
        """Add a text file that `user` can read and change, with its parent directories below `AGENT_DIR`."""
        owner = numeric(user)
        # Only the image knows the uid of a user given by name. Nobody else lives in the sandbox, so all may write.
        open_bits = 0 if owner else 0o022
        for parent in reversed(PurePosixPath(path).parents):
            if parent.is_relative_to(AGENT_DIR) and parent != PurePosixPath(AGENT_DIR):
                self.directory(str(parent), 0o755 | open_bits, owner or ROOT)
        content = text.encode()
        entry = _entry(path, tarfile.REGTYPE, 0o644 | open_bits, owner or ROOT)
        entry.size = len(content)
        self._add(entry, io.BytesIO(content))

    def folder(self, target: str, source: Path) -> None:
        """Add the content of a host folder, owned by root and readable by all. An empty folder adds nothing."""
        for path in sorted(source.rglob("*")):
            name = f"{target.strip('/')}/{path.relative_to(source).as_posix()}".lstrip("/")
            self._tar.add(path, name, recursive=False, filter=_public)
            self.empty = False

    def stream(self) -> IO[bytes]:
        """Return the finished tar, positioned at its beginning."""
        self._tar.close()
        self._buffer.seek(0)
        return self._buffer

    def _add(self, entry: tarfile.TarInfo, content: IO[bytes] | None = None) -> None:
        self._tar.addfile(entry, content)
        self.empty = False


def numeric(user: str | None) -> Owner | None:
    """Return the owner that a user such as `1000`, `1000:1000` or `root` means; None for any other name."""
    uid, _, gid = (user or "root").partition(":")
    known = {"root": "0", "": "0"}
    uid, gid = known.get(uid, uid), known.get(gid, gid)
    return Owner(int(uid), int(gid)) if uid.isdecimal() and gid.isdecimal() else None


def read_file(chunks: Iterable[bytes]) -> bytes | None:
    """Return the content of a tar's first member; None if that is not a regular file."""
    with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as tar:
        file = tar.extractfile(tar.getmembers()[0])
        return file.read() if file else None


def save(chunks: Iterable[bytes], target: Path, caps: Caps) -> int:
    """Write a tar stream to `target` and return the number of regular files in it.

    Raises `WorkspaceTooLarge` as soon as it exceeds `caps`. No file is left behind after an error.
    """
    with ExitStack() as failed:
        # Also after Ctrl-C: half an archive must not be taken for a whole one.
        failed.callback(target.unlink, missing_ok=True)
        _write(chunks, target, caps.workspace_mb)
        files = _count(target, caps.workspace_files)
        failed.pop_all()
    return files


def _write(chunks: Iterable[bytes], target: Path, megabytes: int) -> None:
    left = megabytes * MEGABYTE
    with target.open("wb") as file:
        for chunk in chunks:
            left -= len(chunk)
            if left < 0:
                raise WorkspaceTooLarge(f"{target.stem}: more than sandbox.workspace_mb={megabytes} MiB.")
            file.write(chunk)


def _count(tar: Path, most: int) -> int:
    counts: Counter[bool] = Counter()  # True: regular files; False: everything else
    try:
        with tarfile.open(tar) as archive:
            for member in archive:
                counts[member.isreg()] += 1
                if counts[member.isreg()] > most:
                    what = "files" if member.isreg() else "folders and links"
                    raise WorkspaceTooLarge(f"{tar.stem}: more than sandbox.workspace_files={most} {what}.")
    except tarfile.TarError as error:
        raise EngineError(f"{tar.stem}: the engine's archive broke off ({error}).") from error
    return counts[True]


def _entry(path: str, kind: bytes, mode: int, owner: Owner) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(path.lstrip("/"))
    entry.type, entry.mode, entry.mtime = kind, mode, time.time()
    entry.uid, entry.gid = owner
    return entry


def _public(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Make an entry root-owned and readable by all; return None for sockets, devices and pipes."""
    if not (entry.isreg() or entry.isdir() or entry.issym() or entry.islnk()):
        return None
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
    return entry
