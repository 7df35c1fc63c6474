"""The ENTRYPOINT of a task's image, run as Harbor runs it: with a command that sleeps.

Harbor keeps the ENTRYPOINT and replaces the command. A script that starts a service and ends in `exec "$@"` thus has
its service running while the agent works. In Harbor it is the container's first process. Here the first process is
ours, and the ENTRYPOINT runs beside it before anything else, so its end does not end the container, and its output says
why it ended.
"""

from __future__ import annotations

import time
from contextlib import closing
from threading import Thread
from typing import NamedTuple

from docker import APIClient

from runner.sandbox.command_output import Output, Stop
from runner.sandbox.docker.command_stream import Attached, exit_code, follow
from runner.sandbox.docker.freezing import despite_late_events

REACHED = "assay: the command of the entrypoint runs"
COMMAND = ("sh", "-c", f"echo '{REACHED}'; sleep infinity")
"""Command that the ENTRYPOINT is given. Harbor's lacks the `echo`, which tells us that the ENTRYPOINT is ready."""
READY_SECONDS = 5.0
"""Longest wait, in seconds, for an ENTRYPOINT that neither runs its command nor ends: it may be a server itself."""
OUTPUT_BYTES = 1 << 16
ERROR_CHARACTERS = 1000
"""Number of characters of the ENTRYPOINT's output in an error."""
SILENCE_SECONDS = 60.0
"""Longest wait for further output, repeated until the output ends."""


class Entrypoint(NamedTuple):
    """An image's ENTRYPOINT, and the user and folder that the image sets for it."""

    argv: tuple[str, ...]
    user: str
    """User who runs the ENTRYPOINT; empty means root."""
    workdir: str


def run(api: APIClient, container: str, entrypoint: Entrypoint, user: str) -> str | None:
    """Start the ENTRYPOINT in a running container. Return why it has ended, or None while it runs.

    It is ready once it has run its command. If it keeps running without doing so, it counts as ready after
    `READY_SECONDS`.
    """
    until = time.monotonic() + READY_SECONDS
    output = Output(OUTPUT_BYTES)
    argv = [*entrypoint.argv, *COMMAND]
    command = despite_late_events(
        lambda: api.exec_create(container, argv, user=user, workdir=entrypoint.workdir)
    )["Id"]

    def reason() -> Stop | None:
        return "deadline" if REACHED in output.stdout or time.monotonic() >= until else None

    stream = Attached(api, command)
    if follow(stream, output, reason) is not None:
        Thread(target=_drain, args=(stream,), daemon=True).start()
        return None
    stream.close()  # the command has closed its output
    code = exit_code(api, command, reason)
    if not isinstance(code, int):
        return None
    printed = (output.stdout + output.stderr).strip()[-ERROR_CHARACTERS:]
    return (
        f"its ENTRYPOINT {list(entrypoint.argv)} ended with exit code {code} and did not run the command "
        f'that it was given (a script does so by `exec "$@"`); a container of it would end there: {printed}'
    )


def _drain(stream: Attached) -> None:
    """Read the output until the container is gone: an unread stream holds up the container's end."""
    with closing(stream):
        while stream.receive(SILENCE_SECONDS) != b"":
            pass
