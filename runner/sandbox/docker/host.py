"""The Docker Engine of this machine, as all sandboxes of one provider share it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from runner.errors import ReleasedError
from runner.records import Build, BuildSpec, BundleRecipe, InstalledBundle, Reaped, SandboxSpec
from runner.records.cases import CaseSide
from runner.sandbox.cases.box import DockerCaseBox
from runner.sandbox.docker import builds, bundles, engine, reaper
from runner.sandbox.docker.container import DockerSandbox
from runner.sandbox.docker.images import Images
from runner.sandbox.limits import Limits


class Host:
    """One connection, and what is known of the engine's images. Its methods are `protocols.SandboxProvider`'s."""

    def __init__(self) -> None:
        self._client = engine.connect()
        self.images = Images(self._client.api)
        self._is_released = False

    def open(self, spec: SandboxSpec, limits: Limits) -> DockerSandbox:
        """A container that starts when it is entered."""
        self._check()
        return DockerSandbox(self._client.api, self.images, spec, limits)

    def build(
        self, spec: BuildSpec, limits: Limits, cancelled: Callable[[], bool]
    ) -> AbstractContextManager[Build]:
        """An image as long as its context."""
        self._check()
        return builds.built(self._client.api, spec, limits, cancelled)

    def cases(self, side: CaseSide) -> DockerCaseBox:
        """Containers that start when it is entered."""
        self._check()
        return DockerCaseBox(self._client.api, side)

    def prepare(
        self, recipes: Sequence[BundleRecipe], say: Callable[[str], None]
    ) -> dict[str, InstalledBundle]:
        """Base image, runtime and bundles."""
        return bundles.ensure(self._client, recipes, say)

    def reap(self, say: Callable[[str], None]) -> Reaped:
        """Dead owners' containers and snapshots."""
        return reaper.reap(self._client.api, say)

    def release(self) -> None:
        """This process's containers, over a connection that no thread of it is using."""
        self._is_released = True
        reaper.release(engine.connect().api)

    def _check(self) -> None:
        """Raise `ReleasedError` once sandboxes are released: a caller that lost one must not open the next."""
        if self._is_released:
            raise ReleasedError("This process is about to end and starts no more sandboxes.")
