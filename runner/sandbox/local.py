"""`sandbox=local`: a temporary folder and plain processes of this machine. For trusted agents, and for tests."""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self
from weakref import WeakSet

from pydantic import PrivateAttr

from runner.archives import unpack
from runner.errors import ConfigError, ImageError, WorkspaceTooLarge
from runner.protocols import CaseBox, ImageProgress, Sandbox, Services
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
from runner.sandbox.command_output import CHUNK, POLL_SECONDS, Output, Stop, stopper
from runner.sandbox.limits import MEGABYTE, Caps

if TYPE_CHECKING:
    from runner.records.cases import CaseSide

WORKDIR = "/workspace"
"""Working directory of commands, unless the task sets one."""
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
DEATH_SECONDS = 1.0
"""Longest wait for a killed process group to disappear."""
DRAIN_SECONDS = 0.5
"""Longest time for reading the pipes after a command has ended. Its children may hold them open forever."""


class LocalSandboxes(Caps):
    """Provider of temporary folders. See `protocols.SandboxProvider`.

    There are no images: every environment gives an empty folder, or a copy of a snapshot.
    """

    _sandboxes: WeakSet[LocalSandbox] = PrivateAttr(default_factory=WeakSet)
    """Sandboxes that are still referenced."""
    network: Literal["gateway", "open", "task"] = "open"
    """Network mode, accepted but not enforced: commands have this machine's network."""

    @property
    def allowed_hosts(self) -> tuple[str, ...]:
        """Return no hosts, because nothing restricts the network."""
        return ()

    def image(
        self,
        environment: Environment,  # noqa: ARG002 - the protocol's
        progress: ImageProgress = lambda _: nullcontext(),  # noqa: ARG002 - the protocol's
    ) -> Image:
        """Return an image that stands for the empty folder."""
        return Image(id="", reference="", origin="none")

    def memory_of(self, environment: Environment) -> None:
        """Return None: processes have this machine's memory."""

    def open(self, spec: SandboxSpec) -> AbstractContextManager[Sandbox]:
        """See `protocols.SandboxProvider`."""
        sandbox = LocalSandbox(spec, self)
        self._sandboxes.add(sandbox)
        return sandbox

    def services(
        self,
        spec: ServicesSpec,
        progress: ImageProgress = lambda _: nullcontext(),  # noqa: ARG002 - the protocol's
    ) -> AbstractContextManager[Services]:
        """See `protocols.SandboxProvider`. There are no containers here."""
        raise ImageError(f"{spec.name} needs several containers: run it with sandbox=docker.")

    def cases(self, side: CaseSide) -> AbstractContextManager[CaseBox]:  # noqa: ARG002 - the protocol's
        """Raise `ConfigError`: there is no clean machine for each case here."""
        raise ConfigError("sandbox=local cannot run the cases of differential testing: use sandbox=docker.")

    def build(
        self,
        spec: BuildSpec,  # noqa: ARG002 - the protocol's
        cancelled: Callable[[], bool] = lambda: False,  # noqa: ARG002 - the protocol's
    ) -> AbstractContextManager[Build]:
        """Raise `ConfigError`: there are no images here."""
        raise ConfigError("sandbox=local cannot build images: use sandbox=docker.")

    def check(self, bundles: Sequence[BundleRecipe]) -> None:
        """Raise `ConfigError` when an agent needs a bundle: bundles are built for containers."""
        if bundles:
            names = ", ".join(bundle.name for bundle in bundles)
            raise ConfigError(
                f"sandbox=local cannot run agents that come as bundles ({names}): use sandbox=docker."
            )

    def prepare(
        self,
        bundles: Sequence[BundleRecipe],
        say: Callable[[str], None],  # noqa: ARG002 - the protocol's
    ) -> dict[str, InstalledBundle]:
        """Prepare nothing. Raises `ConfigError` as `check` does."""
        self.check(bundles)
        return {}

    def reap(self, say: Callable[[str], None] = lambda _: None) -> Reaped:  # noqa: ARG002 - the protocol's
        """Remove nothing: folders of killed runners are among this machine's temporary files."""
        return Reaped()

    def release(self) -> None:
        """See `protocols.SandboxProvider`."""
        for sandbox in list(self._sandboxes):
            sandbox.__exit__()


