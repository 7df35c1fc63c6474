"""An engine on which sandboxes do not hold is refused at the door, with the reason."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingUnixStreamServer
from threading import Thread
from typing import Any

import pytest

from runner.sandbox.docker import engine
from runner.sandbox.docker.engine_kinds import UnfitEngineError
from tests.support.sweeps import Cli

PODMEN = ("4.3.1", "5.4.2")
"""Versions of Podman that were tried: those of Debian 12 and 13."""
DOCKER = {"Components": [{"Name": "Engine", "Version": "28.5.1"}], "Version": "28.5.1", "ApiVersion": "1.51"}
SECCOMP = "name=seccomp,profile=builtin"


def podman(version: str) -> dict[str, Any]:
    """Return what a Podman answers to Docker's question for versions, shortened."""
    parts = [{"Name": "Podman Engine", "Version": version}, {"Name": "Conmon", "Version": "conmon version 2"}]
    return {"Components": parts, "Version": version, "ApiVersion": "1.41"}


@contextmanager
def answering(version: dict[str, Any], options: list[str]) -> Iterator[str]:
    """Serve the two answers by which an engine is known, over a socket. Yields its address."""

    class Engine(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = version if self.path.endswith("/version") else {"SecurityOptions": options}
            content = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def address_string(self) -> str:
            return "socket"

        def log_message(self, *_: object) -> None:
            pass

    with tempfile.TemporaryDirectory(prefix="assay-") as folder:  # a socket's path is limited to 108 bytes
        path = Path(folder) / "s"
        with ThreadingUnixStreamServer(str(path), Engine) as server:
            thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
            thread.start()
            try:
                yield f"unix://{path}"
            finally:
                server.shutdown()
                thread.join()


@pytest.mark.parametrize("version", PODMEN)
def test_podman_was_taken_for_docker(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    with answering(podman(version), ["name=seccomp,profile=default"]) as address:
        monkeypatch.setenv("DOCKER_HOST", address)
        with pytest.raises(
            UnfitEngineError,
            match=rf"^Podman {re.escape(version)} answers at {address}, and .* planted reward",
        ):
            engine.ensure(pytest.fail)


def test_an_option_for_podman_is_refused_with_the_reason(cli: Cli) -> None:
    ended = cli("agent=oracle", "sandbox=podman")
    assert ended.code == 2
    assert "unknown sandbox 'podman'. Podman is refused: on it," in ended.err
    assert "planted reward" in ended.err


def test_a_rootless_engine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(DOCKER, [SECCOMP, "name=rootless", "name=cgroupns"]) as address:
        monkeypatch.setenv("DOCKER_HOST", address)
        with pytest.raises(
            UnfitEngineError, match=rf"^The Docker Engine at {address} is rootless, and .* as root"
        ):
            engine.connect()


def test_an_engine_of_root_with_control_groups_of_version_2_is_taken() -> None:
    with answering(DOCKER, [SECCOMP, "name=cgroupns"]) as address:
        assert engine.connect(address).version()["Version"] == "28.5.1"


@pytest.mark.parametrize("address", ["ssh://somebody@there", "tcp://10.0.0.1:2375", "tcp://127.0.0.1:2376"])
def test_an_engine_elsewhere_is_refused_before_it_is_asked(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("DOCKER_HOST", address)
    ended = cli("agent=oracle")
    assert ended.code == 3
    assert f"The engine at {address} is reached over a network" in ended.err
    assert "executor=ray" in ended.err
