"""Unpack an untrusted tar or zip file. Every member is checked before anything is written.

`tarfile.extractall(filter="data")` is not used: Python 3.11.2 has no filter, and before 3.11.13, 3.12.11 and 3.13.4 a
member could be written anywhere (CVE-2025-4517). These rules hold on every Python:

* Members are regular files, folders, symbolic links and hard links. Pipes and devices are refused.
* A path is relative, without `..` and control characters. It lies beneath folders only, never beneath a link.
* A path may occur twice as the same kind (the last one counts), but never as two kinds.
* A symbolic link is relative and stays inside, with `..` only at its beginning: after a name, `..` would count from
  wherever that name leads. Links are kept, since sdists and Debian sources have them, and are made after all files.
* A hard link becomes a copy of an earlier file.
* Number of members, total size, and ratio to the packed size are limited.

This package runs on Python 3.11.2 without third-party packages.
"""

from __future__ import annotations

import tarfile
import unicodedata
from pathlib import Path
from typing import NamedTuple

from runner.archives.readers import FOLDER, Member, Place, Tar, Zip, open_archive, place_of, refusal
from runner.archives.writer import write


class Limits(NamedTuple):
    """Limits on the content of an archive."""

    members: int = 200_000
    """Largest number of files, folders and links, including folders that are only implied."""
    size: int = 4 << 30
    """Largest size of all files together, in unpacked bytes."""
    ratio: int = 200
    """Highest ratio of unpacked to packed size, for archives of more than `free` bytes."""
    free: int = 64 << 20
    """Unpacked size, in bytes, up to which the ratio is not checked."""


LIMITS = Limits()


def unpack(
    packed: Path, into: Path, *, without_top: bool = False, machine: bool = False, limits: Limits = LIMITS
) -> None:
    """Unpack a tar or zip file into a new or empty folder.

    `without_top` drops the one folder that contains all members, if there is one. `machine` is for a sandbox's files
    that return to a sandbox: existing files are replaced, and any name and link is allowed, as they are its own.

    Raises `ConfigError` if the file is not an archive, is broken, or has a refused member.
    """
    with open_archive(packed) as reader:
        members = _read_members(reader, limits, packed.stat().st_size)
        members = _without_top(members) if without_top else members
        if not machine:
            _check_names(members)
        into.mkdir(parents=True, exist_ok=True)
        write(members, reader, into, over=machine)


def unpacked_size(packed: Path) -> int:
    """Return the bytes of all files of a tar or zip file, unpacked. Raises `ConfigError` as `unpack` does."""
    with open_archive(packed) as reader:
        members = _read_members(reader, LIMITS, packed.stat().st_size)
        _check_names(members)
        return sum(member.size for member in members.values())


def _read_members(reader: Tar | Zip, limits: Limits, packed: int) -> dict[Place, Member]:
    """Return all members by place, parents before children. Raises for a refused one."""
    most = min(limits.size, max(limits.free, limits.ratio * packed))
    found: dict[Place, Member] = {}
    total = 0
    for name, entry in reader.members():
        place, member = place_of(name), entry
        if not place:
            if member.kind != "folder":
                raise refusal(name, "has no name")
            continue
        if member.copied is not None:
            original = found.get(member.copied)
            if original is None or original.kind != "file" or member.copied == place:
                raise refusal(name, "is a hard link to something other than an earlier file")
            member = member._replace(size=original.size)
        total += member.size
        if total > most:
            raise tarfile.ReadError(f"it holds more than {most >> 20} MiB, packed in {packed >> 10} KiB")
        _add(found, place, member, name)
        if len(found) > limits.members:
            raise tarfile.ReadError(f"it has more than {limits.members} files, folders and links")
    return found


def _add(found: dict[Place, Member], place: Place, member: Member, name: str) -> None:
    """Add a member and the folders above it that are missing. Raises if another kind of member is in the way."""
    known = found.get(place)
    if known and known.kind != member.kind:
        raise refusal(name, f"is a {member.kind}, and was a {known.kind} before")
    missing = []
    for length in range(len(place) - 1, 0, -1):
        above = found.get(place[:length])
        if above is None:
            missing.append(place[:length])
            continue
        if above.kind != "folder":
            raise refusal(name, f"lies beneath a {above.kind}")
        break
    found.update((parent, FOLDER) for parent in reversed(missing))
    found[place] = member


def _without_top(members: dict[Place, Member]) -> dict[Place, Member]:
    """Return the members without the one folder that contains all others, if there is one."""
    tops = {place[0] for place in members}
    if len(tops) != 1 or any(
        len(place) == 1 and member.kind != "folder" for place, member in members.items()
    ):
        return members
    return {
        place[1:]: member._replace(copied=member.copied and member.copied[1:])
        for place, member in members.items()
        if len(place) > 1
    }


def _check_names(members: dict[Place, Member]) -> None:
    for place, member in members.items():
        name = "/".join(place)
        if _has_controls(name):
            raise refusal(name, "has control characters in its path")
        if member.kind == "link" and not stays_inside(place, member.target):
            raise refusal(name, f"is a link that leads outside, to {member.target[:200]!r}")


def _has_controls(text: str) -> bool:
    return any(unicodedata.category(sign) == "Cc" for sign in text)


def stays_inside(place: Place, target: str) -> bool:
    """Return whether a link's target is inside, even if there are links on the way to it."""
    if not target or target.startswith("/") or _has_controls(target):
        return False
    depth, named = len(place) - 1, False
    for part in target.split("/"):
        if part == "..":
            depth -= 1
            if named or depth < 0:
                return False
        elif part not in ("", "."):
            named = True
    return True
