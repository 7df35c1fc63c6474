"""`sandbox=docker`: a container for each rollout and each verification, on the Docker Engine of this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from threading import Lock
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, PrivateAttr, field_validator, model_validator

from runner.protocols import ImageProgress, Sandbox, Services
from runner.records import (
    Build,
    BuildSpec,
    BundleRecipe,
    Environment,
    Image,
    InstalledBundle,
    Reaped,
    SandboxSpec,
    ServicesSpec,
)
from runner.records.cases import CaseSide
from runner.sandbox.docker.lock_files import checked_lock
from runner.sandbox.limits import Limits
from runner.sandbox.network import canonical

if TYPE_CHECKING:
    from runner.sandbox.cases.box import DockerCaseBox
    from runner.sandbox.docker.connection import Host

_CONNECTING = Lock()
REGISTRY = r"[a-z0-9.-]+(:\d+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*"
"""Pattern of a registry and a folder in it."""


class DockerSandboxes(Limits):
    """Provider of containers. See `protocols.SandboxProvider`."""

    key_name: ClassVar[str] = "runner.sandbox.docker.DockerSandboxes"
    """Name of this class in trial keys: its first one, so that finished trials stay finished."""

    network: Literal["allowlist", "gateway", "open", "task"] = "task"
    """Network mode. task: as the task declares. gateway: only the model's socket. allowlist: also `allowed_hosts`.
    open: no restriction."""
    allowed_hosts: tuple[str, ...] = ()
    """Hosts for `network=allowlist`: names, `*.name`, addresses and CIDR ranges. A proxy reaches them on ports 80 and
    443, but never an address of this machine or of a private network."""
    registry: str | None = Field(default=None, exclude=True, pattern=f"^{REGISTRY}$")
    """Registry, `HOST[:PORT]/FOLDER`, through which all machines share the images that are built; None: each machine
    builds its own. Not a part of a trial's key."""
    pulls: int = Field(default=2, ge=1, exclude=True)
    """Most images that are pulled at the same time; further ones wait. Of each, the engine loads several layers at a
    time (`max-concurrent-downloads`). Not a part of a trial's key."""
    _host: Host | None = PrivateAttr(default=None)

    @field_validator("allowed_hosts")
    @classmethod
    def _canonical(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        return canonical(hosts)

    @model_validator(mode="after")
    def _check_mode(self) -> Self:
        if self.allowed_hosts and self.network != "allowlist":
            raise ValueError("allowed_hosts needs network=allowlist")
        return self

    def image(self, environment: Environment, progress: ImageProgress = lambda _: nullcontext()) -> Image:
        """See `protocols.SandboxProvider`. An environment to be built must have a digest, which tags the image."""
        return self._connected().images.find(environment, progress)

    def build(
        self, spec: BuildSpec, cancelled: Callable[[], bool] = lambda: False
    ) -> AbstractContextManager[Build]:
        """See `protocols.SandboxProvider`."""
        return self._connected().build(spec, self, cancelled)

    def open(self, spec: SandboxSpec) -> AbstractContextManager[Sandbox]:
        """See `protocols.SandboxProvider`."""
        return self._connected().open(spec, self)

    def services(
        self, spec: ServicesSpec, progress: ImageProgress = lambda _: nullcontext()
    ) -> AbstractContextManager[Services]:
        """See `protocols.SandboxProvider`."""
        return self._connected().services(spec, self, progress)

    def check(self, bundles: Sequence[BundleRecipe]) -> None:
        """See `protocols.SandboxProvider`. Each bundle needs a lock that pins it."""
        for recipe in bundles:
            checked_lock(recipe)

    def prepare(
        self, bundles: Sequence[BundleRecipe], say: Callable[[str], None]
    ) -> dict[str, InstalledBundle]:
        """See `protocols.SandboxProvider`."""
        return self._connected().prepare(bundles, say)

    def cases(self, side: CaseSide) -> DockerCaseBox:
        """Open one side of a differential test, with limits of its own. Needs `prepare`."""
        return self._connected().cases(side)

    def reap(self, say: Callable[[str], None] = lambda _: None) -> Reaped:
        """See `protocols.SandboxProvider`."""
        return self._connected().reap(say)

    def release(self) -> None:
        """See `protocols.SandboxProvider`."""
        if self._host:
            self._host.release()

    def _connected(self) -> Host:
        """Return the connection to the engine, opened at the first need: building the object from YAML
        touches nothing.
        """
        with _CONNECTING:
            if self._host is None:
                from runner.sandbox.docker.connection import Host  # noqa: PLC0415 - a finished sweep resumes without Docker's client

                self._host = Host(self.registry, self.pulls)
            return self._host
