"""Rules for moving files from the agent's machine into another one. Tars go in and come out; nothing is extracted here.

A deliverable has the same content in the other machine as in the agent's. A link stays a link only if it names a file
that travels too, or a folder that holds the same in both machines. Any other link is replaced by a copy of its target
in the agent's machine, or left out if there is none. Pipes, sockets and devices are left out, as is everything that
would land in a folder of the verifier's. Set-user bits and extended attributes are dropped.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from posixpath import dirname, normpath, relpath
from typing import NamedTuple

PUBLISHED = "/logs/artifacts"
"""Folder of the agent's machine that is always an artifact."""
RESERVED = ("/tests", "/solution", "/logs/verifier")
"""Folders of the verifier, in which nothing of the agent's may land."""
MOST_HOPS = 40
"""Largest number of links that are followed for one path, as on Linux."""
MOST_FETCHED = 100
"""Largest number of paths outside an artifact that its links may lead to."""
MOST_COPIES = 200
"""Largest number of links of an artifact that are replaced by copies."""
COPIED_ENTRIES = 20_000
"""Largest number of files and folders that are copied in place of an artifact's links."""
COPIED_BYTES = 200 << 20
"""Limit on the total size of those files, in bytes."""
NAME_BYTES = 255
"""Longest file name that file systems accept."""
PATH_BYTES = 3500
"""Longest path that travels. Linux accepts 4095 bytes."""
LATEST = (1 << 33) - 1
"""Latest modification time that a tar can hold, in seconds since the epoch."""
KERNELS = ("/proc", "/sys", "/dev")
"""Folders of the kernel, in which a link leads each process somewhere else."""

Fetch = Callable[[str], Path | None]
"""Function that takes an absolute path of the agent's machine and returns a tar of its content, or None if it has
none."""
Present = Callable[[], frozenset[str] | None]
"""Function that returns the paths that the target machine already has at the artifact's path; None if unknown."""


def carry(
    source: Path,
    at: str,
    into: Path,
    fetch: Fetch | None,
    present: Present = frozenset,
    only: AbstractSet[str] | None = None,
) -> tuple[str, ...]:
    """Write the part of the tar `source` that may travel to the tar `into`; return the absolute paths left out.

    `source` holds the path `at` of the agent's machine. `into` is to be unpacked at the root: elsewhere the engine
    refuses links that lead above the folder. Without `fetch`, the target is a machine of the same image, where links
    mean the same. Then all links travel except those into folders of the verifier or the kernel. With `only`, no other
    files and links travel.
    """
    at = normpath(f"/{at.strip('/')}")
    with ExitStack() as stack:
        target = stack.enter_context(tarfile.open(into, "w", format=tarfile.GNU_FORMAT))
        packing = _Packing(target, stack, fetch, present)
        packing.add(_Tree(stack.enter_context(tarfile.open(source)), at), only)
        return tuple(dict.fromkeys(packing.left_out))


def paths_of(source: Path, at: str) -> frozenset[str]:
    """Return the absolute paths of the entries of a tar that holds the path `at`."""
    with tarfile.open(source) as archive:
        return frozenset(_Tree(archive, normpath(f"/{at.strip('/')}")).entries)


def lies_in(path: str, folder: str) -> bool:
    """Return whether an absolute path is this folder or lies below it."""
    return folder in ("/", path) or path.startswith(f"{folder}/")


class _Entry(NamedTuple):
    """An entry of a tree."""

    member: tarfile.TarInfo
    """Member of the tar; for a hard link, the member that it links to."""
    first: str
    """Path of that member: the entry's own unless it is a hard link."""


