"""What a container has written, as the engine counts it, alive or dead."""

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
"""Longest list of changes that is kept; some 200,000 paths."""
MARK = b'"Path":'
"""Begins each entry of the engine's list of changes; a name cannot hold it, since its quotes are escaped."""
AGAIN_SECONDS = 0.5
"""Before what could not be counted is counted again: a busy engine can be short of open files."""


class Layer(NamedTuple):
    """What a container has written."""

    excess: Excess | None
    """Limit that is exceeded, if any."""
    listing: bytes | None = None
    """The engine's list of changed paths, as JSON. None if there is none, or one longer than `LIST_BYTES`."""

    @property
    def changes(self) -> Changes | None:
        """Every path that differs from the image's; None if they are not known."""
        if self.listing is None:
            return None
        kinds: tuple[set[str], ...] = (set(), set(), set())
        for change in json.loads(self.listing) or ():
            kinds[change["Kind"]].add(change["Path"])
        changed, added, deleted = map(frozenset, kinds)
        return Changes(added=added, changed=changed, deleted=deleted)


def layer(api: APIClient, container: str, limits: Limits, beside: Callable[[], int] = lambda: 0) -> Layer:
    """Measure and list what a container has written; `beside` returns how many bytes it has elsewhere.

    Sizes are apparent ones: whatever copies a file writes its holes out. What cannot be counted is too much: the engine
    gives up on paths that are too long for it. The list is the dear part, since the engine compares every file of the
    image with the container's: half of the processor time of a short trial, if it is made three times. Raises
    `APIError` and `RequestException`.
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
    """Bytes in its writable layer; None if they cannot be counted, 0 of a container that is gone."""
    listed = api.containers(all=True, size=True, filters={"id": container})
    written = sum(int(found.get("SizeRw", 0)) for found in listed)
    return None if written < 0 else written


def _list(api: APIClient, container: str, most: int) -> tuple[int | None, bytes | None]:
    """Number of paths in its writable layer, counted until there are more than `most`, and their list.

    The number is None if they cannot be counted, and 0 of a container that is gone.
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
    """Leave a mount of ours out of a list of changes: the engine made its place, and changed the folder around it."""
    every = changes.added | changes.changed | changes.deleted
    folder = mount.rpartition("/")[0]
    others = any(path.startswith(f"{folder}/") for path in every if path != mount)
    ours = {mount} if others else {mount, folder}
    return Changes(added=changes.added - ours, changed=changes.changed - ours, deleted=changes.deleted - ours)
