"""A container's file system, accessed through the engine.

Every access freezes the container's processes and first checks what the engine will read. Otherwise an agent that is
root could put a named pipe where the engine opens a file, and the engine would wait forever.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from docker import APIClient
from docker.errors import APIError
from docker.utils import decode_json_header

from runner.errors import WorkspaceTooLarge
from runner.sandbox import tar_streams
from runner.sandbox.docker import freezing
from runner.sandbox.docker.engine import checked, url
from runner.sandbox.docker.engine_faults import NOT_FOUND, explanation
from runner.sandbox.limits import MEGABYTE, Caps

RESERVED = ("/tests", "/solution", "/logs", "/logs/verifier")
"""Directories of the verifier. A snapshot has real directories there. A file, a link or a loop that an agent planted
instead would be a mount point that the engine refuses, and so a way to avoid being judged."""
USERS = ("/etc/passwd", "/etc/group")
"""Files that the engine reads before it starts or packs anything."""
DIRECTORY = 1 << 31
"""Bit of a directory in the engine's file modes (Go's `fs.ModeDir`)."""
SPECIAL = 0x8F280000
"""Bits in the engine's file modes (Go's `fs.ModeType`) that no regular file has."""
SILENCE_SECONDS = 120.0
"""Longest silence of the engine while it packs or unpacks."""
STAT_SECONDS = 60.0
"""Longest wait for the state of one path."""
PACK_SECONDS = 300.0
"""Longest time for packing a whole tar out of a container."""
NO_SUCH_PATH = ("could not find the file", "not a directory", "too many links")
"""Words in the engine's messages about a path that leads nowhere."""


class Files:
    """The files of one container."""

    def __init__(self, api: APIClient, container: str) -> None:
        self._api, self._container = api, container
        self.are_still = False
        """True if no process is alive that could change the files, and the engine can read the container's user
        files."""

    def put(self, source: Path, target: str, *, freeze: bool = True) -> None:
        """Unpack a tar file in a folder. Raises `NotFound` if the folder is missing."""
        with self.still() if freeze else nullcontext(), source.open("rb") as file:
            self._unpack(target, file)

    def unpack(self, pack: tar_streams.Packer, *, freeze: bool = True) -> None:
        """Unpack the collected files. The engine resolves every name inside the container, links included."""
        if not pack.empty:
            with self.still() if freeze else nullcontext():
                self._unpack("/", pack.stream())

    def pack(self, path: str, target: Path, caps: Caps, *, freeze: bool = True) -> int:
        """Take a path out as a tar file; see `protocols.Sandbox.get`. Raises `APIError` if the engine refuses."""
        plain, until = path.rstrip("/"), time.monotonic() + PACK_SECONDS
        refusal: Exception = FileNotFoundError(path)
        with self.still() if freeze else nullcontext():
            for name in (f"{plain}/", plain):  # the slash follows a link; the engine refuses it for a file
                # The client's own `get_archive` cannot be closed before its end.
                with self._api.get(
                    self._url, params={"path": name}, stream=True, timeout=SILENCE_SECONDS
                ) as response:
                    if response.ok:
                        return tar_streams.save(
                            _in_time(response.iter_content(MEGABYTE), until), target, caps
                        )
                    try:
                        checked(response)
                    except APIError as error:
                        refusal = error
        if any(words in explanation(refusal).lower() for words in NO_SUCH_PATH):
            raise FileNotFoundError(path) from refusal
        raise refusal

    def make_room(self) -> None:
        """Replace anything else by a directory at the paths where the verifier's directories are mounted."""
        with tar_streams.Packer() as pack:
            if any(map(self._is_in_the_way, RESERVED)):
                for path in RESERVED:
                    pack.directory(path, 0o755)
            self.unpack(pack)

    def mend_users(self) -> None:
        """Replace user files that the engine cannot read by empty files."""
        with tar_streams.Packer() as pack:
            for path in filter(self._is_unreadable, USERS):
                pack.file(path, "", "root")
            self.unpack(pack, freeze=False)

    @contextmanager
    def still(self) -> Iterator[None]:
        """Freeze the container's processes within the context, so that a checked path stays as it was."""
        if self.are_still:
            yield
            return
        is_frozen = freezing.freeze(self._api, self._container)
        try:
            self.mend_users()
            yield
        finally:
            if is_frozen:
                freezing.thaw(self._api, self._container)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the processes frozen for several accesses."""
        with self.still():
            before, self.are_still = self.are_still, True
            try:
                yield
            finally:
                self.are_still = before

    def _unpack(self, target: str, data: Any) -> None:
        checked(self._api.put(self._url, params={"path": target}, data=data, timeout=SILENCE_SECONDS))

    def _is_unreadable(self, path: str) -> bool:
        """Return whether the path is neither a regular file nor a link to one. A missing path is fine."""
        try:
            found = self._stat(path)
            if found and found["linkTarget"]:  # followed to its end, within the container
                found = self._stat(found["linkTarget"]) or {"mode": SPECIAL}
        except APIError:  # a loop of links
            return True
        return bool(found) and bool(found["mode"] & SPECIAL)

    def _is_in_the_way(self, path: str) -> bool:
        """Return whether the path is something other than a directory. A loop of links cannot even be inspected."""
        try:
            found = self._stat(path)
        except APIError:
            return True
        return bool(found) and not found["mode"] & DIRECTORY

    def _stat(self, path: str) -> dict[str, Any]:
        """Return the engine's description of a path, empty if nothing is there. Far cheaper than writing there."""
        response = self._api.head(self._url, params={"path": path}, timeout=STAT_SECONDS)
        if response.status_code == NOT_FOUND:
            return {}
        return dict(decode_json_header(checked(response).headers["X-Docker-Container-Path-Stat"]))

    @property
    def _url(self) -> str:
        return url(self._api, f"/containers/{self._container}/archive")


class TakenPaths:
    """Paths that were taken out of a dead container. It does not change, so each path is packed once."""

    def __init__(self) -> None:
        self._tars: dict[str, tuple[Path, int]] = {}
        """Path -> the tar file that it was packed into, and the number of files in it."""

    def copy(self, path: str, target: Path) -> int | None:
        """Copy what was packed before to `target` and return its number of files.

        Return None if the path has to be packed. Either way, the tar of another path at `target` is overwritten.
        """
        packed, files = self._tars.get(path, (target, 0))
        self._tars = {of: taken for of, taken in self._tars.items() if of == path or taken[0] != target}
        if path not in self._tars or not packed.exists():
            return None
        if packed != target:
            shutil.copyfile(packed, target)
        return files

    def add(self, path: str, target: Path, files: int) -> None:
        """Remember that a path was packed."""
        self._tars[path] = target, files

    def clear(self) -> None:
        """Forget all paths, because the container may change."""
        self._tars.clear()


def _in_time(chunks: Iterable[bytes], until: float) -> Iterator[bytes]:
    for chunk in chunks:
        if time.monotonic() > until:
            raise WorkspaceTooLarge(f"The files could not be taken out within {PACK_SECONDS:g} s.")
        yield chunk
