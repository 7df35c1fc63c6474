"""Knowledge of this machine about an object store: `.mirror/` in its folder."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from pydantic import ValidationError

from runner.files import no_room, write_atomically
from runner.mirror.commit import Commit, Content
from runner.records import Record


class Mark(Record):
    """The commit that a trial's folder is a copy of."""

    number: int
    etag: str
    """ETag of the commit's object, which changes with its content."""
    digest: str
    """SHA-256 of the commit."""
    files: dict[str, Content]
    """Files of the trial, of which some may not be here."""
    has_moved: bool = False
    """True if another try has begun since, so that the folder is no longer a copy."""

    @classmethod
    def of(cls, commit: Commit, etag: str) -> Mark:
        """Return the mark of a folder that is a copy of this commit."""
        return cls(number=commit.number, etag=etag, digest=commit.digest, files=commit.files)


class Sent(NamedTuple):
    """State of a sweep's file at the store when this machine last took or sent it."""

    etag: str
    digest: str


class Marks:
    """The files in `.mirror/`. A lost mark costs only a comparison, so none is flushed to disk."""

    def __init__(self, outputs: Path) -> None:
        self.folder = outputs / ".mirror"
        self.lock = self.folder / "lock"
        """File that is locked while the work of other drivers is taken."""
        self.replaced = self.folder / "replaced"
        """Folder of trials that were replaced by another driver's."""
        self._writing = Lock()

    def place(self) -> str:
        """Return the random name of this folder, which is made at its first use."""
        path = self.folder / "place"
        if not path.exists():
            write_atomically(path, secrets.token_hex(8).encode())
        return path.read_text()

    def read(self, key: str) -> Mark | None:
        """Return the mark of a trial; None if there is none."""
        try:
            return Mark.model_validate_json(self._path(key).read_bytes())
        except (FileNotFoundError, ValidationError):
            return None

    def write(self, key: str, mark: Mark) -> None:
        """Write the mark of a trial. Raises `OutputsError`."""
        _replace(self._path(key), mark.model_dump_json().encode())

    def sent(self) -> dict[str, Sent]:
        """Return object -> state of the sweeps' files."""
        try:
            return {name: Sent(*state) for name, state in json.loads(self._sweeps.read_bytes()).items()}
        except (FileNotFoundError, ValueError, TypeError, AttributeError):
            return {}

    def note_sent(self, name: str, state: Sent) -> None:
        """Note the state of a sweep's file. Raises `OutputsError`."""
        with self._writing:
            _replace(self._sweeps, json.dumps({**self.sent(), name: state}).encode())

    @property
    def _sweeps(self) -> Path:
        return self.folder / "sweeps.json"

    def _path(self, key: str) -> Path:
        return self.folder / "trials" / key[:2] / f"{key}.json"


def _replace(path: Path, content: bytes) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_bytes(content)
        beside.replace(path)
    except OSError as error:
        raise no_room(path, error) from error