class LocalSandbox:
    """A folder that stands for a machine's root. See `protocols.Sandbox`.

    It does NOT isolate: commands run as this process's user, with its rights to its files, processes and network, and
    without limits on memory, processor or disk. Paths given to *us* (`cwd`, `files`, `uploads`, `put`, `get`,
    `fresh_dirs`) lie below the folder. A path inside a command's own text is this machine's, so commands use relative
    paths or `$ASSAY_ROOT`. `user` is ignored. A child that starts its own session outlives `kill`. It does withhold
    this process's environment, end the process group at deadlines, and cap output and workspace.
    """

    def __init__(self, spec: SandboxSpec, caps: Caps) -> None:
        self._spec = spec
        self._caps = caps
        self._root = Path()
        self._leaders: list[subprocess.Popen[bytes]] = []
        self._snapshots: list[Path] = []

    @property
    def image(self) -> Image:
        """The image from which the sandbox was started: empty, or a snapshot."""
        return self._spec.image

    @property
    def workdir(self) -> str:
        """The task's working directory, else `/workspace`."""
        return self._spec.environment.workdir or WORKDIR

    def __enter__(self) -> Self:
        if self.image.reference and not Path(self.image.reference).is_dir():
            raise ImageError(f"The snapshot {self.image.reference} is gone.")
        self._root = Path(tempfile.mkdtemp(prefix="assay-"))
        if self.image.reference:
            shutil.copytree(self.image.reference, self._root, symlinks=True, dirs_exist_ok=True)
        for path in self._spec.fresh_dirs:
            shutil.rmtree(self._host(path), ignore_errors=True)
            self._host(path).mkdir(mode=0o700, parents=True)
        for path in (self.workdir, *self._spec.open_dirs):
            self._host(path).mkdir(parents=True, exist_ok=True)
        for path, folder in self._spec.uploads:
            self.put(folder, path)
        for path in self._spec.fresh_dirs:  # an upload gives a folder the rights of its source
            self._host(path).chmod(0o700)
        return self

    def __exit__(self, *exc: object) -> None:
        self.kill()
        for folder in (self._root, *self._snapshots):
            shutil.rmtree(folder, ignore_errors=True)

    def exec(
        self,
        spec: ExecSpec,
        cancelled: Callable[[], bool] = lambda: False,
        extension: Callable[[], float] = lambda: 0.0,
    ) -> ExecResult:
        """See `protocols.Sandbox`."""
        for path, text in spec.files.items():
            self._host(path).parent.mkdir(parents=True, exist_ok=True)
            self._host(path).write_text(text)
        for path, folder in spec.uploads.items():
            self.put(folder, path)
        output = Output(self._caps.output_mb * MEGABYTE)
        began = time.monotonic()
        try:
            process = self._start(spec)
        except OSError as error:
            message = f"cannot start {spec.argv[0]}: {error.strerror}"
            return ExecResult(
                exit_code=126, stdout=message, stderr="", seconds=0.0, output_bytes=len(message.encode())
            )
        with process:
            reason = _follow(process, output, stopper(spec.timeout_seconds, cancelled, extension))
            if reason:
                self.kill()
                _follow(process, output, lambda: None)  # read what the command had printed
        return output.result(reason or _shell_code(process.returncode), time.monotonic() - began)

    def put(self, source: Path, target: str) -> None:
        """See `protocols.Sandbox`."""
        if source.is_dir():
            shutil.copytree(source, self._host(target), symlinks=True, dirs_exist_ok=True)
            return
        unpack(source, self._host(target), machine=True)

    def get(self, path: str, target: Path) -> int:
        """See `protocols.Sandbox`."""
        source = self._host(path)
        if not source.exists():
            raise FileNotFoundError(path)
        try:
            return self._pack(source.resolve(), Path(path).name, target)
        except WorkspaceTooLarge:
            target.unlink()
            raise

    def kill(self) -> None:
        """See `protocols.Sandbox`."""
        for leader in self._leaders:
            until = time.monotonic() + DEATH_SECONDS
            with suppress(ProcessLookupError):
                os.killpg(leader.pid, signal.SIGKILL)
                leader.wait()
                while time.monotonic() < until:  # the kernel takes a moment, and unreaped zombies count
                    os.killpg(leader.pid, 0)
                    time.sleep(POLL_SECONDS / 10)
        self._leaders.clear()

    def counted(self) -> Counted:
        """Return no counts: network and memory are this machine's."""
        return Counted()

    def changes(self) -> Changes:
        """See `protocols.Sandbox`. Compares kind, rights, size and time, which a command can forge."""
        before, now = _list(Path(self.image.reference)) if self.image.reference else {}, _list(self._root)
        gone = before.keys() - now.keys()
        return Changes(
            added=frozenset(now.keys() - before.keys()),
            changed=frozenset(path for path in now.keys() & before.keys() if now[path] != before[path]),
            deleted=frozenset(path for path in gone if str(Path(path).parent) not in gone),
        )

    @property
    def entrypoint_ended(self) -> bool:
        """Return False, because without images there is no ENTRYPOINT."""
        return False

    @property
    def excess(self) -> None:
        """Return None, because nothing is measured here."""

    def snapshot(self, *, alive: bool = False) -> Image:
        """Return a copy of the folder as an image."""
        if not alive:
            self.kill()
        copy = Path(tempfile.mkdtemp(prefix="assay-snapshot-"))
        self._snapshots.append(copy)
        shutil.copytree(self._root, copy, symlinks=True, dirs_exist_ok=True)
        return Image(id="", reference=str(copy), origin="none")

    def lend(
        self,
        borrower: Sandbox,  # noqa: ARG002 - the protocol's
        ports: Collection[int] | None,  # noqa: ARG002
    ) -> AbstractContextManager[LentPorts]:
        """Lend nothing: all sandboxes are in this machine's network."""
        return nullcontext(LentPorts())

    def _host(self, path: str) -> Path:
        return self._root / path.lstrip("/")

    def _start(self, spec: ExecSpec) -> subprocess.Popen[bytes]:
        own = {"PATH": PATH, "HOME": str(self._root), "ASSAY_ROOT": str(self._root)}
        process = subprocess.Popen(
            spec.argv,
            cwd=self._host(spec.cwd or self.workdir),
            env={**own, **self._spec.environment.env, **spec.env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._leaders.append(process)
        return process

    def _pack(self, source: Path, name: str, target: Path) -> int:
        counts: Counter[bool] = Counter()  # True: regular files; False: everything else

        def admit(entry: tarfile.TarInfo) -> tarfile.TarInfo:
            counts[entry.isreg()] += 1
            if (
                counts[entry.isreg()] > self._caps.workspace_files
                or tar.offset + entry.size > self._caps.workspace_mb * MEGABYTE
            ):
                raise WorkspaceTooLarge(
                    f"{target.stem}: more than sandbox.workspace_mb or sandbox.workspace_files allow."
                )
            return entry

        with tarfile.open(target, "w") as tar:
            tar.add(source, name, filter=admit)
        return counts[True]


def _list(root: Path) -> dict[str, tuple[int, ...]]:
    """Return each path below `root` with the properties that reveal a change."""
    found: dict[str, tuple[int, ...]] = {}
    for path in root.rglob("*"):
        status = path.lstat()
        found[f"/{path.relative_to(root).as_posix()}"] = (status.st_mode, status.st_size, status.st_mtime_ns)
    return found


def _follow(process: subprocess.Popen[bytes], output: Output, stop: Callable[[], Stop | None]) -> Stop | None:
    """Read both pipes until the command has ended. Return why it must be ended, or None."""
    drained_by = float("inf")
    with selectors.DefaultSelector() as waiting:
        for pipe in filter(None, (process.stdout, process.stderr)):
            waiting.register(pipe, selectors.EVENT_READ)
        while (reason := stop()) is None:
            if process.poll() is not None:
                drained_by = min(drained_by, time.monotonic() + DRAIN_SECONDS)
                if not waiting.get_map() or time.monotonic() > drained_by:
                    return None
            if not waiting.get_map():
                time.sleep(POLL_SECONDS / 10)
            for key, _ in waiting.select(POLL_SECONDS / 10):
                data = os.read(key.fd, CHUNK)
                output.add(data, stderr=key.fileobj is process.stderr)
                if not data:
                    waiting.unregister(key.fileobj)
    return reason


def _shell_code(code: int) -> int:
    """Return 128 + n for a command that signal n ended, as containers do."""
    return code if code >= 0 else 128 - code
