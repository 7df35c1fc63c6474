"""The right to write to an MLflow server, which has no locks of its own.

While a command writes, it keeps a registered model of a random name there. A command that finds the model of another
one waits. Models of commands that died are silent, and are removed. Times are compared with nothing but themselves, so
no clock need be right.
"""

from __future__ import annotations

import os
import random
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import TYPE_CHECKING

from runner.heavy_imports import uncollected

if TYPE_CHECKING:
    from mlflow import MlflowClient

PREFIX = "assay-writes-"
"""Beginning of the models' names."""
RENEW_SECONDS = 5.0
"""Interval at which a command that writes changes its model."""
SILENT_SECONDS = 30.0
"""Time without a change after which a command is taken for dead."""
LOOK_SECONDS = 0.5
"""Least time between two looks at a server that is not free. Up to as much is added, at random."""


@contextmanager
def server_lock(server: str) -> Iterator[None]:
    """Wait until no other command writes to this server, and keep others waiting within the context.

    A server that lets nobody register models has no lock, which is printed. Raises MLflow's errors.
    """
    with uncollected():
        from mlflow import MlflowClient  # noqa: PLC0415 - two seconds, and only to log
        from mlflow.exceptions import RestException  # noqa: PLC0415 - as above

    own, can_lock = _Presence(MlflowClient(tracking_uri=server, registry_uri=server)), True
    try:
        own.wait_until_alone()
    except RestException as error:  # the server has answered, so the network is not the cause
        reason = " ".join(str(error).split())[:200]
        print(f"MLflow: no lock, because this server registers no models ({reason})", flush=True)
        can_lock = False
    try:
        yield
    finally:
        if can_lock:
            own.end()


class _Presence:
    """The model of this command on a server, and what it has seen of others'."""

    def __init__(self, client: MlflowClient) -> None:
        self._client, self._name = client, f"{PREFIX}{secrets.token_hex(8)}"
        self._seen: dict[str, tuple[int, float]] = {}
        """Name of a model -> its last change, and the time at which it was first seen so."""
        self._over = Event()
        self._renewing = Thread(target=self._renew, name="mlflow lock", daemon=True)

    def wait_until_alone(self) -> None:
        """Register the model once there is no other. Of two that find each other, both withdraw for a random time."""
        is_told = False
        while True:
            if not self._others():
                self._client.create_registered_model(self._name, description=self._description(0))
                if not self._others():
                    self._renewing.start()
                    return
                self._client.delete_registered_model(self._name)
            if not is_told:
                print("MLflow: another command writes to this server; waiting for its end", flush=True)
                is_told = True
            time.sleep(LOOK_SECONDS * (1 + random.random()))  # noqa: S311 - no secret

    def end(self) -> None:
        """Remove the model. Others do so if the server does not answer now."""
        from mlflow.exceptions import MlflowException  # noqa: PLC0415 - as above

        self._over.set()
        self._renewing.join()
        with suppress(MlflowException):
            self._client.delete_registered_model(self._name)

    def _others(self) -> bool:
        """Return whether another command is writing. Remove the models of those that are silent."""
        from mlflow.exceptions import RestException  # noqa: PLC0415 - as above

        now, found = time.monotonic(), False
        for model in self._client.search_registered_models(f"name LIKE '{PREFIX}%'", max_results=100):
            change = model.last_updated_timestamp
            known, since = self._seen.get(model.name, (None, now))
            if model.name == self._name:
                continue
            if known != change:
                self._seen[model.name] = change, now
            if known == change and now - since > SILENT_SECONDS:
                with suppress(RestException):  # another command has removed it
                    self._client.delete_registered_model(model.name)
            else:
                found = True
        return found

    def _renew(self) -> None:
        from mlflow.exceptions import MlflowException  # noqa: PLC0415 - as above

        times = 0
        while not self._over.wait(RENEW_SECONDS):
            times += 1
            with suppress(MlflowException):
                self._client.update_registered_model(self._name, self._description(times))

    def _description(self, times: int) -> str:
        """Return a text for people who see the model."""
        return (
            f"Assay, process {os.getpid()} on {socket.gethostname()}, writes runs here, and said so {times + 1} "
            "times. It removes this model at its end."
        )
