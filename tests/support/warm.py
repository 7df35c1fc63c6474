"""Run `python -m runner WORD...` in a fork of a process that has imported the modules of commands.

A command is a process of its own with its own folder, environment and streams, but takes none of the two seconds of
processor time that the imports need. This file is the server (`python -m tests.support.warm SOCKET`), the client that
a script calls in place of `python` (`python -IS warm.py SOCKET -m runner WORD...`), and one for tests (`Process`).
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn, Self

MODULES = (
    *("runner.cli.compose", "runner.cli.config", "runner.report.page", "runner.report.projections"),
    *(f"runner.jobs.{name}" for name in ("compare", "report", "sensitivity", "sweep", "track")),
    *(
        "matplotlib.backends.backend_pdf",
        "matplotlib.backends.backend_svg",
        "hydra.main",
        "tests.support.no_page",
    ),
)
LONGEST_BYTES = 1 << 20
"""Longest command with its environment."""
SOCKET, CLIENT = "WARM_SOCKET", "WARM_CLIENT"
"""Variables of those who ask: the server's socket, and this file."""
NO_PAGE = "WARM_WITHOUT_PAGE"
"""Variable of a command that leaves out the page of its sweep, unless it is empty."""
READY = b"ready\n"
ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def server() -> Iterator[Path]:
    """Run a server, and yield its socket."""
    with tempfile.TemporaryDirectory(prefix="assay-") as folder:
        place = Path(folder) / "s"
        with subprocess.Popen(
            [sys.executable, "-m", "tests.support.warm", str(place)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as process:
            assert process.stdout
            assert process.stdout.readline() == READY
            yield place


def serve(path: str) -> None:
    """Fork a process for each command that comes, until standard input ends: with the process that started this one."""
    for name in MODULES:
        import_module(name)
    import_module("runner.gateway.provider").load_litellm()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the processes that answer
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.bind(path)
        server.listen()
        print(READY.decode(), end="", flush=True)
        while sys.stdin not in select.select([server, sys.stdin], [], [])[0]:
            connection, _ = server.accept()
            if os.fork() == 0:
                server.close()
                _answer(connection)
            connection.close()


def _answer(connection: socket.socket) -> NoReturn:
    """Carry out a command in another fork, whose end is as that of any program; send its id, and its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    message, streams, _, _ = socket.recv_fds(connection, LONGEST_BYTES, 3)
    child = os.fork()
    if child == 0:
        connection.close()
        _become(json.loads(message), streams)
    connection.send(str(child).encode())
    _, status = os.waitpid(child, 0)
    with suppress(BrokenPipeError):  # who asked is gone
        connection.send(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _become(command: dict[str, Any], streams: list[int]) -> NoReturn:
    """Be `python -m runner` with these words, this folder, environment and streams."""
    for at, stream in enumerate(streams):
        os.dup2(stream, at)
        os.close(stream)
    os.chdir(command["folder"])
    os.environ.clear()
    os.environ.update(command["environment"])
    sys.path.insert(0, command["folder"])
    sys.argv = ["runner", *command["words"]]
    without_page = import_module("tests.support.no_page").without_page  # a client has no such module
    with without_page() if os.environ.pop(NO_PAGE, "") else nullcontext():
        runpy.run_module("runner", run_name="__main__", alter_sys=True)
    sys.exit(0)


def _asked(
    path: str, words: Sequence[str], folder: Path, environment: Mapping[str, str], streams: Sequence[int]
) -> tuple[socket.socket, int]:
    """Send a command to the server. Return the connection, on which its exit code will come, and its process."""
    command = {"words": list(words), "folder": str(folder), "environment": dict(environment)}
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(path)
    socket.send_fds(connection, [json.dumps(command).encode()], list(streams))
    return connection, int(connection.recv(16))


def _ask(path: str, option: str, module: str, *words: str) -> int:
    """Have a command carried out with the streams of this process, and return its exit code."""
    assert (option, module) == ("-m", "runner"), "only this module is warm"
    connection, _ = _asked(path, words, Path.cwd(), os.environ, (0, 1, 2))
    with connection:
        code = int(connection.recv(16) or 1)
    return code if code >= 0 else 128 - code


class Process:
    """`python -m runner WORD...` in a process of its own, with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, words: Sequence[str], cwd: Path, env: Mapping[str, str]) -> None:
        """Start it in a folder and with an environment, which names the server's socket."""
        self.returncode: int | None = None
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - as long as this object
        streams = (self._output.fileno(),) * 2
        with Path(os.devnull).open("rb") as nothing:
            self._connection, self.pid = _asked(env[SOCKET], words, cwd, env, (nothing.fileno(), *streams))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.wait(None)
        self._connection.close()
        self._output.close()

    @property
    def said(self) -> str:
        """What it has written to its output and errors so far."""
        size = os.fstat(self._output.fileno()).st_size
        return os.pread(self._output.fileno(), size, 0).decode()

    def poll(self) -> int | None:
        """Return the exit code; None while it runs."""
        if self.returncode is None and select.select([self._connection], [], [], 0)[0]:
            self.returncode = int(self._connection.recv(16))
        return self.returncode

    def wait(self, timeout: float | None) -> int:
        """Wait so many seconds for its end, and return the exit code. Raises `subprocess.TimeoutExpired`."""
        if self.returncode is None:
            select.select([self._connection], [], [], timeout)
        if (code := self.poll()) is None:
            raise subprocess.TimeoutExpired("runner", timeout or 0)
        return code

    def communicate(self, timeout: float | None = None) -> tuple[str, None]:
        """Wait as `wait` does, and return all that it has written."""
        self.wait(timeout)
        return self.said, None

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it, unless it has ended."""
        self.send_signal(signal.SIGKILL)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        serve(sys.argv[1])
    else:
        sys.exit(_ask(*sys.argv[1:]))
