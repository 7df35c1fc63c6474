"""ΔS: the differences between two states of a file system, limited in number and time."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

CHUNK = 1 << 16
HEAD_CHARACTERS = 2_000
"""Characters of a file's content that the authors of CLI-Tool-Bench compare."""
_HEAD_BYTES = 4 * (HEAD_CHARACTERS + 1)
"""Bytes that contain one character more, at four bytes each."""
LONGEST_PATH = 4_000
"""Longest path that is looked at, in bytes. With a view's path before it, the kernel still accepts it."""


class State(NamedTuple):
    """State of a path, without times and owners."""

    kind: str
    """One of file, directory, symlink and other."""
    mode: int | None
    """Permission bits; None for links."""
    size: int | None
    """Bytes of a file; None otherwise."""


HOLDING = ("file", "symlink")
"""Kinds that have a content."""


class Content(NamedTuple):
    """Content of a file or link."""

    digest: str | None
    """SHA-256; None if there was no time to read the content, or it cannot be read."""
    text: str
    head_digest: str | None = None
    """See `runner.records.cases.Change`. None for a link."""


class Side(Protocol):
    """A state of a file system. Paths are absolute."""

    def look(self, path: bytes) -> State | None:
        """Return the state of a path; None for nothing."""

    def names(self, path: bytes) -> Iterable[bytes]:
        """Return the names of a directory's entries."""

    def content(self, path: bytes, clock: Clock) -> Content:
        """Return the content of a file or link."""


@dataclass(frozen=True)
class Caps:
    """Limits on looking."""

    entries: int
    seconds: float
    text_bytes: int
    """Bytes of text stored of each content."""

    def clock(self) -> Clock:
        """Return a clock that starts now."""
        return Clock(time.monotonic() + self.seconds, self.text_bytes)


@dataclass(frozen=True)
class Clock:
    """The time limit of one look."""

    until: float
    """End on the monotonic clock, in seconds."""
    text_bytes: int

    @property
    def over(self) -> bool:
        """Return whether the time has run out."""
        return time.monotonic() > self.until


class Tree:
    """A directory of this machine as a file system's root. No living process may write to it meanwhile."""

    def __init__(self, root: str) -> None:
        self._root = os.fsencode(root.rstrip("/"))

    def look(self, path: bytes) -> State | None:
        """See `Side`."""
        try:
            found = os.lstat(self._root + path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        kind = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "symlink"}.get(
            stat.S_IFMT(found.st_mode), "other"
        )
        mode = None if kind == "symlink" else stat.S_IMODE(found.st_mode)
        return State(kind, mode, found.st_size if kind == "file" else None)

    def names(self, path: bytes) -> Iterable[bytes]:
        """See `Side`."""
        return os.listdir(self._root + path)

    def content(self, path: bytes, clock: Clock) -> Content:
        """See `Side`. Stops reading when the time runs out."""
        try:
            return self._read(self._root + path, clock)
        except OSError:
            return Content(None, "")

    def _read(self, place: bytes, clock: Clock) -> Content:
        if os.path.islink(place):
            target = os.readlink(place)
            return Content(hashlib.sha256(target).hexdigest(), readable(target[: clock.text_bytes]))
        digest, beginning = hashlib.sha256(), b""
        longest = max(clock.text_bytes, _HEAD_BYTES)
        with open(os.open(place, os.O_RDONLY | os.O_NOFOLLOW), "rb", buffering=0) as file:
            while data := file.read(CHUNK):
                beginning += data[: longest - len(beginning)]
                digest.update(data)
                if clock.over:
                    return Content(None, readable(beginning[: clock.text_bytes]), head(beginning))
        return Content(digest.hexdigest(), readable(beginning[: clock.text_bytes]), head(beginning))


class Frozen:
    """A copy of a side's state: everything below some folders, read as far as the time allows."""

    def __init__(self, side: Side, folders: Iterable[bytes], clock: Clock) -> None:
        self.cut = False
        """True if the time ran out. Whatever was not read counts as changed."""
        self._states: dict[bytes, State] = {}
        self._contents: dict[bytes, Content] = {}
        self._names: dict[bytes, list[bytes]] = {}
        left = list(folders)
        while left:
            path = left.pop()
            state = side.look(path)
            if state is None:
                continue
            self._states[path] = state
            self.cut |= clock.over
            if state.kind == "directory":
                self._names[path] = list(side.names(path))
                left.extend(below(path, self._names[path]))
            elif state.kind in HOLDING and not self.cut:
                self._contents[path] = side.content(path, clock)

    def look(self, path: bytes) -> State | None:
        """See `Side`."""
        return self._states.get(path)

    def names(self, path: bytes) -> Iterable[bytes]:
        """See `Side`."""
        return self._names[path]

    def content(self, path: bytes, clock: Clock) -> Content:  # noqa: ARG002 - the protocol's
        """See `Side`."""
        return self._contents.get(path, Content(None, ""))


