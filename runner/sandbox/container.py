"""One container: a rollout's or a verification's sandbox."""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Literal, Self

from docker import APIClient
from docker.errors import APIError, ImageNotFound, NotFound
from docker.utils import decode_json_header
from requests import Response
from requests.exceptions import RequestException

from runner.errors import EngineError, ImageError
from runner.records import Counted, ExecResult, ExecSpec, Image, SandboxSpec
from runner.sandbox import archive, builds, counters, launch
from runner.sandbox.attached import Attached
from runner.sandbox.execution import DiskWatch, Output, Stop, follow, stopper
from runner.sandbox.faults import CONFLICT, NOT_FOUND, engine_faults, explanation
from runner.sandbox.images import ImageConfig, Images
from runner.sandbox.limits import MEGABYTE, Limits

SNAPSHOTS = "assay-snapshot"
"""Repository of snapshots; their tags are random."""
UNTRUSTED = (f"{SNAPSHOTS}:", f"{builds.REPOSITORY}:")
"""References of images that an agent made."""
RESERVED = ("/tests", "/solution", "/logs", "/logs/verifier")
"""Directories of the verifier. In a snapshot they are directories: a file, a link or a loop that an agent planted
there would be a mount point that the engine refuses, and a way out of being judged."""
USERS = ("/etc/passwd", "/etc/group")
"""The engine reads them before it starts anything, and for ever if an agent put a pipe there."""
DIRECTORY = 1 << 31
"""In the mode that the engine gives of a path (Go's `fs.ModeDir`)."""
SPECIAL = 0x8F280000
"""Bits of the engine's file modes (Go's `fs.ModeType`) that no regular file has."""
KILLED = 137
"""Exit code of a process that SIGKILL ended."""
CANNOT_START = 126
DOUBTFUL = (CANNOT_START, KILLED)
"""Exit codes that a command also has when its container died under it, or just before."""
NO_SUCH_COMMAND = 127
PAUSE_SECONDS = 0.02
"""Between two looks whether a container still lives."""
LONGEST_PAUSE_SECONDS = 0.25
"""Between two questions whether a silent command still runs."""
DEATH_SECONDS = 3
"""How long a dead container may seem alive: the engine first waits 2 s for its commands' streams to close."""
DYING_SECONDS = 0.5
"""How long one may really live on after a command that ends with it; it takes milliseconds."""
NO_SUCH_PATH = ("could not find the file", "not a directory", "too many links")
"""What the engine says of a path that leads nowhere."""


