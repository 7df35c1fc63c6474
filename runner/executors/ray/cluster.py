"""Reach a Ray cluster, or start a local one for the time of a sweep."""

from __future__ import annotations

import logging
import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from runner.errors import ConfigError

RESOURCE = "docker"
"""Custom resource of Ray by which a node says how many trials it takes at a time."""
LISTEN_SECONDS = 10.0
"""Longest wait for a cluster's port to answer."""
GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""Beginning of a connection of HTTP/2, which Ray's servers speak: the preface and an empty frame of settings."""
FRAME_BYTES, SETTINGS = 9, 4
"""Length of a frame's head, and the kind of the frame with which a server of HTTP/2 begins."""
CONNECT_SECONDS = 90.0
"""Longest wait for a cluster to answer, or for a local Ray to start on a busy machine."""
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # reports to Ray's makers
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # a warning of what a later version will do
    "RAY_DISABLE_FAILURE_SIGNAL_HANDLER": "1",  # prints a stack at SIGTERM, which is how a sweep is stopped
}
_START = (
    "Start a cluster with `ray start --head`, or leave the address out for this machine alone. With token "
    "authentication, RAY_AUTH_MODE=token and RAY_AUTH_TOKEN are to be set here as well."
)


@contextmanager
def connected(address: str | None, workers: int) -> Iterator[None]:
    """Connect this process to a cluster; without an address, to a local one that ends with the sweep.

    `workers` is the number of trials that this machine offers to a local one. Raises `ConfigError` if there is no
    cluster.
    """
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    if address is None:
        # A local Ray listens on an address of this machine, which sandboxes with an open network reach. Ray reads the
        # token once in a process.
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    try:
        import ray  # noqa: F401, PLC0415 - an extra, which only this executor needs
    except ImportError as error:
        raise ConfigError(
            "executor=ray needs Ray, which is not installed: pip install 'assay[ray]', on this machine and on every "
            "node."
        ) from error
    given: dict[str, Any] = {
        "address": address or "local",
        "log_to_driver": False,
        "logging_level": logging.CRITICAL,
    }
    if address is None:
        given |= {"include_dashboard": False, "num_cpus": 0, "resources": {RESOURCE: workers}}
    connection = _Connection(given)
    try:
        connection.check()
        yield
    finally:
        connection.end()


class _Connection(Thread):
    """The thread in which this process is connected to a cluster.

    In the main thread, Ray would take the place of our handlers of signals. The thread lasts as long as the connection,
    because the kernel ends a local Ray together with the thread that started it.
    """

    def __init__(self, given: dict[str, Any]) -> None:
        super().__init__(name="ray", daemon=True)
        self._given = given
        self._connected, self._over = Event(), Event()
        self._failure: Exception | None = RuntimeError("it did not say why")

    def run(self) -> None:
        """Connect, and wait for the end."""
        import ray  # noqa: PLC0415 - as above
        from ray.exceptions import RayError  # noqa: PLC0415 - as above

        try:
            ray.init(**self._given)
            self._failure = None
        except (AssertionError, OSError, RayError, RuntimeError, ValueError) as error:
            self._failure = error
        finally:
            self._connected.set()
        self._over.wait()
        ray.shutdown()

    def check(self) -> None:
        """Wait for the connection. Raises `ConfigError` if there is none."""
        address = self._given["address"]
        if address != "local":
            _check_address(address)
        self.start()
        if not self._connected.wait(CONNECT_SECONDS):
            raise ConfigError(
                f"executor.address={address}: what listens there does not answer as a Ray cluster. {_START}"
            )
        if self._failure:
            reason = str(self._failure).strip().partition("\n")[0][:400]
            raise ConfigError(
                f"executor.address={address}: Ray cannot be used ({type(self._failure).__name__}: {reason}). {_START}"
            ) from self._failure

    def end(self) -> None:
        """Disconnect, and end a local Ray."""
        self._over.set()
        if self._connected.is_set():  # else it tries to connect for minutes, and ends with this process
            self.join()


def _check_address(address: str) -> None:
    """Raise `ConfigError` if no cluster listens at an address HOST:PORT. Ray itself would try for minutes."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit():
        raise ConfigError(
            f"executor.address={address}: HOST:PORT is needed, as `ray start --head` prints it."
        )
    try:
        with socket.create_connection((host, int(port)), LISTEN_SECONDS) as connection:
            speaks = "RAY_USE_TLS" in os.environ or _speaks_http2(connection)
    except (OSError, OverflowError) as error:
        raise ConfigError(f"executor.address={address}: nothing answers there ({error}). {_START}") from error
    if not speaks:
        raise ConfigError(f"executor.address={address}: what listens there is no Ray cluster. {_START}")


def _speaks_http2(connection: socket.socket) -> bool:
    """Return whether a server speaks HTTP/2 without TLS, judged by its first bytes. Raises `OSError`."""
    connection.sendall(GREETING)
    head = connection.recv(FRAME_BYTES, socket.MSG_WAITALL)
    return len(head) == FRAME_BYTES and head[3] == SETTINGS
