"""`sandbox=docker`: a container for each rollout and each verification, on the Docker Engine of this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from threading import Lock
from typing import TYPE_CHECKING, Literal

from pydantic import PrivateAttr

from runner.protocols import Sandbox
from runner.records import BundleRecipe, Environment, Image, SandboxSpec
from runner.sandbox.limits import Limits

if TYPE_CHECKING:
    from runner.sandbox.host import Host

_CONNECTING = Lock()


class DockerSandboxes(Limits):
    """Provider of containers. See `protocols.SandboxProvider`."""

    network: Literal["gateway", "open", "task"] = "task"
    """task: open where the task declares a public network. gateway: none but the model's socket. open: all."""
    _host: Host | None = PrivateAttr(default=None)

    def image(self, environment: Environment) -> Image:
        """See `protocols.SandboxProvider`. An environment that is built must carry its digest, which tags the image."""
        return self._connected().images.find(environment)

    def open(self, spec: SandboxSpec) -> AbstractContextManager[Sandbox]:
        """See `protocols.SandboxProvider`."""
        return self._connected().open(spec, self)

    def prepare(self, bundles: Sequence[BundleRecipe], say: Callable[[str], None]) -> dict[str, str]:
        """See `protocols.SandboxProvider`."""
        return self._connected().prepare(bundles, say)

    def reap(self) -> int:
        """See `protocols.SandboxProvider`."""
        return self._connected().reap()

    def _connected(self) -> Host:
        """The engine, from the first need on: an object made from YAML has touched nothing."""
        with _CONNECTING:
            if self._host is None:
                from runner.sandbox.host import Host  # noqa: PLC0415 - a finished sweep resumes without Docker's client

                self._host = Host()
            return self._host
