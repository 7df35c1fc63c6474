"""MLflow's user interface as `job=ui` serves it, on a port that is free."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import requests

from runner.resources import ROOT
from tests.support.waiting import PATIENCE_SECONDS


@contextmanager
def mlflow_ui(words: Sequence[str], folder: Path) -> Iterator[str]:
    """Run this command in a folder, with a port of its own, until the context ends. Yield the address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(
            [*words, f"job.port={port}"],
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 2 * PATIENCE_SECONDS
        while not _answers(url):
            assert time.monotonic() < deadline, (folder / "server.log").read_text()
            time.sleep(0.3)
        yield url
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


def _answers(url: str) -> bool:
    try:
        return requests.get(f"{url}/health", timeout=5).ok
    except requests.ConnectionError:
        return False
