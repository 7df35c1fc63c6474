"""A second Docker Engine on this machine, which can be restarted. Needs root, and never touches the first."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from pathlib import Path
from typing import Self

import docker

from runner.sandbox.docker import base_image
from tests.support.waiting import until

START_SECONDS = 120.0


class SecondEngine:
    """An engine with the base image, and without a network. A context manager."""

    def __init__(self, state_megabytes: int | None = None) -> None:
        """With `state_megabytes`, the engine's own state, without images and containers, is on a disk of this size."""
        self._state_megabytes = state_megabytes
        self._folder = tempfile.TemporaryDirectory(prefix="engine")
        self._root = Path(self._folder.name)
        self.state = self._root / "exec"
        self.host = f"unix://{self._root}/docker.sock"
        self._daemon: subprocess.Popen[bytes]

    def __enter__(self) -> Self:
        try:
            self._prepare()
        except BaseException:
            self._stop()
            raise
        return self

    def _prepare(self) -> None:
        self.state.mkdir()
        if self._state_megabytes:
            size = f"size={self._state_megabytes}m"
            subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(self.state)], check=True)
        self._start()
        with contextlib.closing(docker.from_env()) as first, contextlib.closing(self.client()) as second:
            image = self._root / "base.tar"
            with image.open("wb") as file:
                file.writelines(first.images.get(base_image.tag()).save(named=base_image.tag()))
            with image.open("rb") as file:
                second.images.load(file)
            image.unlink()

    def __exit__(self, *exc: object) -> None:
        with contextlib.closing(self.client()) as client:
            for container in client.containers.list(all=True):
                container.remove(force=True)
        self._stop()
        self._unmount()
        with contextlib.suppress(OSError):  # what an overlay still holds
            self._folder.cleanup()

    def _unmount(self) -> None:
        """Release what the engine has mounted below its folder and leaves when it ends, such as a network namespace."""
        mounted = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
        for target in sorted((path for path in mounted if path.startswith(f"{self._root}/")), reverse=True):
            subprocess.run(["umount", "--lazy", target], check=True)

    def client(self) -> docker.DockerClient:
        return docker.DockerClient(self.host)

    def restart(self) -> None:
        """Stop the engine, and with it all of its containers, and start it again."""
        self._stop()
        self._start()

    def _start(self) -> None:
        root = self._root
        # In its own network: a daemon without a bridge removes docker0, which the machine's own engine uses.
        words = (
            *(
                "unshare",
                "--net",
                "dockerd",
                f"--data-root={root}/data",
                f"--exec-root={self.state}",
                f"--pidfile={root}/pid",
            ),
            *(f"--host={self.host}", "--bridge=none", "--iptables=false", "--ip-forward=false"),
        )
        with (root / "log").open("ab") as log:
            self._daemon = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True)
        until(self._answers, START_SECONDS)

    def _answers(self) -> bool:
        assert self._daemon.poll() is None, (self._root / "log").read_text()[-2000:]
        asked = subprocess.run(["docker", f"--host={self.host}", "version"], capture_output=True, check=False)
        return asked.returncode == 0  # a client of Python would leave sockets open where nobody answers

    def _stop(self) -> None:
        self._daemon.terminate()
        self._daemon.wait(START_SECONDS)
