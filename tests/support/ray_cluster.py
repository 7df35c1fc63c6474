"""A Ray cluster of several nodes on this machine, whose processes can be killed one by one."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

from tests.support.networks import Network
from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 90.0
RAY = (
    *(sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats"),
    "--include-log-monitor=false",  # nobody reads what it would send: the executor asks for no logs
)
TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0123456789abcdef" * 4}
"""Variables of every process that may use the cluster. Ray reads them once in a process."""


class Cluster:
    """A head without room for trials, and nodes that are added to it. A context manager."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        """`host` is the address of the head and the driver."""
        self._folder = tempfile.TemporaryDirectory(prefix="ray")
        self._nodes: list[subprocess.Popen[bytes]] = []
        self.host, self.address = host, f"{host}:{_free_port()}"

    def __enter__(self) -> Self:
        port = self.address.rpartition(":")[2]
        options = ("--include-dashboard=false", f"--temp-dir={self._folder.name}")
        self._start("--head", f"--port={port}", f"--node-ip-address={self.host}", "--num-cpus=0", *options)
        return self

    def __exit__(self, *exc: object) -> None:
        for node in reversed(self._nodes):
            self.kill(node)
        with suppress(OSError):
            self._folder.cleanup()

    def node(self, width: int, network: Network | None = None, **environment: str) -> subprocess.Popen[bytes]:
        """Add a node that takes so many trials at a time. Its processes have these variables besides."""
        resources = f'--resources={{"docker": {width}}}'
        ip = f"--node-ip-address={network.address if network else '127.0.0.1'}"
        words = f"--address={self.address}", ip, "--num-cpus=0", resources
        return self._start(*words, within=network.command if network else (), **environment)

    def kill(self, node: subprocess.Popen[bytes], number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to all processes of a node. They are one session."""
        for pid in _session(node.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        if number == signal.SIGKILL:
            node.wait()

    def raylet(self, node: subprocess.Popen[bytes]) -> int:
        """Return the process that is the node for Ray."""
        return next(pid for pid in _session(node.pid) if "raylet/raylet" in _command(pid))

    def crews(self, node: subprocess.Popen[bytes] | None = None) -> list[int]:
        """Return the processes of crews, of one node or of all."""
        nodes = [node] if node else self._nodes
        return [pid for pid in _session(*(one.pid for one in nodes)) if "ray::NodeCrew" in _command(pid)]

    def cpu_seconds(self) -> float:
        """Return the seconds of processors that all processes of the cluster have used so far."""
        ticks = sum(_ticks(pid) for pid in _session(*(node.pid for node in self._nodes)))
        return ticks / os.sysconf("SC_CLK_TCK")

    def _start(self, *words: str, within: tuple[str, ...] = (), **more: str) -> subprocess.Popen[bytes]:
        usual = {"PYTHONPATH": f"{ROOT}", "RAY_memory_monitor_refresh_ms": "0"}
        environment = os.environ | TOKEN | usual | more
        log = Path(self._folder.name) / f"start{len(self._nodes)}.log"
        with log.open("wb") as output:
            node = subprocess.Popen(
                [*within, *RAY, *words],
                stdout=output,
                stderr=output,
                env=environment,
                start_new_session=True,
                cwd=ROOT,
            )
        self._nodes.append(node)
        began = time.monotonic()
        until(lambda: b"--block" in log.read_bytes() or node.poll() is not None, START_SECONDS)
        assert node.poll() is None, log.read_text()
        assert time.monotonic() - began < START_SECONDS
        return node


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _session(*leaders: int) -> list[int]:
    """Return the processes of the sessions with these leaders, the sessions in this order."""
    found: dict[int, list[int]] = {leader: [] for leader in leaders}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):
            leader = int((folder / "stat").read_text().rpartition(")")[2].split()[3])
            if leader in found:
                found[leader].append(int(folder.name))
    return [pid for leader in leaders for pid in found[leader]]


def _ticks(pid: int) -> int:
    with suppress(OSError, ValueError):
        user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return int(user) + int(system)
    return 0


def _command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""
