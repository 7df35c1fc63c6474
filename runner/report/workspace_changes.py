"""The changes of an agent to its workspace, as far as the trial's folder tells.

A trial keeps the workspace that its agent left. One trial of each task also keeps the workspace that agents are given,
which is the base of a diff. A trial of the bound `nop`, which changes nothing, will do as well. Without either, time
stamps tell which files were written since the agent began, but the agent can set them.

Names and contents are hostile. Nothing is unpacked to disk, and what is read, compared and returned is bounded.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import Final, Literal, NamedTuple

from runner.archives.readers import Member, Tar, Zip, open_archive
from runner.errors import ConfigError
from runner.records.trial_files import WORKSPACE_BYTES
from runner.report.hostile_text import shortened
from runner.terminal.escaping import one_line
from runner.trials.workspace import DEPENDENCY_FOLDERS

UNPACKED: Final = 64 << 20
"""Largest number of bytes that are read of one archive; they take about 0.3 s."""
MEMBERS: Final = 20_000
"""Most members that are read of one archive."""
TEXT_BYTES: Final = 64 << 10
"""Largest file whose content is compared line by line."""
LISTED: Final = 200
"""Most changed files that are listed."""
CHARACTERS, LONGEST = 60_000, 10_000
"""Most characters of all texts of a trial's changes, and of one file."""
LINES: Final = 400
"""Most differing lines that are aligned: `difflib` takes quadratic time, and agents choose the lines."""
NAME: Final = 300
"""Longest path that is shown, in characters."""

Kind = Literal["added", "changed", "deleted", "written"]


class File(NamedTuple):
    """One file of a workspace."""

    size: int
    content: str
    """Digest of its content, or target of a link."""
    modified: float | None = None
    text: str | None = None
    """Content, if it is a small text."""


class Snapshot(NamedTuple):
    """The files of a workspace, as far as they were read."""

    files: Mapping[str, File]
    unread: str = ""
    """Reason why some or all files are missing; empty if none is."""


class Change(NamedTuple):
    """One file that differs."""

    path: str
    kind: Kind
    before: int | None
    """Size before, in bytes; None if the file did not exist, or if that is unknown."""
    after: int | None
    lines: tuple[str, ...] = ()
    """Lines of a unified diff, or of the whole file if there is no base."""
    note: str = ""
    """Reason why there are no lines, or not all of them."""


class Changes(NamedTuple):
    """The changes of an agent to its workspace."""

    basis: str
    """Basis of the list, and its limits, in words."""
    files: tuple[Change, ...] = ()
    left_out: int = 0
    """Changed files beyond those listed."""
    is_diff: bool = False
    """True if the lines are those of a diff."""


def read_workspace(packed: Path) -> Snapshot:
    """Return the files in an archive of a workspace. A fault of the archive is noted in `unread` and never raised."""
    found: dict[str, File] = {}
    try:
        size = packed.stat().st_size
    except OSError:
        return Snapshot({}, "The trial's folder has no archive of the workspace.")
    if size > WORKSPACE_BYTES:
        return Snapshot({}, f"The archive of the workspace has {size:,} bytes and was not opened.")
    try:
        with open_archive(packed) as reader:
            return Snapshot(found, _read(reader, found))
    except ConfigError as error:
        return Snapshot(
            found, f"The archive was read up to a member that cannot be: {one_line(str(error))[:NAME]}"
        )


def _read(reader: Tar | Zip, into: dict[str, File]) -> str:
    """Add the files of an archive; return why some are missing."""
    total = 0
    for count, (name, member) in enumerate(reader.members()):
        total += member.size
        if total > UNPACKED or count >= MEMBERS:
            return f"The archive was read up to {count:,} files and folders; the rest was not looked at."
        path = name.partition("/")[2]
        if member.kind == "link":
            into[path] = File(0, f"link to {member.target}")
        elif member.kind == "file" and path:
            into[path] = _file(reader, member)
    return ""


def _file(reader: Tar | Zip, member: Member) -> File:
    if member.copied is not None:
        return File(0, f"hard link to {'/'.join(member.copied[1:])}", member.modified)
    digest, text = hashlib.sha256(), None
    with reader.open(member) as content:
        if member.size <= TEXT_BYTES:
            whole = content.read()
            digest.update(whole)
            if b"\0" not in whole:
                with suppress(UnicodeDecodeError):
                    text = whole.decode()
        else:
            while chunk := content.read(1 << 16):
                digest.update(chunk)
    return File(member.size, digest.hexdigest(), member.modified, text)


def compare_with(base: Snapshot, left: Snapshot, redacted: Callable[[str], str]) -> Changes:
    """Return how the workspace that an agent left differs from the one that it was given."""
    unread = " ".join(filter(None, (left.unread, base.unread and f"Of the base: {base.unread}")))
    basis = "The difference between this workspace and the one that the agent was given."
    changed = [
        (_kind(base.files.get(path), left.files.get(path)), path)
        for path in sorted(base.files.keys() | left.files.keys())
        if _content(base.files.get(path)) != _content(left.files.get(path))
    ]
    if unread:  # then a file that is missing on one side may be in the part that was not read
        changed = [(kind, path) for kind, path in changed if kind == "changed"]
        unread += " Files that are in one of the two alone are not listed."
    return _changes(f"{basis} {unread}".strip(), changed, base, left, redacted)


