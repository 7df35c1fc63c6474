"""Rules by which files of the agent's machine travel into another one: tar in, tar out, nothing is extracted here.

A deliverable is what it holds in the agent's machine, wherever it is opened. A link travels as a link only where it
names a file that travels too, or a folder that holds the same in both machines. Any other link is replaced by a copy of
what it leads to in the agent's machine, and left out where it leads nowhere. Pipes, sockets and devices are left out,
as is whatever would land in a folder of the verifier's own. Set-user bits and extended attributes are dropped.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import ExitStack
from pathlib import Path
from posixpath import dirname, normpath, relpath
from typing import NamedTuple

PUBLISHED = "/logs/artifacts"
"""Folder of the agent's machine that is always an artifact."""
RESERVED = ("/tests", "/solution", "/logs/verifier")
"""Folders of the verifier: nothing of the agent's lands there."""
MOST_HOPS = 40
"""Links followed for one path; Linux follows as many."""
MOST_FETCHED = 100
"""Paths outside an artifact that its links may lead to."""
MOST_COPIES = 200
"""Links of an artifact that are replaced by copies."""
COPIED_ENTRIES = 20_000
"""Files and folders that are copied in place of an artifact's links, at most."""
COPIED_BYTES = 200 << 20
"""Size of those files together, at most."""
NAME_BYTES = 255
"""Longest name of a file that file systems take."""
PATH_BYTES = 3500
"""Longest path that travels; Linux takes 4095 bytes."""
LATEST = (1 << 33) - 1
"""Latest time of change that a tar can hold, in seconds since the epoch."""

Fetch = Callable[[str], Path | None]
"""Takes an absolute path of the agent's machine; returns a tar of what is there, or None if it cannot be had."""
KERNELS = ("/proc", "/sys", "/dev")
"""Folders whose links mean another thing to each program."""
Present = Callable[[], frozenset[str] | None]
"""Returns the paths that the target machine has at the artifact's place; None if that is unknown."""


def carry(
    taken: Path,
    at: str,
    into: Path,
    fetch: Fetch | None,
    present: Present = frozenset,
    only: AbstractSet[str] | None = None,
) -> tuple[str, ...]:
    """Write to `into` what may travel of the tar `taken`, which is the path `at` of the agent's machine.

    `into` is to be unpacked at the root: elsewhere the engine refuses links that lead above the folder. Without `fetch`
    the target is a machine of the same image, where links mean the same: all travel but those into folders of the
    verifier's and the kernel's. `only` names the files and links that travel, of all that are there. Returns the
    absolute paths that were left out.
    """
    at = normpath(f"/{at.strip('/')}")
    with ExitStack() as stack:
        target = stack.enter_context(tarfile.open(into, "w", format=tarfile.GNU_FORMAT))
        packing = _Packing(target, stack, fetch, present)
        packing.add(_Tree(stack.enter_context(tarfile.open(taken)), at), only)
        return tuple(dict.fromkeys(packing.left_out))


def paths_of(taken: Path, at: str) -> frozenset[str]:
    """Absolute paths of what is in a tar of the path `at`."""
    with tarfile.open(taken) as archive:
        return frozenset(_Tree(archive, normpath(f"/{at.strip('/')}")).entries)


def lies_in(path: str, folder: str) -> bool:
    """Whether an absolute path is a folder, or lies below it."""
    return folder in ("/", path) or path.startswith(f"{folder}/")


class _Entry(NamedTuple):
    """What is at a path of a tree."""

    member: tarfile.TarInfo
    """Of a hard link, the member that it is another name of."""
    first: str
    """Path of that member: the path itself, unless it is a hard link."""


class _Tree:
    """A tar of the engine's: its entries by their absolute paths in the agent's machine, folders first."""

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
            if member.islnk():  # links and pipes have second names, too
                known = self.entries.get(paths.get(member.linkname.strip("/"), ""))
                if known is None or known.member.isdir():
                    continue
                entry = known
            self.entries[path], paths[name] = entry, path

    def real(self, path: str) -> str | None:
        """Where a path leads: out of the tree, or to something in it; None where it leads nowhere."""
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
        """Path and member of what is at and below a path, a link to a file of the tree being that file."""
        for path, entry in self.entries.items():
            if lies_in(path, folder):
                real = self.real(path) if entry.member.issym() else None
                is_file = real in self.entries and self.entries[real].member.isreg()
                yield path, self.entries[real].member if real and is_file else entry.member


