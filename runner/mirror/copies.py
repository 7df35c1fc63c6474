"""Copy trials and sweeps between a folder and an object store."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from runner.errors import OutputsError
from runner.files import no_room, write_atomically
from runner.mirror.bucket import Bucket, StoreError, Taken
from runner.mirror.commit import FILES, RECORDS, SWEEPS, Commit, Content, address, decode, decoded, encoded
from runner.mirror.marks import Mark, Marks, Sent
from runner.records import LiveSweep
from runner.records.trial_files import GIVEN, LEFT, RECORD, WORKSPACE_BYTES
from runner.sweeps import live_file, sweep_file
from runner.sweeps.cells import TAKEN
from runner.terminal.escaping import Say

ARCHIVE = ".tar.gz"
"""Ending of the large files of a trial, which only people and trial pages read."""
PLAN = (sweep_file.NAME, "config.yaml")
"""Files of a sweep that other machines need. They make the remaining files anew."""
OWN = ("projected.json", live_file.NAME)
"""Files of a sweep that are true on one machine alone: where it was tracked, and what runs there now. The second is
sent while the sweep runs, and read from the store by those who watch, but is written into no other folder."""
_READ_BYTES = 1 << 20
_SWEEP = re.compile(
    rf"{SWEEPS}/(?P<sweep>[A-Za-z0-9][\w.+-]*)/(?P<file>{'|'.join(map(re.escape, PLAN))})", re.ASCII
)


class TrialCopies:
    """Trials of one folder and of one store. `check` raises `StoreError` once this driver may not write there."""

    def __init__(
        self, bucket: Bucket, folder: Callable[[str], Path], marks: Marks, check: Callable[[], None], say: Say
    ) -> None:
        self._bucket, self._folder, self._marks, self._check, self._say = bucket, folder, marks, check, say
        self._writer = secrets.token_hex(8)
        self._latest: dict[str, tuple[int, str]] = {}
        """Key -> number and ETag of the newest commit."""
        self.beaten: set[str] = set()
        """Trials of this command that another driver had already sent."""

    def look(self) -> list[str]:
        """Read which records the store has. Return the keys of those that this folder is no copy of."""
        self._latest = {}
        for found in self._bucket.listing(RECORDS):
            if named := address(found.name):
                key, number = named
                self._latest[key] = max(self._latest.get(key, (0, "")), (number, found.etag))
        return [key for key in self._latest if not self._is_copy(key)]

    def _is_copy(self, key: str) -> bool:
        mark, (number, etag) = self._marks.read(key), self._latest[key]
        if mark is None or (mark.number, mark.etag) != (number, etag):
            return False
        return mark.has_moved or (self._folder(key) / RECORD).exists()

    def take(self, key: str) -> None:
        """Make the folder of a trial a copy of the newest commit, but for the files beside its record.

        A record that was here and was never sent is kept in `.mirror/replaced/`. Raises `OutputsError`.
        """
        number, etag = self._latest[key]
        commit, mark, folder = self._commit(key, number), self._marks.read(key), self._folder(key)
        here = _content(folder / RECORD)
        if mark and mark.number == number and mark.digest != commit.digest:
            raise StoreError(
                f"{self._bucket.address}/{commit.object} is not what this machine knows: a record is written once. "
                f"Restore it, or delete {folder} if the new one is right."
            )
        if here is None or here.decode(errors="replace") != commit.record:
            if mark and mark.has_moved and mark.number == number:
                return  # a try of ours that goes on from this commit
            self._clear(key, was_sent=mark is not None and not mark.has_moved)
            write_atomically(folder / RECORD, commit.record.encode())
        self._marks.write(key, Mark.of(commit, etag))

    def _clear(self, key: str, *, was_sent: bool) -> None:
        """Remove a trial's folder, or put it aside if the store does not have it."""
        folder = self._folder(key)
        if not folder.exists():
            return
        try:
            if was_sent:
                shutil.rmtree(folder)
                return
            aside = self._marks.replaced / f"{key}-{secrets.token_hex(4)}"
            aside.parent.mkdir(parents=True, exist_ok=True)
            folder.rename(aside)
        except OSError as error:
            raise no_room(folder, error) from error
        self._say(f"Another driver has sent trial {key} before; ours is kept in {aside}")

    def unsent(self, trials: Path) -> Iterator[str]:
        """Yield the trials in this folder whose record the store does not have."""
        for path in trials.glob(f"*/*/{RECORD}"):
            key = path.parent.name
            mark, (number, _) = self._marks.read(key), self._latest.get(key, (0, ""))
            if mark is None or mark.has_moved or (mark.number > number and not self._missing(key, mark)):
                yield key

    def send(self, key: str) -> None:
        """Send a trial: the files first, and then, by its record, all at once.

        If another driver was first, its record is taken. Raises `OutputsError`.
        """
        folder, mark, files = self._folder(key), self._marks.read(key), {}
        number, _ = self._latest.get(key, (0, ""))
        there = set(mark.files.values()) if mark and mark.number == number else set()
        for name, path in _files(folder):
            files[name] = content = _digested(path)
            if content not in there:
                self._check()
                self._bucket.send(_object(key, content), path)
                there.add(content)
        record = (folder / RECORD).read_text()
        commit = Commit(key=key, number=number + 1, writer=self._writer, record=record, files=files)
        self._check()
        try:
            etag = self._bucket.create(commit.object, commit.encode())
        except Taken:
            self.beaten.add(key)
            _, etag, _ = self._bucket.get(commit.object) or (b"", "", None)
            self._latest[key] = commit.number, etag
            self.take(key)
            return
        self._latest[key] = commit.number, etag
        self._marks.write(key, Mark.of(commit, etag))

    def fetch(self, key: str, *, archives: bool, workspaces: bool = False) -> None:
        """Fetch the files of a trial that are not here. See `Store.fetch`. Raises `OutputsError`."""
        mark = self._marks.read(key)
        if mark is None or mark.has_moved:
            return
        for name in self._missing(key, mark):
            content = mark.files[name]
            is_shown = workspaces and name in (GIVEN, LEFT) and content.size <= WORKSPACE_BYTES
            if archives or is_shown or not name.endswith(ARCHIVE):
                self._bucket.fetch(_object(key, content), self._folder(key) / decoded(name), *content)

    def leave(self, key: str) -> None:
        """Note that the folder of a trial is no longer a copy, because another try has begun in it."""
        if mark := self._marks.read(key):
            self._marks.write(key, mark.model_copy(update={"has_moved": True}))

    def _missing(self, key: str, mark: Mark) -> list[str]:
        folder = self._folder(key)
        return [name for name in mark.files if not (folder / decoded(name)).exists()]

    def _commit(self, key: str, number: int) -> Commit:
        name = f"{RECORDS}/{key[:2]}/{key}.{number}.json"
        found = self._bucket.get(name)
        if found is None:
            raise StoreError(f"{self._bucket.address}/{name} has just gone: run the command again.")
        try:
            return decode(found[0], key, number)
        except ValueError as error:
            raise StoreError(
                f"{self._bucket.address}/{name} is not the record that was sent ({error}). Restore it, as from an "
                "earlier version in the bucket, or delete it, and its trial runs again."
            ) from error