def written_since(moment: float, left: Snapshot, redacted: Callable[[str], str]) -> Changes:
    """Return the files that carry a time stamp of `moment` or later, in seconds since the epoch."""
    basis = (
        "No trial of this task kept the workspace that agents are given, so there is nothing to compare with. Listed "
        "are the files whose time stamp is later than the agent's start; an agent can set these. Whether a file was "
        "added or changed, and which were deleted, is not known. Add `agent=nop` to the sweep to have a diff."
    )
    paths: list[tuple[Kind, str]] = [
        ("written", path)
        for path, file in sorted(left.files.items())
        if file.modified is not None and file.modified >= moment
    ]
    return _changes(f"{basis} {left.unread}".strip(), paths, None, left, redacted)


def _changes(
    basis: str,
    changed: list[tuple[Kind, str]],
    base: Snapshot | None,
    left: Snapshot,
    redacted: Callable[[str], str],
) -> Changes:
    """Return the changes, those in hidden and dependency folders last and without their texts."""
    room, files = CHARACTERS, []
    ordered = sorted(changed, key=lambda change: (_is_aside(change[1]), change[1]))
    for kind, path in ordered[:LISTED]:
        old, new = base.files.get(path) if base else None, left.files.get(path)
        lines, note = _lines(
            old,
            new,
            aside=_is_aside(path),
            is_diff=base is not None,
            room=min(room, LONGEST),
            redacted=redacted,
        )
        room -= sum(map(len, lines))
        sizes = (old.size if old else None, new.size if new else None)
        files.append(Change(shortened(one_line(redacted(path)), NAME), kind, *sizes, lines, note))
    return Changes(basis, tuple(files), max(0, len(ordered) - LISTED), base is not None)


def _lines(
    old: File | None,
    new: File | None,
    *,
    aside: bool,
    is_diff: bool,
    room: int,
    redacted: Callable[[str], str],
) -> tuple[tuple[str, ...], str]:
    """Return the lines to show of one file, and why there are none or not all."""
    texts = [file.text for file in (old, new) if file]
    for file in (old, new):
        if file and file.content.startswith(("link to ", "hard link to ")):
            return (), one_line(redacted(file.content))[:NAME]
    if aside:
        return (), "in a hidden or dependency folder"
    if None in texts:
        return (), f"not a text of at most {TEXT_BYTES >> 10} KiB"
    marked = _marked(old, new, is_diff=is_diff)
    first = list(islice(marked, 2))
    if room <= 0 and first not in ([], [""]):  # which is known without the other lines
        return (), "left out: the texts shown of this trial are long enough"
    text = "\n".join(chain(first, marked))
    shown = shortened(redacted(text), max(room, 1))
    return tuple(shown.split("\n")), "shortened" if len(shown) < len(text) else ""


def _marked(old: File | None, new: File | None, *, is_diff: bool) -> Iterator[str]:
    """Yield the lines of one file, each with its sign if they are those of a diff."""
    before, after = ((file.text or "").split("\n") if file else [] for file in (old, new))
    if not is_diff:
        yield from after
    elif old and new:
        yield from _diff(before, after)
    else:
        yield from (f"-{line}" for line in before)
        yield from (f"+{line}" for line in after)


def _diff(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a unified diff in time that is nearly linear.

    Lines that both begin or end with are taken off first. If still many differ, they are shown as replaced.
    """
    shortest = min(len(old), len(new))
    head = next((at for at in range(shortest) if old[at] != new[at]), shortest)
    tail = next((at for at in range(shortest - head) if old[-1 - at] != new[-1 - at]), shortest - head)
    middle = (old[head : len(old) - tail], new[head : len(new) - tail])
    if max(map(len, middle)) <= LINES:
        start, end = max(0, head - 3), max(0, tail - 3)
        sides = (old[start : len(old) - end], new[start : len(new) - end])
        for line in list(difflib.unified_diff(*sides, lineterm=""))[2:]:
            yield _moved(line, start) if line.startswith("@@") else line
    else:
        yield f"@@ -{head + 1},{len(middle[0])} +{head + 1},{len(middle[1])} @@ not aligned"
        yield from (f"-{line}" for line in middle[0])
        yield from (f"+{line}" for line in middle[1])


def _moved(head: str, start: int) -> str:
    """Return the head of a hunk with line numbers of the whole file."""
    parts = []
    for part in head.split()[1:3]:
        first, comma, count = part[1:].partition(",")
        parts.append(f"{part[0]}{int(first) + start}{comma}{count}")
    return f"@@ {' '.join(parts)} @@"


def _content(file: File | None) -> str | None:
    return file.content if file else None


def _kind(old: File | None, new: File | None) -> Kind:
    return "added" if old is None else "deleted" if new is None else "changed"


def _is_aside(path: str) -> bool:
    """Return whether a file is in a hidden or dependency folder, whose many files the agent hardly wrote itself."""
    return any(part.startswith(".") or part in DEPENDENCY_FOLDERS for part in path.split("/"))