@dataclass
class Changes:
    """The differences between two sides, in the order in which they are found."""

    before: Side
    after: Side
    most: int
    clock: Clock
    entries: list[dict[str, Any]] = field(default_factory=list)
    """Fields of `runner.records.cases.Change`."""
    truncated: set[str] = field(default_factory=set)
    ended: bool = False
    """True if there is no room, or no time, for more."""

    def compare(self, path: bytes) -> None:
        """Add the differences at this path and below it, on either side."""
        left = [(path, True, True)]
        while left and self.has_time():
            path, was_within, is_within = left.pop()
            # If the parent is not a folder, it may be a link that leads the kernel elsewhere.
            old = self.before.look(path) if was_within else None
            new = self.after.look(path) if is_within else None
            self.note(path, old, new)
            was_folder, is_folder = (state is not None and state.kind == "directory" for state in (old, new))
            names = set(self.before.names(path)) if was_folder else set()
            if is_folder:
                names.update(self.after.names(path))
            left.extend((inner, was_folder, is_folder) for inner in self.inside(path, names))

    def inside(self, path: bytes, names: Collection[bytes]) -> list[bytes]:
        """Return the paths of a directory's entries, last first. Paths that are too long are left out, and `truncated`
        says so.
        """
        inner = below(path, sorted(names, reverse=True))
        if len(inner) < len(names):
            self.truncated.add("entries")
        return inner

    def has_time(self) -> bool:
        """Return whether looking may go on."""
        if not self.ended and self.clock.over:
            self._end("diff_seconds")
        return not self.ended

    def note(self, path: bytes, old: State | None, new: State | None) -> None:
        """Add the difference at this path alone."""
        if new is None:
            if old:
                self._add(path, "deleted", old.kind, was=old.kind)
            return
        content = self.after.content(path, self.clock) if new.kind in HOLDING else None
        alike = old is not None and (old.kind, old.size) == (new.kind, new.size)
        alike = alike and (content is None or self._same(path, content))
        if alike and old == new:
            return
        known = {"mode": new.mode, "size": new.size, "was": old.kind if old else None, "mode_only": alike}
        if content:
            known |= content._asdict()
        self._add(path, "changed" if old else "added", new.kind, **known)

    def _same(self, path: bytes, content: Content) -> bool:
        digest = self.before.content(path, self.clock).digest
        return digest is not None and digest == content.digest

    def _add(self, path: bytes, change: str, kind: str, **known: Any) -> None:
        if len(self.entries) < self.most:
            self.entries.append({"path": name(path), "change": change, "kind": kind, **known})
        else:
            self._end("entries")

    def _end(self, why: str) -> None:
        self.truncated.add(why)
        self.ended = True


def below(path: bytes, names: Iterable[bytes]) -> list[bytes]:
    """Return the paths of a directory's entries, except those that are too long."""
    return [path + b"/" + name for name in names if len(path) + len(name) < LONGEST_PATH]


def name(path: bytes) -> str:
    r"""Return a path as text. Backslashes are doubled, so none is mistaken for a byte that is not UTF-8 (`\xNN`)."""
    return readable(path.replace(b"\\", b"\\\\"))


def head(content: bytes) -> str:
    """Return the digest of a file's first characters and of whether there are more, given its first bytes."""
    text = content.decode(errors="replace")
    beginning = f"{len(text) > HEAD_CHARACTERS} {text[:HEAD_CHARACTERS]}"
    return hashlib.sha256(beginning.encode()).hexdigest()


def readable(content: bytes) -> str:
    r"""Return bytes as text, with `\xNN` for those that are not UTF-8."""
    return content.decode(errors="backslashreplace")


def layered(changes: Changes, upper: str) -> None:
    """Add the changes in an overlay's upper directory. `before` and `after` are its two merged views.

    The upper directory says where to look, and the views say what is there. So the overlay's own notation (a device for
    a deleted name, attributes for a replaced or renamed directory) need only be recognised, not interpreted.
    """
    top = os.fsencode(upper)
    left = [b""]
    while left and changes.has_time():
        path = left.pop()
        old, new = changes.before.look(path), changes.after.look(path)
        merged = old and new and old.kind == new.kind == "directory"
        if merged and not _replaced(top + path):
            changes.note(path, old, new)
            left.extend(changes.inside(path, os.listdir(top + path)))
        else:
            changes.compare(path)


def _replaced(folder: bytes) -> bool:
    """Return whether an upper directory replaces the one beneath instead of adding to it."""
    attributes = set(os.listxattr(folder, follow_symlinks=False))
    return bool(attributes & {"trusted.overlay.opaque", "trusted.overlay.redirect"})