class _Tree:
    """Entries of a tar from the engine by their absolute path in the agent's machine, folders before their content."""

    def __init__(self, archive: tarfile.TarFile, at: str) -> None:
        self.archive = archive
        self.at = at
        self.entries: dict[str, _Entry] = {}
        paths: dict[str, str] = {}
        for member in archive:
            name = member.name.strip("/")
            parts = name.split("/")[1:]
            if {".", "..", ""} & set(parts):
                continue
            path = "/".join((at.rstrip("/"), *parts)) or "/"
            entry = _Entry(member, path)
            if member.islnk():  # symbolic links and pipes may have hard links, too
                known = self.entries.get(paths.get(member.linkname.strip("/"), ""))
                if known is None or known.member.isdir():
                    continue
                entry = known
            self.entries[path], paths[name] = entry, path

    def real(self, path: str) -> str | None:
        """Resolve the links of a path, to an entry or to a path outside the tree; None if it leads nowhere."""
        left, done, hops = _parts(path), "/", 0
        while left:
            part = left.pop(0)
            if part == "..":
                done = dirname(done)
                continue
            here = f"{done.rstrip('/')}/{part}"
            member = self.entries[here].member if here in self.entries else None
            if member is None and lies_in(here, self.at):
                return None
            if member is not None and member.issym():
                hops += 1
                if hops > MOST_HOPS:
                    return None
                left = _parts(member.linkname) + left
                done = "/" if member.linkname.startswith("/") else done
                continue
            if member is not None and left and not member.isdir():
                return None
            done = here
        return done

    def below(self, folder: str) -> Iterator[tuple[str, tarfile.TarInfo]]:
        """Yield path and member of a path and everything below it. A link to a file of the tree counts as the file."""
        for path, entry in self.entries.items():
            if lies_in(path, folder):
                real = self.real(path) if entry.member.issym() else None
                is_file = real in self.entries and self.entries[real].member.isreg()
                yield path, self.entries[real].member if real and is_file else entry.member


