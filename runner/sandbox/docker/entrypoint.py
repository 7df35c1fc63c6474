"""The ENTRYPOINT of a task's image, run as Harbor runs it: with a command that sleeps.

Harbor leaves the ENTRYPOINT as it is and replaces the command, so a script that starts a service and ends in
`exec "$@"` has its service running while the agent works. There it is the container's first process. Here the first
process is ours, and the ENTRYPOINT is run beside it before anything else: one that ends takes no container with it, and
what it printed says why.
"""

from __future__ import annotations

import time
from contextlib import closing
from threading import Thread
from typing import NamedTuple

from docker import APIClient

from runner.sandbox.command_output import Output, Stop, follow
from runner.sandbox.docker.exec_stream import Attached

REACHED = "assay: the command of the entrypoint runs"
COMMAND = ("sh", "-c", f"echo '{REACHED}'; sleep infinity")
"""What the ENTRYPOINT is given to run. Harbor's is the same without the `echo`, by which we know that it is ready."""
READY_SECONDS = 5.0
"""How long an ENTRYPOINT is waited for that neither runs its command nor ends: it may be a server itself."""
OUTPUT_BYTES = 1 << 16
SHOWN = 1000
"""Characters of its output that an error shows."""
SILENCE_SECONDS = 60.0
"""Longest wait for what it prints next, after which it is waited for again."""
PAUSE_SECONDS = 0.02
"""Between two questions whether it still runs."""


class Entrypoint(NamedTuple):
    """An image's ENTRYPOINT, and how the image says to run it."""

    argv: tuple[str, ...]
    user: str
    """Empty means root."""
    workdir: str


def run(api: APIClient, container: str, entrypoint: Entrypoint, user: str) -> str | None:
    """Start it in a running container; returns why it has ended, or None while it runs.

    It is ready when it has reached its command. One that goes on without doing so is taken to be ready after
    `READY_SECONDS`.
    """
    until = time.monotonic() + READY_SECONDS
    output = Output(OUTPUT_BYTES)
    argv = [*entrypoint.argv, *COMMAND]
    made = api.exec_create(container, argv, user=user, workdir=entrypoint.workdir)["Id"]

    def reason() -> Stop | None:
        return "deadline" if REACHED in output.stdout or time.monotonic() >= until else None

    stream = Attached(api, made)
    if follow(stream, output, reason) is not None:
        Thread(target=_drain, args=(stream,), daemon=True).start()
        return None
    stream.close()
    while (state := api.exec_inspect(made))["Running"] and time.monotonic() < until:  # it closed its output
        time.sleep(PAUSE_SECONDS)
    if state["Running"]:
        return None
    printed = (output.stdout + output.stderr).strip()[-SHOWN:]
    return (
        f"its ENTRYPOINT {list(entrypoint.argv)} ended with exit code {state['ExitCode']} and did not run the command "
        f'that it was given (a script does so by `exec "$@"`); a container of it would end there: {printed}'
    )


def _drain(stream: Attached) -> None:
    """Read what it prints until its container is gone: a stream that nobody reads holds up the container's end."""
    with closing(stream):
        while stream.receive(SILENCE_SECONDS) != b"":
            pass