class SweepCopies:
    """Plans, tables and reports of sweeps in one folder and in one store."""

    def __init__(self, bucket: Bucket, outputs: Path, marks: Marks) -> None:
        self._bucket, self._outputs, self._marks = bucket, outputs, marks

    def take(self) -> None:
        """Take the plans that have changed since they were taken or sent. Raises `OutputsError`."""
        known = self._marks.sent()
        for name, etag in self._bucket.listing(SWEEPS):
            match = _SWEEP.fullmatch(name)
            if match is None or match["sweep"].lower() in TAKEN:
                continue
            if (name in known and known[name].etag == etag) or (found := self._bucket.get(name)) is None:
                continue
            write_atomically(self._outputs / match["sweep"] / match["file"], found[0])
            self._marks.note_sent(name, Sent(found[1], hashlib.sha256(found[0]).hexdigest()))

    def send(self, sweep: Path) -> None:
        """Send the files of a sweep that have changed. Raises `OutputsError`."""
        known = self._marks.sent()
        for name, path in _files(sweep):
            if name in OWN:
                continue
            target, content = f"{SWEEPS}/{sweep.name}/{name}", _content(path) or b""
            digest = hashlib.sha256(content).hexdigest()
            if target not in known or known[target].digest != digest:
                self._marks.note_sent(target, Sent(self._bucket.put(target, content), digest))

    def send_live(self, sweep: Path) -> None:
        """Send the `live.json` of this process, and never that of an earlier one. Raises `StoreError`."""
        live = live_file.read(sweep)
        if live and (live.host, live.pid) == (socket.gethostname(), os.getpid()):
            self._bucket.put(f"{SWEEPS}/{sweep.name}/{live_file.NAME}", live.model_dump_json().encode())

    def live(self, sweep: Path) -> LiveSweep | None:
        """Return the `live.json` of a sweep at the store; None if there is none. Raises `StoreError`."""
        found = self._bucket.get(f"{SWEEPS}/{sweep.name}/{live_file.NAME}")
        return live_file.parse(found[0]) if found else None


def _object(key: str, content: Content) -> str:
    return f"{FILES}/{key[:2]}/{key}/{content.digest}"


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield encoded name and path of each file below a folder, without its record, links and files being written."""
    for parent, _, names in os.walk(folder):
        for name in sorted(names):
            path = Path(parent, name)
            is_own = path.parent == folder and (name == RECORD or name.startswith("."))
            if not is_own and stat.S_ISREG(path.lstat().st_mode):
                yield encoded(path.relative_to(folder)), path


def _digested(path: Path) -> Content:
    """Return size and digest of a file. Raises `OutputsError`."""
    hashed, size = hashlib.sha256(), 0
    try:
        with path.open("rb") as file:
            while part := file.read(_READ_BYTES):
                hashed.update(part)
                size += len(part)
    except OSError as error:
        raise OutputsError(f"Cannot read {path} ({error.strerror}). Mend its permissions.") from error
    return Content(size, hashed.hexdigest())


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