class _Packing:
    """The tar that `carry` writes. Paths are the same in both machines."""

    def __init__(
        self, target: tarfile.TarFile, stack: ExitStack, fetch: Fetch | None, present: Present
    ) -> None:
        self.left_out: list[str] = []
        self._target = target
        self._stack = stack
        self._fetch = fetch
        self._present = present
        self._written: set[str] = set()
        self._fetched: dict[str, _Tree | None] = {}
        self._copies, self._entries, self._bytes = MOST_COPIES, COPIED_ENTRIES, COPIED_BYTES

    def add(self, tree: _Tree, only: AbstractSet[str] | None = None) -> None:
        """Write files and folders first, then links, which may only name what has been written."""
        entries = {
            path: entry
            for path, entry in tree.entries.items()
            if only is None or entry.member.isdir() or plain(path) in only
        }
        for path, (member, first) in entries.items():
            if member.issym():
                continue
            if first != path and first in self._written:
                self._put(path, member, tarfile.LNKTYPE, first.lstrip("/"))
            else:
                self._put_content(path, member, tree)
        for path, (member, _) in entries.items():
            write = self._link_or_copy if self._fetch else self._link_as_is
            if member.issym() and not write(tree, path, member):
                self.left_out.append(path)

    def _link_as_is(self, tree: _Tree, path: str, member: tarfile.TarInfo) -> bool:
        """Write a link for a machine of the same image; return whether it may travel."""
        real = tree.real(path)
        if real and (is_reserved(real) or any(lies_in(real, folder) for folder in KERNELS)):
            return False
        return self._put(path, member, tarfile.SYMTYPE, member.linkname)

    def _link_or_copy(self, tree: _Tree, path: str, member: tarfile.TarInfo) -> bool:
        """Write a link, or a copy of its target; return whether anything was written."""
        real = tree.real(path)
        if real is None:
            return False
        if not lies_in(real, tree.at):
            other = self._outside(real, tree.at)
            return other is not None and self._copy(other, other.at, path)
        if real in self._written and (tree.entries[real].member.isreg() or self._is_same_folder(real)):
            direct = normpath(f"{dirname(path)}/{member.linkname}") == real
            relative = direct and not member.linkname.startswith("/")
            text = member.linkname if relative else relpath(real, dirname(path))
            return self._put(path, member, tarfile.SYMTYPE, text)
        return not lies_in(path, real) and self._copy(tree, real, path)

    def _outside(self, path: str, at: str) -> _Tree | None:
        """Return the content of a path of the agent's machine outside the artifact. Links there are followed."""
        for _ in range(MOST_HOPS):
            tree = None if lies_in(at, path) or is_reserved(path) else self._fetched_tree(path)
            real = tree.real(path) if tree else None
            if real is None or real == path:
                return tree if real else None
            path = real
        return None

    def _fetched_tree(self, path: str) -> _Tree | None:
        """Return the tree at a path of the agent's machine, which is fetched at most once."""
        if path not in self._fetched:
            tar = self._fetch(path) if self._fetch and len(self._fetched) < MOST_FETCHED else None
            archive = self._stack.enter_context(tarfile.open(tar)) if tar else None  # noqa: SIM115 - closed by the stack
            self._fetched[path] = _Tree(archive, path) if archive else None
        return self._fetched[path]

    def _copy(self, tree: _Tree, source: str, out: str) -> bool:
        """Write a path of a tree, with everything below it, as `out`. Links that leave the tree are left out."""
        self._copies -= 1
        found = list(tree.below(source)) if self._copies >= 0 else []
        self._entries -= len(found)
        self._bytes -= sum(member.size for _, member in found if member.isreg())
        if self._entries < 0 or self._bytes < 0:
            return False
        for path, member in found:
            self._put_content(out + path[len(source) :], member, tree)
        return out in self._written

    def _is_same_folder(self, folder: str) -> bool:
        """Return whether it is certain that the target machine adds nothing to a folder that travels."""
        return self._fuller_folders is not None and folder not in self._fuller_folders

    @cached_property
    def _fuller_folders(self) -> set[str] | None:
        """Folders in which the target machine has files that do not travel; None if they are unknown."""
        present = self._present()
        if present is None:
            return None
        return {folder for path in present - self._written for folder in _folders_of(path)}

    def _put_content(self, path: str, member: tarfile.TarInfo, tree: _Tree) -> None:
        """Write a file or a folder; anything else is left out."""
        if member.isdir():
            is_written = self._put(path, member, tarfile.DIRTYPE)
        else:
            is_written = member.isreg() and self._put(path, member, tarfile.REGTYPE, tree=tree)
        if not is_written:
            self.left_out.append(path)

    def _put(
        self, path: str, member: tarfile.TarInfo, kind: bytes, linked: str = "", tree: _Tree | None = None
    ) -> bool:
        """Write a member if it may land there; return whether it was. Only rights, owner, time and content are kept."""
        if not _may_land(path, is_folder=kind == tarfile.DIRTYPE):
            return False
        copy = tarfile.TarInfo(path.lstrip("/") or ".")
        copy.type, copy.linkname = kind, linked
        copy.mode, copy.uid, copy.gid = member.mode & 0o777, member.uid, member.gid
        copy.mtime = min(max(int(member.mtime), 0), LATEST)
        copy.size = member.size if tree else 0
        self._target.addfile(copy, tree.archive.extractfile(member) if tree else None)
        self._written.add(path)
        return True


def _may_land(path: str, *, is_folder: bool) -> bool:
    """Return whether a path is short enough, lies in no folder of the verifier and replaces none."""
    if is_reserved(path) or (not is_folder and any(lies_in(folder, path) for folder in RESERVED)):
        return False
    raw = path.encode(errors="surrogateescape")
    return len(raw) <= PATH_BYTES and all(len(part) <= NAME_BYTES for part in raw.split(b"/"))


def plain(path: str) -> str:
    """Return a path as valid UTF-8 text, as the engine writes it in its lists."""
    return path.encode(errors="surrogateescape").decode(errors="replace")


def is_reserved(path: str) -> bool:
    """Return whether an absolute path lies in a folder of the verifier."""
    return any(lies_in(path, folder) for folder in RESERVED)


def _folders_of(path: str) -> Iterator[str]:
    """Yield the folders above a path."""
    while path != "/":
        path = dirname(path)
        yield path


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]
