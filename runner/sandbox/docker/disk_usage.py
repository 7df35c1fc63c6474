"""Measurement of what a container has written, as the engine counts it, whether it is alive or dead."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection
from threading import Event, Thread
from typing import NamedTuple, Self

from docker import APIClient
from docker.errors import APIError

from runner.records import Changes
from runner.sandbox.command_output import Excess
from runner.sandbox.docker import engine
from runner.sandbox.docker.engine_faults import ENGINE_FAULTS, NOT_FOUND
from runner.sandbox.limits import MEGABYTE, Limits

COUNT_SECONDS = 120.0
"""Longest wait for the engine to go through what a container wrote."""
LIST_BYTES = 16 * MEGABYTE
"""Longest list of changes that is stored, in bytes: some 200,000 paths."""
MARK = b'"Path":'
"""Beginning of each entry in the engine's list of changes. No name contains it, since quotes in names are escaped."""
FIRST_LOOK_SECONDS = 1.0
LOOK_SECONDS = 2.0
"""Longest pause between two quick looks at a container's disk."""
LOOK_SHARE = 10
"""Pause after a slow look, as a multiple of its duration."""
AGAIN_SECONDS = 0.5
"""Pause before a failed count is repeated, in seconds. A busy engine can be short of open files."""
COMPLAINTS = {
    "disk": "More than {0.disk_mb} MiB (sandbox.disk_mb, or the task's own), holes in files counted",
    "files": "More than {0.files} files (sandbox.files), or folders nested too deeply to count them",
}
"""Limit that a machine exceeds -> reason why the machine is not copied, and so not judged; a format of `Limits`."""

Read = Callable[[int], tuple[int, Changes | None] | None]
"""Function that counts changed paths without the engine, up to a limit, and may list them. See `overlay_layer`."""


class Layer(NamedTuple):
    """A measurement of the container's writable layer."""

    excess: Excess | None
    """Limit that is exceeded, if any."""
    listing: bytes | None = None
    """The engine's list of changed paths, as JSON. None if there is none, or if it is longer than `LIST_BYTES`."""
    read: Changes | None = None
    """The changed paths as read without the engine."""

    @property
    def changes(self) -> Changes | None:
        """Paths that differ from the image's; None if they are unknown."""
        if self.read is not None:
            return self.read
        if self.listing is None:
            return None
        kinds: tuple[set[str], ...] = (set(), set(), set())
        for change in json.loads(self.listing) or ():
            kinds[change["Kind"]].add(change["Path"])
        changed, added, deleted = map(frozenset, kinds)
        return Changes(added=added, changed=changed, deleted=deleted)


def ask_the_engine(_: int) -> None:
    """Read nothing, so that the engine is asked."""


def measure_layer(
    api: APIClient,
    container: str,
    limits: Limits,
    elsewhere: Callable[[], int] = lambda: 0,
    read: Read = ask_the_engine,
) -> Layer:
    """Measure and list what a container has written. `elsewhere` returns its bytes outside of the layer.

    `read` is asked before the engine is.

    Sizes are apparent, not allocated: copying a sparse file fills its holes. A layer that the engine cannot list, as
    it fails on very long paths, has too many files. The engine compares every file of the image with the container's:
    listing three times takes half of a short trial's processor time. Raises `APIError` and `RequestException`.
    """
    for is_last in (False, True):
        written = _bytes(api, container)
        if written is not None:
            if written + elsewhere() > limits.disk_mb * MEGABYTE:
                return Layer("disk")
            if (found := read(limits.files)) is not None:
                return Layer("files" if found[0] > limits.files else None, read=found[1])
            files, listing = _list(api, container, limits.files)
            if files is not None:
                return Layer("files" if files > limits.files else None, listing)
        if not is_last:
            time.sleep(AGAIN_SECONDS)
    return Layer("files")


def _bytes(api: APIClient, container: str) -> int | None:
    """Return the bytes in the writable layer; None if they cannot be counted, 0 if the container is gone."""
    listed = api.containers(all=True, size=True, filters={"id": container})
    written = sum(int(found.get("SizeRw", 0)) for found in listed)
    return None if written < 0 else written


def _list(api: APIClient, container: str, most: int) -> tuple[int | None, bytes | None]:
    """Return the number of paths in the writable layer and their list. Counting stops beyond `most`.

    The number is None if the paths cannot be counted, and 0 if the container is gone.
    """
    url = engine.url(api, f"/containers/{container}/changes")
    with api.get(url, stream=True, timeout=COUNT_SECONDS) as response:
        if not response.ok:
            return (0 if response.status_code == NOT_FOUND else None), None
        files, rest, listing = 0, b"", bytearray()
        for chunk in response.iter_content(MEGABYTE):
            files += (rest + chunk).count(MARK)
            rest = chunk[-len(MARK) + 1 :]
            if len(listing) <= LIST_BYTES:
                listing += chunk
            if files > most:
                return files, None
    return files, bytes(listing) if len(listing) <= LIST_BYTES else None


def without(mount: str, changes: Changes) -> Changes:
    """Return the changes without a mount of ours: the engine made its mount point, which changed the parent folder."""
    every = changes.added | changes.changed | changes.deleted
    folder = mount.rpartition("/")[0]
    others = any(path.startswith(f"{folder}/") for path in every if path != mount)
    ours = {mount} if others else {mount, folder}
    return Changes(added=changes.added - ours, changed=changes.changed - ours, deleted=changes.deleted - ours)


def volumes(api: APIClient, container: str, declared: Collection[str]) -> dict[str, str | None]:
    """Return path -> name of the container's volumes at the paths that its image declares."""
    if not declared:
        return {}
    mounts = api.inspect_container(container)["Mounts"]
    return {mount["Destination"]: mount["Name"] for mount in mounts if mount["Destination"] in declared}


def volume_bytes(api: APIClient, names: Collection[str | None]) -> int:
    """Return the size of these volumes. A container's own layer does not include them."""
    if not names:
        return 0
    try:
        found = api.df()["Volumes"] or ()
    except APIError:  # somebody else is asking the same; the next look will tell
        return 0
    return sum(int(volume["UsageData"]["Size"]) for volume in found if volume["Name"] in names)


class DiskWatch:
    """A thread that looks at a container's disk. A look can take seconds, and a deadline cannot wait for it."""

    def __init__(self, look: Callable[[], Excess | None]) -> None:
        self._look = look
        self._ended = Event()
        self.excess: Excess | None = None

    def __enter__(self) -> Self:
        Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._ended.set()  # not joined: a look in progress ends by itself and has no effect any more

    def _watch(self) -> None:
        pause = FIRST_LOOK_SECONDS
        while not self._ended.wait(pause):
            began = time.monotonic()
            try:
                self.excess = self._look()
            except ENGINE_FAULTS:
                return  # the command's own stream reports the fault
            if self.excess:
                return
            pause = max(min(2 * pause, LOOK_SECONDS), LOOK_SHARE * (time.monotonic() - began))
