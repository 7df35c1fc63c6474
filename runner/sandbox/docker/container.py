"""One container: the sandbox of a rollout or of a verification."""

from __future__ import annotations

import posixpath
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Literal, Self

from docker import APIClient
from docker.errors import APIError, NotFound

from runner.errors import ImageError, SpoiledMachine
from runner.protocols import Sandbox
from runner.records import Changes, Counted, ExecResult, ExecSpec, Image, LentPorts, SandboxSpec
from runner.sandbox import tar_streams
from runner.sandbox.command_output import Excess, Output, Stop, stopper
from runner.sandbox.docker import (
    agent_builds,
    disk_usage,
    entrypoint,
    freezing,
    kernel_counters,
    launch,
    lent_ports,
    liveness,
    open_network,
    overlay_layer,
    snapshots,
    stuck_containers,
)
from runner.sandbox.docker.command_stream import Attached, exit_code, follow
from runner.sandbox.docker.container_files import Files, TakenPaths
from runner.sandbox.docker.engine_faults import ENGINE_FAULTS, engine_faults, explanation, image_faults
from runner.sandbox.docker.images import ImageConfig, Images
from runner.sandbox.inside import PRELOADED
from runner.sandbox.limits import MEGABYTE, Limits

UNTRUSTED = (f"{snapshots.REPOSITORY}:", f"{agent_builds.REPOSITORY}:")
"""Prefixes of the references of images that an agent made."""


