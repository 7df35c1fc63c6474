"""A command of a test's own, as root, in a container of ours."""

from __future__ import annotations

from contextlib import closing

from docker import APIClient

from runner.sandbox.command_output import Output
from runner.sandbox.docker.command_stream import Attached, follow


def run_inside(api: APIClient, container: str, *argv: str) -> str:
    """Run it to its end; what it printed on both streams. The client's own way can lose some: see `Attached`."""
    run = api.exec_create(container, list(argv), user="0")["Id"]
    output = Output(1 << 20)
    with closing(Attached(api, run)) as stream:
        follow(stream, output, lambda: None)
    return output.stdout + output.stderr
