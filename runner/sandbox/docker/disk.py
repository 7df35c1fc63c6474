"""Measurement of what a container has written, as the engine counts it, whether it is alive or dead."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import NamedTuple

from docker import APIClient

from runner.records import Changes
from runner.sandbox.command_output import Excess
from runner.sandbox.docker.faults import NOT_FOUND
from runner.sandbox.limits import MEGABYTE, Limits

COUNT_SECONDS = 120.0
"""Longest wait for the engine to go through what a container wrote."""
LIST_BYTES = 16 * MEGABYTE
"""Longest list of changes that is stored, in bytes: some 200,000 paths."""
MARK = b'"Path":'
"""Beginning of each entry in the engine's list of changes. No name contains it, since quotes in names are escaped."""
AGAIN_SECONDS = 0.5
"""Pause before a failed count is repeated: a busy engine can be short of open files."""


class Layer(NamedTuple):
    """A measurement of the container's writable layer."""

    excess: Excess | None
    """Limit that is exceeded, if any."""
    listing: bytes | None = None
    """The engine's list of changed paths, as JSON. None if there is none, or if it is longer than `LIST_BYTES`."""

    @property
    def changes(self) -> Changes | None:
        """Paths that differ from the image's; None if they are unknown."""
        if self.listing is None:
            return None
        kinds: tuple[set[str], ...] = (set(), set(), set())
        for change in json.loads(self.listing) or ():
            kinds[change["Kind"]].add(change["Path"])
        changed, added, deleted = map(frozenset, kinds)
        return Changes(added=added, changed=changed, deleted=deleted)


def layer(api: APIClient, container: str, limits: Limits, beside: Callable[[], int] = lambda: 0) -> Layer:
    """Measure and list what a container has written. `beside` returns the bytes that it has elsewhere.

    Sizes are apparent ones, since whatever copies a file writes its holes out. A layer that cannot be counted counts as
    too large: the engine fails on paths that are too long for it. The list is expensive, because the engine compares
    every file of the image with the container's: made three times, it takes half of a short trial's processor time.
    Raises `APIError` and `RequestException`.
    """
    for is_last in (False, True):
        written = _bytes(api, container)
        if written is not None:
            if written + beside() > limits.disk_mb * MEGABYTE:
                return Layer("disk")
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
    url = f"{api.base_url}/v{api.api_version}/containers/{container}/changes"
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