class DockerSandbox:
    """A container that sleeps while commands run in it. See `protocols.Sandbox`.

    A command that cannot be started (no such program, user or directory) exits with 126 and says why on stdout. A
    command that passes its deadline, fills the disk or is cancelled ends together with the whole container, since its
    children could survive a kill of the command alone.
    """

    def __init__(self, api: APIClient, images: Images, spec: SandboxSpec, limits: Limits) -> None:
        self._api = api
        self._spec = spec
        of_task = limits.of_task(spec.environment)
        memory_mb = max(of_task.memory_mb, spec.least_memory_mb or 0)
        self._limits = of_task.model_copy(update={"memory_mb": memory_mb})
        self._home = images.config(spec.image)
        self._user = spec.user or self._home.user
        self._id = ""
        self._pid = 0
        self._files = Files(api, "")
        self._was_used = spec.image.reference.startswith(UNTRUSTED)
        """True if something that may be hostile has run in the container."""
        self._has_run = False
        """True if a command, or the image's ENTRYPOINT, has run in this container."""
        self._entrypoint_ended = False
        self._killed = False
        self._layers: overlay_layer.Layers | None = None
        self._layer: disk_usage.Layer | None = None
        self._counted = Counted()
        self._is_ready = False
        self._taken = TakenPaths()
        self._snapshots = snapshots.Snapshots(api, images)

    @property
    def container(self) -> str:
        """The engine's id of the container; empty before the start."""
        return self._id

    @property
    def image(self) -> Image:
        """The image from which the container was started."""
        return self._spec.image

    @property
    def workdir(self) -> str:
        """The task's working directory, else the image's."""
        return self._spec.environment.workdir or self._home.workdir

    def __enter__(self) -> Self:
        with engine_faults(f"starting a sandbox of {self.image.reference}"), ExitStack() as failed:
            failed.callback(self._remove)  # also after Ctrl-C: a context that was never entered is never left
            try:
                self._start()
            except APIError as error:
                is_agents = self._was_used and error.is_server_error() and stuck_containers.works(self._api)
                if not is_agents:
                    raise
                self._start_again()
            failed.pop_all()
        return self

    def __exit__(self, *exc: object) -> None:
        """Remove the container. A failure voids no trial: the reaper tries again, and names the container."""
        with suppress(*ENGINE_FAULTS):
            self._remove()

    def exec(
        self,
        spec: ExecSpec,
        cancelled: Callable[[], bool] = lambda: False,
        extension: Callable[[], float] = lambda: 0.0,
    ) -> ExecResult:
        """See `protocols.Sandbox`. A command in a container that is already dead ends as `lost`."""
        output = Output(self._limits.output_mb * MEGABYTE)
        with self._faults(f"running {spec.argv[0]} in a sandbox"):
            self._prepare(spec)
            self._has_run = True
            began = time.monotonic()
            ending = self._run(spec, output, stopper(spec.timeout_seconds, cancelled, extension))
            seconds = time.monotonic() - began
        self._was_used = True
        return output.result(ending, seconds)

    def put(self, source: Path, target: str) -> None:
        """See `protocols.Sandbox`. The members of a tar keep their owners and modes."""
        self._taken.clear()
        self._layer = None
        with self._faults(f"copying {source.name} into a sandbox"):
            if source.is_dir():
                with tar_streams.Packer() as pack:
                    pack.folder(target, source)
                    self._files.unpack(pack, freeze=self._is_untrusted)
                return
            try:
                self._files.put(source, target, freeze=self._is_untrusted)
            except NotFound:  # probably the folder is missing; if it is the container, the next call says so
                with tar_streams.Packer() as pack:
                    pack.directory(target, 0o755)
                    self._files.unpack(pack, freeze=self._is_untrusted)
                self._files.put(source, target, freeze=self._is_untrusted)

    def get(self, path: str, target: Path) -> int:
        """See `protocols.Sandbox`. The tar's names start with the last component of `path`, after following links.

        A dead container does not change, so each of its paths is packed once: the trial's record and its judge want the
        same.
        """
        known = self._taken.copy(path, target)
        if known is not None:
            return known
        with self._faults(f"reading {path} of a sandbox"):
            files = self._files.pack(path, target, self._limits, freeze=self._is_untrusted)
        if self._killed:
            self._taken.add(path, target, files)
        return files

    def kill(self) -> None:
        """See `protocols.Sandbox`. Returns when every process is dead and nothing blocks the engine."""
        if self._killed:
            return
        self._counted = self.counted()
        with self._faults("killing a sandbox"):
            stuck_containers.kill(self._api, self._id)
            self._killed = True
            self._files.mend_users()
            self._files.are_still = True

    def counted(self) -> Counted:
        """See `protocols.Sandbox`."""
        if self._killed:
            return self._counted
        return kernel_counters.read(self._pid, self._id, own_network=launch.is_alone(self._spec))

    @property
    def excess(self) -> Excess | None:
        """See `protocols.Sandbox`."""
        if not self._killed:
            return None
        with self._faults("measuring a sandbox"):
            return self._written().excess

    @property
    def entrypoint_ended(self) -> bool:
        """See `protocols.Sandbox`."""
        return self._entrypoint_ended

    def changes(self) -> Changes | None:
        """See `protocols.Sandbox`. The engine cannot list a path that is longer than the system accepts."""
        try:
            changes = self._written(listed=True).changes
        except ENGINE_FAULTS:
            return None
        return disk_usage.without(PRELOADED, changes) if changes and self._spec.runtime else changes

    def snapshot(self, *, alive: bool = False) -> Image:
        """See `protocols.Sandbox`. Freezes the processes, or ends them: a file system in use is not copied.

        An image does not include its declared volumes; a sandbox of the snapshot shares this container's, unless this
        one lives on. Raises `ImageError` if the agent left a machine from which no container starts (a file as working
        directory, no `sleep`).
        """
        if not alive:
            self.kill()
        with engine_faults("freezing a sandbox for its snapshot"), self._files.held():
            with self._faults("making a sandbox ready for its snapshot"):
                excess = self._written().excess
                if excess:  # a copy would write all of it to the host's disk again
                    complaint = disk_usage.COMPLAINTS[excess].format(self._limits)
                    raise SpoiledMachine(f"The machine is not copied: {complaint}.")
                self._taken.clear()
                self._files.make_room()
            with engine_faults("taking a snapshot of a sandbox"):
                volumes = dict.fromkeys(self._home.volumes) if alive else self._volumes()
                of_snapshot = ImageConfig(self._user, self.workdir, volumes, self._home.entrypoint)
                return self._snapshots.take(self._id, of_snapshot)

    @contextmanager
    def lend(self, borrower: Sandbox, ports: Collection[int] | None) -> Iterator[LentPorts]:
        """See `protocols.Sandbox`. Also copies the volumes, which a snapshot of a living container lacks.

        The disk is watched all the while, since the processes go on: they are ended when it is full.
        """
        if not isinstance(borrower, DockerSandbox):
            raise TypeError("only a container borrows from a container")
        self._copy_volumes(borrower)
        with (
            disk_usage.DiskWatch(self._end_if_full),
            lent_ports.lend(self._api, self._id, borrower.container, ports) as lent,
        ):
            yield lent

    @property
    def _is_untrusted(self) -> bool:
        """Return whether a process that may be hostile can be in the way of the engine, so that it must be frozen."""
        return self._was_used or self._has_run

    def _start(self) -> None:
        with image_faults("The image that an agent made" if self._was_used else self.image.reference):
            self._begin()

    def _start_again(self) -> None:
        """Start once more what an agent made, since the engine failed at it. Raises `ImageError` if it fails again."""
        if self._id:
            stuck_containers.remove(self._api, self._id)
        try:
            self._start()
        except APIError as error:
            raise ImageError(f"The image that an agent made does not start: {explanation(error)}.") from error

    def _begin(self) -> None:
        self._is_ready = self._has_run = False
        if launch.is_open(self._spec):
            open_network.ensure(self._api)
        created = launch.arguments(self._api, self._spec, self._limits, self._home)
        self._id = self._api.create_container(**created)["Id"]
        self._files = Files(self._api, self._id)
        if self._was_used:
            self._files.mend_users()
        if self._spec.uploads:
            self._prepare_machine()
        self._api.start(self._id)
        inspected = self._api.inspect_container(self._id)
        self._pid = int(inspected["State"]["Pid"])
        self._layers = overlay_layer.layers_of(inspected)
        self._run_entrypoint()

    def _end_if_full(self) -> Excess | None:
        excess = self._written().excess
        if excess:
            self.kill()
        return excess

    def _copy_volumes(self, borrower: DockerSandbox) -> None:
        for path in self._home.volumes:
            with tempfile.TemporaryDirectory() as folder, suppress(FileNotFoundError):
                self.get(path, Path(folder, "volume.tar"))
                borrower.put(Path(folder, "volume.tar"), posixpath.dirname(path))

    def _run_entrypoint(self) -> None:
        """Run the image's ENTRYPOINT, if the task asks for it. Raises `ImageError` if it ends.

        In a machine that an agent may have changed, the ENTRYPOINT may end: the machine is judged without it.
        """
        home = self._home.entrypoint if self._spec.entrypoint else None
        if home is None:
            return
        user = launch.engine_user(self._spec.entrypoint_user or home.user)
        self._prepare(ExecSpec(argv=home.argv, user=user))
        self._has_run = True
        ended = entrypoint.run(self._api, self._id, home, user)
        if ended and not self._was_used:
            raise ImageError(f"{self.image.reference} cannot be used: {ended}")
        self._entrypoint_ended = bool(ended)

    def _faults(self, doing: str) -> AbstractContextManager[None]:
        return stuck_containers.machine_faults(self._api, doing, used=self._was_used)

    def _written(self, *, listed: bool = False) -> disk_usage.Layer:
        """Measure what the container has written, and list it if `listed`. A dead container is measured only once."""
        if self._layer:
            return self._layer
        # Read this before measuring: a look that began in a living container may end after its death.
        is_final = self._killed
        layers = self._layers if is_final or not listed else None  # processes could mislead a reader of names
        read = layers and (layers.list_changes if is_final else layers.count_paths)
        layer = disk_usage.measure_layer(
            self._api,
            self._id,
            self._limits,
            lambda: disk_usage.volume_bytes(self._api, self._volumes().values()),
            read or disk_usage.ask_the_engine,
        )
        if is_final:
            self._layer = layer
        return layer

    def _prepare(self, spec: ExecSpec) -> None:
        """Write the files that a command needs. The first call also prepares the machine itself, if nothing did."""
        with tar_streams.Packer() as pack:
            if not self._is_ready:
                launch.add_first_files(pack, self._spec)
            for path, text in spec.files.items():
                pack.file(path, text, spec.user or self._user)
            for path, folder in spec.uploads.items():
                pack.folder(path, folder)
            self._taken.clear()
            self._files.unpack(pack, freeze=self._is_untrusted)
        self._is_ready = True

    def _prepare_machine(self) -> None:
        """Write the machine's first files while it has no process that would have to be frozen."""
        with tar_streams.Packer() as pack:
            launch.add_first_files(pack, self._spec)
            for path, folder in self._spec.uploads:
                pack.folder(path, folder)
            self._files.unpack(pack, freeze=False)
        self._is_ready = True

    def _run(
        self, spec: ExecSpec, output: Output, stop: Callable[[], Stop | None]
    ) -> int | Stop | Literal["lost"]:
        """Return the command's exit code, or why it did not exit by itself."""
        try:
            run = freezing.despite_late_events(
                lambda: self._api.exec_create(
                    self._id,
                    list(spec.argv),
                    environment=spec.env,
                    workdir=spec.cwd,
                    user=launch.engine_user(spec.user),
                )
            )["Id"]
            with (
                disk_usage.DiskWatch(lambda: self._written().excess) as disk,
                closing(Attached(self._api, run)) as stream,
            ):

                def reason() -> Stop | None:
                    return stop() or disk.excess

                ending = follow(stream, output, reason) or exit_code(self._api, run, reason)
                if isinstance(ending, str):
                    self._kill_reading(stream, output)
        except APIError:
            if (death := liveness.exit_code(self._api, self._id, self._pid)) is None:
                raise
            return self._lost(death)
        if ending in liveness.DOUBTFUL:
            death = liveness.exit_code(self._api, self._id, self._pid)
            if death is not None:
                return self._lost(death)
        return ending

    def _kill_reading(self, stream: Attached, output: Output) -> None:
        """Kill the container and read the remaining output. An unread stream holds up the engine for ten seconds."""
        with ThreadPoolExecutor(1) as pool:
            rest = pool.submit(follow, stream, output, stopper(liveness.DEATH_SECONDS, lambda: False))
            self.kill()
            rest.result()

    def _lost(self, death: int) -> Literal["lost"]:
        """Return "lost". Raises `ImageError` if the container died because its image cannot even sleep.

        The exit code alone is not proof: root can make the container's first process end with any code.
        """
        if death == liveness.NO_SUCH_COMMAND and not liveness.starts(
            self._api, launch.arguments(self._api, self._spec, self._limits, self._home)
        ):
            raise ImageError(
                f"{self.image.reference} has no `sleep`: a task's image needs a shell and coreutils."
            )
        return "lost"

    def _volumes(self) -> dict[str, str | None]:
        return disk_usage.volumes(self._api, self._id, self._home.volumes)

    def _remove(self) -> None:
        if self._id:
            if (
                self._layer and self._layer.excess == "files"
            ):  # else removing it exhausts the engine's open files
                with suppress(*ENGINE_FAULTS):
                    stuck_containers.flatten(self._api, self._id)
            stuck_containers.remove(self._api, self._id)
        self._snapshots.remove()
