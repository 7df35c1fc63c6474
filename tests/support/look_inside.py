"""Run a test's own command as root in one of our containers."""

from __future__ import annotations

from contextlib import closing

from docker import APIClient

from runner.sandbox.command_output import Output
from runner.sandbox.docker.command_stream import Attached, follow


def run_inside(api: APIClient, container: str, *argv: str) -> str:
    """Run a command to its end; return its output and error. The client's own method can lose some: see `Attached`."""
    run = api.exec_create(container, list(argv), user="0")["Id"]
    output = Output(1 << 20)
    with closing(Attached(api, run)) as stream:
        follow(stream, output, lambda: None)
    return output.stdout + output.stderr
