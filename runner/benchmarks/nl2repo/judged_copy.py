"""Write the copy of a workspace that is judged: without the named files, and with upstream's over it, as one tar.

Nothing is extracted on this machine. In the copy, upstream's files belong to root and the candidate's to the suite's
user. Folders that both have are sticky, and those of the tests are root's, so that code under test cannot change, move
or add a test.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from runner.benchmarks.nl2repo.suite import covered
from runner.errors import WorkspaceTooLarge

ROOT_FOLDER, SHARED_FOLDER = 0o755, 0o1777
MOST_BYTES = 1 << 30
"""Largest total size of the candidate's files, in bytes. In a tar, hard links to a large file cost nothing, but here
each becomes a file."""
MODIFIED = 946684800
"""Time of every file, in seconds since 1970: the year 2000. Builders of wheels refuse times before 1980, which ZIP
cannot hold."""


def write_copy(
    workspace: Path | None,
    hidden: Path,
    into: Path,
    deleted: tuple[str, ...],
    foreign: Callable[[str], bool],
    user: int,
) -> frozenset[str]:
    """Write the copy's tar, with names below `workspace/`; return the relative paths of upstream's files.

    `workspace` is a tar from a sandbox, `hidden` a folder or such a tar. `foreign` returns whether a relative path is
    one that candidates may not ship. `user` is the numeric owner of the candidate's files. Raises `WorkspaceTooLarge`.
    """
    left = MOST_BYTES
    upstream = dict(_upstream(hidden))
    parents = {str(parent) for path in upstream for parent in PurePosixPath(path).parents} - {"."}
    with tarfile.open(into, "w") as copy:
        _folder(copy, "", SHARED_FOLDER)
        if workspace:
            with tarfile.open(workspace) as archive:
                for path, member, content in _members(archive):
                    replaced = path in upstream or (path in parents and not member.isdir())
                    if not (replaced or covered(path, deleted) or foreign(path)):
                        left -= len(content)
                        if left < 0:
                            raise WorkspaceTooLarge(
                                f"The workspace's files hold more than {MOST_BYTES >> 20} MiB."
                            )
                        _candidate(copy, path, member, content, user, shared=path in parents)
        for path in sorted(parents):
            _folder(copy, path, ROOT_FOLDER if covered(path, deleted) else SHARED_FOLDER)
        for path, content in upstream.items():
            _file(copy, path, content, 0, 0o644)
    return frozenset(upstream)


def _upstream(hidden: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the relative path and the content of each regular file."""
    if hidden.is_dir():
        for file in sorted(hidden.rglob("*")):
            if file.is_file():
                yield file.relative_to(hidden).as_posix(), file.read_bytes()
        return
    with tarfile.open(hidden) as archive:
        for path, member, content in _members(archive):
            if member.isreg() or member.islnk():
                yield path, content


def _members(archive: tarfile.TarFile) -> Iterator[tuple[str, tarfile.TarInfo, bytes]]:
    """Yield the relative path, entry and content of each file, link and folder below the archive's one folder."""
    for member in archive:
        path = member.name.partition("/")[2].rstrip("/")
        if not path or ".." in PurePosixPath(path).parts:
            continue
        if member.isdir() or member.issym():
            yield path, member, b""
        elif member.isreg() or member.islnk():
            yield path, member, _content(archive, member)


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    """Return the content of a file or of a hard link's target; empty if that is a broken symbolic link."""
    try:
        file = archive.extractfile(member)
    except (KeyError, RecursionError):
        return b""
    return file.read() if file else b""


def _candidate(
    copy: tarfile.TarFile, path: str, member: tarfile.TarInfo, content: bytes, user: int, *, shared: bool
) -> None:
    if member.isdir():
        _folder(copy, path, SHARED_FOLDER if shared else 0o755, 0 if shared else user)
    elif member.issym():
        entry = _entry(path, user)
        entry.type, entry.linkname = tarfile.SYMTYPE, member.linkname
        copy.addfile(entry)
    else:
        _file(copy, path, content, user, 0o755 if member.mode & 0o100 else 0o644)


def _folder(copy: tarfile.TarFile, path: str, mode: int, owner: int = 0) -> None:
    entry = _entry(path, owner)
    entry.type, entry.mode = tarfile.DIRTYPE, mode
    copy.addfile(entry)


def _file(copy: tarfile.TarFile, path: str, content: bytes, owner: int, mode: int) -> None:
    entry = _entry(path, owner)
    entry.size, entry.mode = len(content), mode
    copy.addfile(entry, io.BytesIO(content))


def _entry(path: str, owner: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(f"workspace/{path}".rstrip("/"))
    entry.uid = entry.gid = owner
    entry.mtime = MODIFIED
    return entry
