"""The copy of a workspace that is judged: the named files gone, upstream's laid over it, both as one tar.

Nothing is extracted on this machine. In the copy, what is upstream's belongs to root and what is the candidate's to the
suite's user; folders that both have are sticky, those of the tests are root's, so that code under test can neither
change, move nor add a test.
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
"""Of the candidate's files. In its tar thousands of hard links to one large file cost nothing; each is a file here."""


def write_copy(
    workspace: Path | None,
    hidden: Path,
    into: Path,
    deleted: tuple[str, ...],
    foreign: Callable[[str], bool],
    user: int,
) -> frozenset[str]:
    """Write the copy's tar, its names below `workspace/`; returns the relative paths of what is upstream's.

    `workspace` and `hidden` are a tar taken out of a sandbox and a folder, or a tar as well. `foreign` says of a
    relative path whether no candidate may ship it. `user` is the numeric owner of what is the candidate's. Raises
    `WorkspaceTooLarge`.
    """
    left = MOST_BYTES
    upstream = dict(_upstream(hidden))
    parents = {str(parent) for path in upstream for parent in PurePosixPath(path).parents} - {"."}
    with tarfile.open(into, "w") as copy:
        _folder(copy, "", SHARED_FOLDER)
        if workspace:
            with tarfile.open(workspace) as archive:
                for path, member, content in _members(archive):
                    taken = path in upstream or (path in parents and not member.isdir())
                    if not (taken or covered(path, deleted) or foreign(path)):
                        left -= len(content)
                        if left < 0:
                            raise WorkspaceTooLarge(
                                f"The workspace's files hold more than {MOST_BYTES >> 20} MiB."
                            )
                        _theirs(copy, path, member, content, user, shared=path in parents)
        for path in sorted(parents):
            _folder(copy, path, ROOT_FOLDER if covered(path, deleted) else SHARED_FOLDER)
        for path, content in upstream.items():
            _file(copy, path, content, 0, 0o644)
    return frozenset(upstream)


def _upstream(hidden: Path) -> Iterator[tuple[str, bytes]]:
    """Relative path and content of each regular file."""
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
    """Relative path, entry and content of what is a file, link or folder below the archive's one folder."""
    for member in archive:
        path = member.name.partition("/")[2].rstrip("/")
        if not path or ".." in PurePosixPath(path).parts:
            continue
        if member.isdir() or member.issym():
            yield path, member, b""
        elif member.isreg() or member.islnk():
            yield path, member, _content(archive, member)


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    """Of a file, or of what a hard link links; nothing where that is a symbolic link to nowhere or to itself."""
    try:
        file = archive.extractfile(member)
    except (KeyError, RecursionError):
        return b""
    return file.read() if file else b""


def _theirs(
    copy: tarfile.TarFile, path: str, member: tarfile.TarInfo, content: bytes, user: int, *, shared: bool
) -> None:
    if member.isdir():
        _folder(copy, path, SHARED_FOLDER if shared else 0o755, 0 if shared else user)
    elif member.issym():
        entry = tarfile.TarInfo(f"workspace/{path}")
        entry.type, entry.linkname = tarfile.SYMTYPE, member.linkname
        entry.uid = entry.gid = user
        copy.addfile(entry)
    else:
        _file(copy, path, content, user, 0o755 if member.mode & 0o100 else 0o644)


def _folder(copy: tarfile.TarFile, path: str, mode: int, owner: int = 0) -> None:
    entry = tarfile.TarInfo(f"workspace/{path}".rstrip("/"))
    entry.type, entry.mode = tarfile.DIRTYPE, mode
    entry.uid = entry.gid = owner
    copy.addfile(entry)


def _file(copy: tarfile.TarFile, path: str, content: bytes, owner: int, mode: int) -> None:
    entry = tarfile.TarInfo(f"workspace/{path}")
    entry.size, entry.mode = len(content), mode
    entry.uid = entry.gid = owner
    copy.addfile(entry, io.BytesIO(content))
