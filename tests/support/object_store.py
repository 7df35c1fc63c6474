"""A server that speaks S3's protocol, in an environment of its own, and lines to it that can be cut."""

from __future__ import annotations

import math
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.request import Request, urlopen
from uuid import uuid4

from tests.support.waiting import once, until

MOTO = "moto[server]==5.2.5"
SERVE = """
import io
import sys
import threading

from moto.server import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import run_simple

dispatch, one_writer = DomainDispatcherApplication(create_backend_app), threading.Lock()


def serve(request, respond):
    if request["REQUEST_METHOD"] in ("GET", "HEAD"):
        return dispatch(request, respond)
    body = request["wsgi.input"].read(int(request.get("CONTENT_LENGTH") or 0))
    request["wsgi.input"] = io.BytesIO(body)
    with one_writer:
        return dispatch(request, respond)


run_simple("127.0.0.1", int(sys.argv[1]), serve, threaded=True, request_handler=MotoRequestHandler)
"""
"""Moto's own command, but one write at a time: Moto compares a condition and writes in two steps, where S3 has one."""
UV = Path(sys.executable).with_name("uv")
_CHUNK = 1 << 16


class ServerMissingError(Exception):
    """The server cannot be installed here."""


class Line:
    """A way to a server on this machine, which a test can cut."""

    def __init__(self, port: int) -> None:
        self._to, self._is_cut = port, False
        self._left: float = math.inf
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self.endpoint = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Break what is under way, and refuse what comes."""
        self._is_cut = True
        for end in list(self._open):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut_after(self, size: int) -> None:
        """Cut the line once it has carried so many bytes."""
        self._left = size

    def mend(self) -> None:
        """Let requests through again."""
        self._is_cut, self._left = False, math.inf

    def close(self) -> None:
        """Cut the line for ever."""
        self.cut()
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                if self._is_cut:
                    near.close()
                    continue
                far = socket.create_connection(("127.0.0.1", self._to))
                self._open |= {near, far}
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while part := source.recv(_CHUNK):
                self._left -= len(part)
                if self._left < 0:
                    self.cut()
                target.sendall(part)
        for end in (source, target):
            self._open.discard(end)
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


class ObjectServer:
    """The server under way."""

    def __init__(self, port: int) -> None:
        self.port, self.endpoint = port, f"http://127.0.0.1:{port}"

    def bucket(self) -> str:
        """Make a bucket and return an address in it."""
        name = f"records-{uuid4().hex[:8]}"
        with urlopen(Request(f"{self.endpoint}/{name}", method="PUT")):
            return f"s3://{name}/team/quick"

    @contextmanager
    def line(self) -> Iterator[Line]:
        """Yield a line to the server."""
        line = Line(self.port)
        try:
            yield line
        finally:
            line.close()

    @contextmanager
    def authenticating(self) -> Iterator[None]:
        """Refuse credentials that the server does not know, which are all."""
        self._authenticate("0")
        try:
            yield
        finally:
            self._authenticate("inf")

    def _authenticate(self, after: str) -> None:
        request = Request(
            f"{self.endpoint}/moto-api/reset-auth", after.encode(), {"Content-Type": "text/plain"}
        )
        with urlopen(request):
            pass


def environment(endpoint: str) -> dict[str, str]:
    """Return the variables by which this server is reached."""
    return {
        "AWS_ENDPOINT": endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "an-account",
        "AWS_SECRET_ACCESS_KEY": "a-secret-of-the-store",
        "AWS_REGION": "us-east-1",
    }


@contextmanager
def object_server(common: Path, log: Path) -> Iterator[ObjectServer]:
    """Start the server. Its environment is made once, in `common`. Raises `ServerMissingError`."""
    python = once(common / "moto", lambda: _installed(common / "moto-venv"))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [python, "-c", SERVE, str(port)]
    with log.open("wb") as said, subprocess.Popen(command, stdout=said, stderr=said) as process:
        try:
            until(lambda: _answers(port) or process.poll() is not None)
            yield ObjectServer(port)
        finally:
            process.kill()


def _installed(place: Path) -> str:
    # uv reads neither pip's configuration nor the system's certificates by itself: as .ci/venv does.
    pip = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"],
        capture_output=True,
        text=True,
        check=False,
    )
    index = os.environ.get("PIP_INDEX_URL") or pip.stdout.strip()
    where = ["--default-index", index] if index else []
    for words in (
        ["venv", "--quiet", "--python", sys.executable, str(place)],
        ["pip", "install", "--quiet", *where, "--python", str(place / "bin/python"), MOTO],
    ):
        ended = subprocess.run(
            [UV, *words],
            env=os.environ | {"UV_SYSTEM_CERTS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        if ended.returncode:
            raise ServerMissingError(f"{MOTO} cannot be installed: {ended.stderr.strip()[-500:]}")
    return str(place / "bin/python")


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False