class _Packing:
    """The work of `carry`. Paths are those of both machines, which are the same."""

    def __init__(
        self, target: tarfile.TarFile, stack: ExitStack, fetch: Fetch | None, present: Present
    ) -> None:
        self.left_out: list[str] = []
        self._target = target
        self._stack = stack
        self._fetch = fetch
        self._present = present
        self._holding: set[str] | None = None
        self._asked = False
        self._written: set[str] = set()
        self._fetched: dict[str, _Tree | None] = {}
        self._copies, self._entries, self._bytes = MOST_COPIES, COPIED_ENTRIES, COPIED_BYTES

    def add(self, tree: _Tree, only: AbstractSet[str] | None = None) -> None:
        """Write everything but links, and then the links, when it is known what they may name."""
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
            write = self._link if self._fetch else self._same_link
            if member.issym() and not write(tree, path, member):
                self.left_out.append(path)

    def _same_link(self, tree: _Tree, path: str, member: tarfile.TarInfo) -> bool:
        """Write a link as it is, for a machine of the same image."""
        real = tree.real(path)
        if real and (is_reserved(real) or any(lies_in(real, folder) for folder in KERNELS)):
            return False
        return self._put(path, member, tarfile.SYMTYPE, member.linkname)

    def _link(self, tree: _Tree, path: str, member: tarfile.TarInfo) -> bool:
        """Write a link, or a copy of what it leads to; returns whether anything was written."""
        real = tree.real(path)
        if real is None:
            return False
        if not lies_in(real, tree.at):
            other = self._outside(real, tree.at)
            return other is not None and self._copy(other, other.at, path)
        if real in self._written and (tree.entries[real].member.isreg() or not self._holds_more(real)):
            direct = not member.linkname.startswith("/") and _beside(path, member.linkname) == real
            text = member.linkname if direct else relpath(real, dirname(path))
            return self._put(path, member, tarfile.SYMTYPE, text)
        return not lies_in(path, real) and self._copy(tree, real, path)

    def _outside(self, path: str, at: str) -> _Tree | None:
        """What lies outside the artifact in the agent's machine; a link there is followed."""
        for _ in range(MOST_HOPS):
            tree = None if lies_in(at, path) or is_reserved(path) else self._taken(path)
            real = tree.real(path) if tree else None
            if real is None or real == path:
                return tree if real else None
            path = real
        return None

    def _taken(self, path: str) -> _Tree | None:
        """A path of the agent's machine, asked for once."""
        if path not in self._fetched:
            tar = self._fetch(path) if self._fetch and len(self._fetched) < MOST_FETCHED else None
            archive = self._stack.enter_context(tarfile.open(tar)) if tar else None  # noqa: SIM115 - so it is
            self._fetched[path] = _Tree(archive, path) if archive else None
        return self._fetched[path]

    def _copy(self, tree: _Tree, source: str, out: str) -> bool:
        """Write what is at and below a path of a tree as `out`. Links in it that leave the tree are left out."""
        self._copies -= 1
        found = list(tree.below(source)) if self._copies >= 0 else []
        self._entries -= len(found)
        self._bytes -= sum(member.size for _, member in found if member.isreg())
        if self._entries < 0 or self._bytes < 0:
            return False
        for path, member in found:
            self._put_content(out + path[len(source) :], member, tree)
        return out in self._written

    def _holds_more(self, folder: str) -> bool:
        """Whether the target machine has something there that does not travel, or may have."""
        if not self._asked:
            self._asked, there = True, self._present()
            if there is not None:
                self._holding = {folder for path in there - self._written for folder in _folders_of(path)}
        return self._holding is None or folder in self._holding

    def _put_content(self, path: str, member: tarfile.TarInfo, tree: _Tree) -> None:
        """Write a file or a folder; anything else is left out."""
        if member.isdir():
            done = self._put(path, member, tarfile.DIRTYPE)
        else:
            done = member.isreg() and self._put(path, member, tarfile.REGTYPE, tree=tree)
        if not done:
            self.left_out.append(path)

    def _put(
        self, path: str, member: tarfile.TarInfo, kind: bytes, linked: str = "", tree: _Tree | None = None
    ) -> bool:
        """Write a member with nothing of the original but rights, owner, time and content, if it may land there."""
        if not _may_land(path, is_folder=kind == tarfile.DIRTYPE):
            return False
        made = tarfile.TarInfo(path.lstrip("/") or ".")
        made.type, made.linkname = kind, linked
        made.mode, made.uid, made.gid = member.mode & 0o777, member.uid, member.gid
        made.mtime = min(max(int(member.mtime), 0), LATEST)
        made.size = member.size if tree else 0
        self._target.addfile(made, tree.archive.extractfile(member) if tree else None)
        self._written.add(path)
        return True


def _may_land(path: str, *, is_folder: bool) -> bool:
    """Whether the target machine takes it there: below no folder of the verifier's, and in the way of none."""
    if is_reserved(path) or (not is_folder and any(lies_in(folder, path) for folder in RESERVED)):
        return False
    raw = path.encode(errors="surrogateescape")
    return len(raw) <= PATH_BYTES and all(len(part) <= NAME_BYTES for part in raw.split(b"/"))


def plain(path: str) -> str:
    """A path as text that any file can hold, as the engine writes it in its lists."""
    return path.encode(errors="surrogateescape").decode(errors="replace")


def is_reserved(path: str) -> bool:
    """Whether an absolute path lies in a folder of the verifier's."""
    return any(lies_in(path, folder) for folder in RESERVED)


def _beside(path: str, text: str) -> str:
    """What a relative link's text names, no other link considered."""
    return normpath(f"{dirname(path)}/{text}")


def _folders_of(path: str) -> Iterator[str]:
    """The folders above a path."""
    while path != "/":
        path = dirname(path)
        yield path


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]
