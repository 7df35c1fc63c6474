"""The Docker Engine of this machine, shared by all sandboxes of one provider."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from runner.errors import ReleasedError
from runner.protocols import ImageProgress
from runner.records import Build, BuildSpec, BundleRecipe, InstalledBundle, Reaped, SandboxSpec, ServicesSpec
from runner.records.cases import CaseSide
from runner.sandbox.cases.box import DockerCaseBox
from runner.sandbox.docker import agent_builds, base_image, bundles, engine, reaper
from runner.sandbox.docker.container import DockerSandbox
from runner.sandbox.docker.images import Images
from runner.sandbox.docker.services import DockerServices
from runner.sandbox.limits import Limits
from runner.terminal.escaping import step


class Host:
    """One connection to the engine and its known images. The methods are those of `protocols.SandboxProvider`."""

    def __init__(self, registry: str | None, pulls: int) -> None:
        """Connect to the engine. The arguments are fields of `DockerSandboxes`."""
        self._client = engine.connect()
        self.images = Images(self._client.api, registry, pulls)
        self._is_released = False

    def open(self, spec: SandboxSpec, limits: Limits) -> DockerSandbox:
        """Return a container that starts when it is entered."""
        self._check()
        return DockerSandbox(self._client.api, self.images, spec, limits)

    def services(self, spec: ServicesSpec, limits: Limits, progress: ImageProgress) -> DockerServices:
        """Return the services of a trial, which start when they are entered."""
        self._check()
        return DockerServices(self._client.api, self.images, spec, limits, progress)

    def build(
        self, spec: BuildSpec, limits: Limits, cancelled: Callable[[], bool]
    ) -> AbstractContextManager[Build]:
        """Return a context in which the built image exists."""
        self._check()
        return agent_builds.build_image(self._client.api, spec, limits, cancelled)

    def cases(self, side: CaseSide) -> DockerCaseBox:
        """Return a box whose containers start when it is entered."""
        self._check()
        return DockerCaseBox(self._client.api, side)

    def prepare(
        self, recipes: Sequence[BundleRecipe], say: Callable[[str], None]
    ) -> dict[str, InstalledBundle]:
        """Make sure that base image, runtime and bundles exist."""
        if shared := self.images.shared:
            shared.obtain(
                base_image.tag(),
                lambda: base_image.ensure(self._client, say).id,
                lambda doing: step(say, doing, "the base image"),
            )
        return bundles.ensure(self._client, recipes, say)

    def reap(self, say: Callable[[str], None]) -> Reaped:
        """Remove dead owners' containers and snapshots."""
        return reaper.reap(self._client.api, say)

    def release(self) -> None:
        """Remove this process's containers, over a new connection that no other thread uses."""
        self._is_released = True
        reaper.release(engine.connect().api)

    def _check(self) -> None:
        """Raise `ReleasedError` once the sandboxes are released: a thread whose sandbox is gone opens no other."""
        if self._is_released:
            raise ReleasedError("This process is about to end and starts no more sandboxes.")