class DockerSandbox:
    """A container that sleeps while commands are run in it. See `protocols.Sandbox`.

    A command that cannot be started (no such program, user or directory) exits with 126 and says why on stdout. One
    that passes its deadline, fills the disk or is cancelled ends with the whole container: its children could outlive
    a kill of the command alone.
    """

    def __init__(self, api: APIClient, images: Images, spec: SandboxSpec, limits: Limits) -> None:
        self._api = api
        self._images = images
        self._spec = spec
        self._limits = limits.of_task(spec.environment)
        self._home = images.config(spec.image)
        self._user = spec.user or self._home.user
        self._id = ""
        self._killed = False
        self._counted = Counted()
        self._is_ready = False
        self._taken: dict[str, tuple[Path, int]] = {}  # once nothing lives: path -> its tar, files in it
        self._snapshots: list[Image] = []

    @property
    def image(self) -> Image:
        """What it was started from."""
        return self._spec.image

    @property
    def workdir(self) -> str:
        """The task's, else the image's."""
        return self._spec.environment.workdir or self._home.workdir

    def __enter__(self) -> Self:
        with engine_faults(f"starting a sandbox of {self.image.reference}"):
            try:
                created = launch.arguments(self._api, self._spec, self._limits, self._home)
                self._id = self._api.create_container(**created)["Id"]
                # A snapshot is mended when it is taken.
                if self.image.reference.startswith(builds.REPOSITORY):
                    with archive.Packer() as pack:
                        self._mend_users(pack)
                        self._unpack(pack)
                self._api.start(self._id)
            except APIError as error:
                self._remove()
                if self.image.reference.startswith(UNTRUSTED) and not isinstance(error, ImageNotFound):
                    raise ImageError(f"What an agent made does not start: {explanation(error)}.") from error
                raise
            except BaseException:  # Ctrl-C, for one: who never entered is never left
                self._remove()
                raise
        return self

    def __exit__(self, *exc: object) -> None:
        with engine_faults("removing a sandbox"):
            self._remove()

    def exec(
        self,
        spec: ExecSpec,
        cancelled: Callable[[], bool] = lambda: False,
        extension: Callable[[], float] = lambda: 0.0,
    ) -> ExecResult:
        """See `protocols.Sandbox`. A command in a container that is dead already ends as `lost`."""
        output = Output(self._limits.output_mb * MEGABYTE)
        with engine_faults(f"running {spec.argv[0]} in a sandbox"):
            self._prepare(spec)
            began = time.monotonic()
            ending = self._run(spec, output, stopper(spec.timeout_seconds, cancelled, extension))
            seconds = time.monotonic() - began
        exited = isinstance(ending, int)
        return ExecResult(
            exit_code=ending if exited else None,
            ended="exited" if exited else ending,
            stdout=output.stdout,
            stderr=output.stderr,
            seconds=seconds,
            output_bytes=output.total,
        )

    def put(self, source: Path, target: str) -> None:
        """See `protocols.Sandbox`. A tar's members keep their owners and modes."""
        with engine_faults(f"copying {source.name} into a sandbox"):
            if source.is_dir():
                with archive.Packer() as pack:
                    pack.folder(target, source)
                    self._unpack(pack)
                return
            try:
                self._put_tar(source, target)
            except NotFound:  # the folder, most likely; if it is the container, the next call says so
                with archive.Packer() as pack:
                    pack.directory(target, 0o755)
                    self._unpack(pack)
                self._put_tar(source, target)

    def get(self, path: str, target: Path) -> int:
        """See `protocols.Sandbox`. The tar's names start with the last component of `path`, links followed.

        What is dead does not change, so a path is packed once: the trial's record and its judge want the same.
        """
        packed, files = self._taken.get(path, (target, 0))
        if path in self._taken and packed.exists():
            if packed != target:
                shutil.copyfile(packed, target)
            return files
        self._taken = {of: taken for of, taken in self._taken.items() if taken[0] != target}
        files = self._pack(path, target)
        if self._killed:
            self._taken[path] = target, files
        return files

    def _pack(self, path: str, target: Path) -> int:
        plain, limit, message = path.rstrip("/"), self._api.timeout, ""
        with engine_faults(f"reading {path} of a sandbox"):
            for name in (f"{plain}/", plain):  # the slash follows a link, and is refused for a file
                # The client's own `get_archive` cannot be closed before its end.
                query = {"path": name}
                with self._api.get(self._archive, params=query, stream=True, timeout=limit) as response:
                    if response.ok:
                        return archive.save(response.iter_content(MEGABYTE), target, self._limits)
                    message = response.json()["message"]
        if any(words in message.lower() for words in NO_SUCH_PATH):
            raise FileNotFoundError(path)
        raise EngineError(f"The Docker Engine failed while reading {path} of a sandbox: {message}.")

    def kill(self) -> None:
        """See `protocols.Sandbox`. Returns when every process is dead."""
        if self._killed:
            return
        self._counted = self.counted()
        with engine_faults("killing a sandbox"):
            try:
                self._api.kill(self._id)
            except APIError as error:
                if error.status_code not in (NOT_FOUND, CONFLICT):  # dead already
                    raise
        self._killed = True

    def counted(self) -> Counted:
        """See `protocols.Sandbox`."""
        if self._killed:
            return self._counted
        with engine_faults("looking at a sandbox"):
            try:
                found = self._api.inspect_container(self._id)
            except NotFound:  # dead and removed, by somebody else
                return Counted()
        return counters.counted(found["State"]["Pid"], self._id, own_network=self._spec.network != "open")

    def snapshot(self) -> Image:
        """See `protocols.Sandbox`. Ends the processes first: a file system in use is not frozen.

        Volumes that the image declares are no part of an image; a sandbox of the snapshot shares this one's. What an
        agent did so that no container starts from it (a file for a working directory, no `sleep`) is an `ImageError`.
        """
        self.kill()
        with engine_faults("taking a snapshot of a sandbox"):
            with archive.Packer() as pack:
                if any(map(self._is_in_the_way, RESERVED)):
                    for path in RESERVED:
                        pack.directory(path, 0o755)
                self._mend_users(pack)
                self._unpack(pack)
            tag = secrets.token_hex(8)
            found = self._api.commit(self._id, repository=SNAPSHOTS, tag=tag, pause=False)["Id"]
            snapshot = Image(id=found, reference=f"{SNAPSHOTS}:{tag}", origin="built")
            self._images.remember(snapshot, ImageConfig(self._user, self.workdir, self._volumes()))
        self._snapshots.append(snapshot)
        return snapshot

    def _mend_users(self, pack: archive.Packer) -> None:
        """Empty files for what is none: nothing starts where the engine waits for it."""
        for path in filter(self._is_special, USERS):
            pack.file(path, "", "root")

    def _is_special(self, path: str) -> bool:
        """Whether something that is no regular file is there."""
        found = self._stat(path)
        return found.ok and bool(_mode(found) & SPECIAL)

    def _is_in_the_way(self, path: str) -> bool:
        """Whether something other than a directory is there; a loop of links cannot even be looked at."""
        found = self._stat(path)
        return not _mode(found) & DIRECTORY if found.ok else found.status_code != NOT_FOUND

    def _stat(self, path: str) -> Response:
        """What the engine says of a path, links not followed: a fraction of what writing there costs."""
        return self._api.head(self._archive, params={"path": path}, timeout=self._api.timeout)

    def _prepare(self, spec: ExecSpec) -> None:
        """Write what a command needs. The first one's call also readies the machine itself."""
        with archive.Packer() as pack:
            if not self._is_ready:
                self._ready(pack)
            for path, text in spec.files.items():
                pack.file(path, text, spec.user or self._user)
            for path, folder in spec.uploads.items():
                pack.folder(path, folder)
            self._unpack(pack)
        self._is_ready = True

    def _ready(self, pack: archive.Packer) -> None:
        """Close the fresh directories to all but root, and say what a machine without a network knows of names."""
        for path in self._spec.fresh_dirs:
            pack.directory(path, 0o700)
        for path, text in ({} if self._spec.network == "open" else launch.NAMES).items():
            pack.file(path, text, "root")

    def _run(
        self, spec: ExecSpec, output: Output, stop: Callable[[], Stop | None]
    ) -> int | Stop | Literal["lost"]:
        """The command's exit code, or what it ended of instead."""
        try:
            run = self._api.exec_create(
                self._id,
                list(spec.argv),
                environment=spec.env,
                workdir=spec.cwd,
                user=launch.engine_user(spec.user),
            )["Id"]
            with (
                DiskWatch(self._disk_bytes, self._limits.disk_mb * MEGABYTE) as disk,
                closing(Attached(self._api, run)) as stream,
            ):

                def reason() -> Stop | None:
                    return stop() or ("disk" if disk.full else None)

                ending = follow(stream, output, reason) or self._exit_code(run, reason)
                if isinstance(ending, str):
                    self._kill_reading(stream, output)
        except APIError:
            if (death := self._death()) is None:
                raise
            return self._lost(death)
        if ending in DOUBTFUL and (death := self._death()) is not None:
            return self._lost(death)
        return ending

    def _kill_reading(self, stream: Attached, output: Output) -> None:
        """Kill, and keep what is still on its way. A stream that nobody reads holds the engine up for ten seconds."""
        with ThreadPoolExecutor(1) as pool:
            rest = pool.submit(follow, stream, output, stopper(DEATH_SECONDS, lambda: False))
            self.kill()
            rest.result()

    def _exit_code(self, run: str, stop: Callable[[], Stop | None]) -> int | Stop:
        """Wait for a command whose output is closed: one that closes its own streams can run on for long."""
        pause = 0.005
        while (reason := stop()) is None:
            state = self._api.exec_inspect(run)
            if not state["Running"] and state["ExitCode"] is not None:
                return int(state["ExitCode"])
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        return reason

    @property
    def _archive(self) -> str:
        return f"{self._api.base_url}/v{self._api.api_version}/containers/{self._id}/archive"

    def _unpack(self, pack: archive.Packer) -> None:
        # Always at the root: the engine then resolves every name inside the container, links included.
        if not pack.empty:
            self._taken.clear()
            self._api.put_archive(self._id, "/", pack.stream())

    def _put_tar(self, source: Path, target: str) -> None:
        self._taken.clear()
        with source.open("rb") as file:
            self._api.put_archive(self._id, target, file)

    def _death(self) -> int | None:
        """Exit code of the container; None while it lives."""
        try:
            if self._lives_on():
                return None
            return int(self._api.wait(self._id, timeout=DEATH_SECONDS)["StatusCode"])
        except NotFound:
            return KILLED
        except RequestException:  # no answer in time
            return None

    def _lives_on(self) -> bool:
        """Whether this machine sees it live for longer than one that is dying does."""
        pid = int(self._api.inspect_container(self._id)["State"]["Pid"])
        until = time.monotonic() + DYING_SECONDS
        while counters.lives(pid, self._id):
            if time.monotonic() >= until:
                return True
            time.sleep(PAUSE_SECONDS)
        return False

    def _lost(self, death: int) -> Literal["lost"]:
        """Raises `ImageError` if the container died because its image cannot even sleep."""
        if death == NO_SUCH_COMMAND:
            raise ImageError(
                f"{self.image.reference} has no `sleep`: a task's image needs a shell and coreutils."
            )
        return "lost"

    def _disk_bytes(self) -> int:
        listed = self._api.containers(all=True, size=True, filters={"id": self._id})
        written = sum(int(container.get("SizeRw", 0)) for container in listed)
        return written + (self._volume_bytes() if self._home.volumes else 0)

    def _volume_bytes(self) -> int:
        """What the volumes hold that the image declares: they are no part of the container's own layer."""
        mine = set(self._volumes().values())
        try:
            found = self._api.df()["Volumes"] or ()
        except APIError:  # somebody else is asking the same; the next look will tell
            return 0
        return sum(int(volume["UsageData"]["Size"]) for volume in found if volume["Name"] in mine)

    def _volumes(self) -> dict[str, str | None]:
        """Path and name of the container's volumes that its image declares."""
        if not self._home.volumes:
            return {}
        mounts = self._api.inspect_container(self._id)["Mounts"]
        return {
            mount["Destination"]: mount["Name"]
            for mount in mounts
            if mount["Destination"] in self._home.volumes
        }

    def _remove(self) -> None:
        if self._id:
            with suppress(NotFound):
                self._api.remove_container(self._id, force=True, v=True)
        for snapshot in self._snapshots:
            self._images.forget(snapshot)
            with suppress(NotFound):
                self._api.remove_image(snapshot.reference, force=True)


def _mode(found: Response) -> int:
    return int(decode_json_header(found.headers["X-Docker-Container-Path-Stat"])["mode"])
