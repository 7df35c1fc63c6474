"""What a container has written, as the engine counts it, alive or dead."""

from __future__ import annotations

import time
from collections.abc import Callable

from docker import APIClient

from runner.sandbox.execution import Excess
from runner.sandbox.faults import NOT_FOUND
from runner.sandbox.limits import MEGABYTE, Limits

COUNT_SECONDS = 120.0
"""Longest wait for the engine to go through what a container wrote."""
MARK = b'"Path":'
"""Begins each entry of the engine's list of changes; a name cannot hold it, since its quotes are escaped."""
AGAIN_SECONDS = 0.5
"""Before what could not be counted is counted again: a busy engine can be short of open files."""


def excess(
    api: APIClient, container: str, limits: Limits, beside: Callable[[], int] = lambda: 0
) -> Excess | None:
    """What a container has more of than its limits allow; `beside` says how many bytes it has elsewhere.

    Sizes are apparent ones: whatever copies a file writes its holes out. What cannot be counted is too much: the engine
    gives up on paths that are too long for it. Raises `APIError` and `RequestException`.
    """
    for is_last in (False, True):
        written = _bytes(api, container)
        if written is not None:
            if written + beside() > limits.disk_mb * MEGABYTE:
                return "disk"
            files = _files(api, container, limits.files)
            if files is not None:
                return "files" if files > limits.files else None
        if not is_last:
            time.sleep(AGAIN_SECONDS)
    return "files"


def _bytes(api: APIClient, container: str) -> int | None:
    """Bytes in its writable layer; None if they cannot be counted, 0 of a container that is gone."""
    listed = api.containers(all=True, size=True, filters={"id": container})
    written = sum(int(found.get("SizeRw", 0)) for found in listed)
    return None if written < 0 else written


def _files(api: APIClient, container: str, most: int) -> int | None:
    """Paths in its writable layer, counted until there are more than `most`; None if they cannot be counted, 0 of a
    container that is gone.
    """
    url = f"{api.base_url}/v{api.api_version}/containers/{container}/changes"
    with api.get(url, stream=True, timeout=COUNT_SECONDS) as response:
        if not response.ok:
            return 0 if response.status_code == NOT_FOUND else None
        files, rest = 0, b""
        for chunk in response.iter_content(MEGABYTE):
            files += (rest + chunk).count(MARK)
            rest = chunk[-len(MARK) + 1 :]
            if files > most:
                break
    return files
