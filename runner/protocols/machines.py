"""Machines: sandboxes, sides of differential tests, services, and what provides them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, Self

from runner.protocols.base import Configured

if TYPE_CHECKING:
    from runner.records import (
        Build,
        BuildSpec,
        BundleRecipe,
        Changes,
        Counted,
        Environment,
        ExecResult,
        ExecSpec,
        Image,
        InstalledBundle,
        LentPorts,
        Reaped,
        SandboxSpec,
        ServicesSpec,
    )
    from runner.records.cases import Case, CaseResult, CaseSide, How
    from runner.terminal.escaping import Say

ImageProgress = Callable[[str], AbstractContextManager[object]]
"""Function that opens the context in which an image is obtained. Its argument is "pulling", "building" or "pushing"."""


class Machine(Protocol):
    """The part of a sandbox that an agent in our process may use: it runs commands and copies files out."""

    @property
    def workdir(self) -> str:
        """Absolute path of the folder in which commands run by default."""

    def exec(
        self,
        spec: ExecSpec,
        cancelled: Callable[[], bool] = lambda: False,
        extension: Callable[[], float] = lambda: 0.0,
    ) -> ExecResult:
        """Run one command to its end, its deadline or its cancellation. Whatever the command does is a value.

        `extension` returns by how many seconds the deadline has been moved so far; it never falls.

        Raises `EngineError` when the sandbox itself cannot be reached.
        """

    def get(self, path: str, target: Path) -> int:
        """Copy a container path into a tar file at `target`. Return the number of regular files in it.

        Works after the processes are dead. Raises `WorkspaceTooLarge` past the caps, `FileNotFoundError` if absent.
        """


class Sandbox(Machine, Protocol):
    """One running container (or folder). Leaving its context removes everything that belongs to it."""

    @property
    def image(self) -> Image:
        """Image from which the sandbox was started."""

    def put(self, source: Path, target: str) -> None:
        """Copy a host folder's content, root-owned, or a tar file's members, as they are, into a container folder.

        The sandbox's processes are frozen meanwhile, and no command may be starting in another thread. Once a command
        has run, this method, `exec`, `get`, `kill` and `snapshot` raise `SpoiledMachine` if it has broken the machine.
        """

    def kill(self) -> None:
        """End every process. The file system stays readable until the context is left. Idempotent."""

    def counted(self) -> Counted:
        """Return what the kernel has counted for the sandbox, until now or until `kill`."""

    @property
    def entrypoint_ended(self) -> bool:
        """Return whether the ENTRYPOINT was to run but ended at once, in a machine that an agent had changed."""

    def changes(self) -> Changes | None:
        """Return the differences of the file system from the image, apart from mounts and the runner's own files.

        None when the differences cannot be listed or are too many. The sandbox's processes can bring that about.
        """

    @property
    def excess(self) -> Literal["disk", "files"] | None:
        """Limit that the sandbox had exceeded when `kill` ended it; None before that."""

    def snapshot(self, *, alive: bool = False) -> Image:
        """Copy the file system as an image. Leaving the sandbox's context removes it.

        Ends the processes first; with `alive` they are frozen for the copy and go on. Raises `SpoiledMachine` when a
        limit is exceeded (`excess`).
        """

    def lend(self, borrower: Sandbox, ports: Collection[int] | None) -> AbstractContextManager[LentPorts]:
        """Let another sandbox, made from a snapshot of this living one, reach its services at the same TCP ports.

        None stands for every port on which something listens. The two share nothing else. Raises `EngineError`.
        """

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...


class CaseBox(Protocol):
    """One side of a differential test. Runs cases while its context is open."""

    @property
    def side(self) -> CaseSide:
        """The side: its image, and the settings for its cases."""

    @property
    def how(self) -> How:
        """Isolation of the cases, as recorded on each result."""

    def run(self, case: Case) -> CaseResult:
        """Run one case from the clean state. Whatever the case does is a value. Thread-safe; waits for a free lane.

        Raises `EngineError` when the container cannot be reached.
        """


class Services(Protocol):
    """The further containers of one trial. Leaving their context removes them and their network."""

    @property
    def network(self) -> str:
        """Name for `SandboxSpec.services`."""

    @property
    def images(self) -> Mapping[str, Image]:
        """Name of each service -> its image."""

    @property
    def ended(self) -> tuple[str, ...]:
        """Names of the services that have failed. Raises `EngineError`."""


class SandboxProvider(Configured, Protocol):
    """Source of sandboxes."""

    @property
    def network(self) -> str:
        """Configured mode: allowlist, gateway, open or task."""

    @property
    def allowed_hosts(self) -> tuple[str, ...]:
        """Hosts that the mode allowlist lets through; see `sandbox.network`."""

    def memory_of(self, environment: Environment) -> int | None:
        """Return the MiB that a sandbox of this environment may use; None if there is no limit."""

    def image(self, environment: Environment, progress: ImageProgress = lambda _: nullcontext()) -> Image:
        """Return a usable image for an environment: local, pulled or built. Simultaneous callers share one build.

        The caller whose call pulls or builds the image has its `progress` entered. Raises `ImageError`.
        """

    def build(
        self, spec: BuildSpec, cancelled: Callable[[], bool] = lambda: False
    ) -> AbstractContextManager[Build]:
        """Build an untrusted Dockerfile under limits. Leaving the context removes the image.

        A build that fails is a value. Raises `EngineError`. See `sandbox.docker.agent_builds`.
        """

    def open(self, spec: SandboxSpec) -> AbstractContextManager[Sandbox]:
        """Start a sandbox. Raises `EngineError`."""

    def services(
        self, spec: ServicesSpec, progress: ImageProgress = lambda _: nullcontext()
    ) -> AbstractContextManager[Services]:
        """Start the further containers of a trial, and wait until they are healthy. `progress` is that of `image`.

        Raises `HealthError` if they never are, `ImageError`, and `EngineError`.
        """

    def cases(self, side: CaseSide) -> AbstractContextManager[CaseBox]:
        """Start one side of a differential test. Raises `EngineError`."""

    def check(self, bundles: Sequence[BundleRecipe]) -> None:
        """Raise `ConfigError` when these bundles could not be prepared as they are configured. Starts nothing."""

    def prepare(self, bundles: Sequence[BundleRecipe], say: Say) -> dict[str, InstalledBundle]:
        """Make sure that the base image, the `python` runtime and these bundles exist. Return the bundles by name.

        `say` is told of long steps. Raises `EngineError`.
        """

    def reap(self, say: Say = lambda _: None) -> Reaped:
        """Remove what dead owners left. Name and leave what cannot be removed in time. Raises `EngineError`.

        `say` is told how much there is to remove, unless there is nothing.
        """

    def release(self) -> None:
        """Remove the sandboxes of this process, which is about to end, while other threads may be using them.

        Sandboxes that cannot be removed within a few seconds are left to the next `reap`.
        """
