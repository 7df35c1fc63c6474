"""Freezing a container's processes, against an engine that is late to notice.

The engine learns twice that a container was frozen or thawed: from its own request, and from an event that a busy
machine delivers late. A late event puts back the state before: for some milliseconds the engine takes a running
container for a frozen one, or a frozen one for a running one, and refuses requests that are in order: 12 of 3,600
with six containers frozen and thawed side by side on two cores.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from docker import APIClient
from docker.errors import APIError, NotFound

from runner.sandbox.docker.engine import call
from runner.sandbox.docker.engine_faults import explanation

Answer = TypeVar("Answer")

FREEZE_SECONDS = 60.0
"""Longest wait for one answer of the engine."""
LATE_SECONDS = 20.0
"""Longest time, in seconds, for which a refusal is attributed to a late event."""
PAUSE_SECONDS = 0.01
"""Pause between two tries, in seconds."""
STALE = ("is paused", "is already paused", "is not paused", "cannot resume a running")
"""Words in the refusals that a late event may cause."""
BUSY = "unable to freeze"
"""Words in a refusal because the processes were too busy to be all frozen at once within the runtime's time limit."""


def freeze(api: APIClient, container: str) -> bool:
    """Freeze all processes of a container. Return false if it is dead already, or if this engine cannot freeze it.

    A container that only seems frozen is thawed and frozen again. Raises `APIError` if it seems so for 20 seconds.
    """

    def request() -> None:
        try:
            call(api, "POST", f"/containers/{container}/pause", FREEZE_SECONDS)
        except APIError as error:
            if _is_stale(error):
                with suppress(APIError):
                    call(api, "POST", f"/containers/{container}/unpause", FREEZE_SECONDS)
            raise

    try:
        despite_late_events(request)
    except APIError as error:
        if _is_stale(error):
            raise
        return False
    return True


def thaw(api: APIClient, container: str) -> None:
    """Let the processes of a frozen container go on. A container that died meanwhile is left alone."""

    def request() -> None:
        try:
            call(api, "POST", f"/containers/{container}/unpause", FREEZE_SECONDS)
        except NotFound:
            return
        except APIError:
            if api.inspect_container(container)["State"]["Running"]:
                raise

    despite_late_events(request)


def despite_late_events(request: Callable[[], Answer]) -> Answer:
    """Make a request to the engine, again while late events or busy processes may cause a refusal; return its answer.

    Raises `APIError` for any other refusal, and for the same one after 20 seconds.
    """
    until = time.monotonic() + LATE_SECONDS
    while True:
        try:
            return request()
        except APIError as error:
            if not (_is_stale(error) or BUSY in explanation(error)) or time.monotonic() > until:
                raise
        time.sleep(PAUSE_SECONDS)


def _is_stale(error: APIError) -> bool:
    message = explanation(error).lower()
    return any(words in message for words in STALE)
