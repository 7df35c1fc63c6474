"""Way one: a fresh root for each case, out of three layers.

    the installed root    the container's own, read by all cases and written by none
    prep                  the case's files, and what its prep script did
    command               what its command did: ΔS

The layers of a case lie in one tmpfs of limited size and go with it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from runner.sandbox.cases.inside import changes, command, kernel
from runner.sandbox.cases.inside.ground import STAGE

_ROOT, _VIEW, _PREP, _COMMAND, _SHM = (
    f"{STAGE}/{part}" for part in ("root", "view", "prep", "command", "shm")
)
_WORK = {_PREP: f"{STAGE}/prep-work", _COMMAND: f"{STAGE}/command-work"}
"""Upper layer -> the folder that the kernel wants beside it."""
_SAFE = kernel.NOSUID | kernel.NODEV


class Overlays:
    """Makes stages. One at a time: its process's mounts are its own, and all stages lie at one path."""

    def __init__(self, size: str, caps: changes.Caps, become: Callable[[], None]) -> None:
        self.caps = caps
        self._size = size
        self._walls = command.Walls(_enter, become, _end)
        self._has_network = False
        self._own = os.open("/proc/self/ns/pid", os.O_RDONLY)

    @contextmanager
    def fresh(self) -> Iterator[Overlay]:
        """A clean machine, gone without trace at the end."""
        kernel.mount("tmpfs", STAGE, "tmpfs", _SAFE, f"{self._size},mode=0755")
        try:
            for folder in (_ROOT, _VIEW, _PREP, _COMMAND, _SHM, *_WORK.values()):
                os.mkdir(folder, 0o755)
            os.chmod(_SHM, 0o1777)  # noqa: S103 - as it is everywhere
            with closing(Overlay(self)) as stage:
                yield stage
        finally:
            kernel.unmount(STAGE)

    def crew(self) -> command.Crew:
        """One in process and network namespaces of its own, for the root that is mounted when it gets its order."""
        if self._network_used():
            kernel.unshare(kernel.NEWNET)
            kernel.loopback_up()
        kernel.enter(self._own, kernel.NEWPID)  # else a second namespace could not be made
        kernel.unshare(kernel.NEWPID)
        return command.Crew(self._walls)

    def _network_used(self) -> bool:
        """Whether this process's network is not a new one any more: making one costs more than the rest of a stage.

        Sockets die with their processes. What could outlive them, such as a port that is not free again at once, needs
        a packet, and the loopback, which is all that there is, has counted it.
        """
        if not self._has_network:
            self._has_network = True
            return True
        lines = Path("/proc/self/net/dev").read_text().splitlines()
        return any(line.split()[1] != "0" for line in lines if line.lstrip().startswith("lo:"))


class Overlay:
    """One case's stage."""

    how = "overlay"
    files = _PREP
    """Where the case's own files are written, by their absolute paths."""

    def __init__(self, overlays: Overlays) -> None:
        self._overlays = overlays
        self._crew: command.Crew | None = overlays.crew()

    def open_root(self) -> None:
        """Let the case's user make entries in `/`, and touch nobody else's there; before `prepare`."""
        for layer in (_PREP, _COMMAND):  # the root of a merged view has the attributes of its upper layer
            os.chmod(layer, 0o1777)  # noqa: S103 - a machine of the case's own

    def prepare(self, order: command.Order) -> command.Ending:
        """Run the prep script: what it changes is part of the state that the command finds."""
        _mount("/", _PREP)
        try:
            return self._run(order)
        finally:
            kernel.unmount(_ROOT)

    def run(self, order: command.Order) -> command.Ending:
        """Run the command."""
        lower = f"{_PREP}:/"
        kernel.mount("overlay", _VIEW, "overlay", kernel.RDONLY, f"lowerdir={lower},redirect_dir=follow")
        _mount(lower, _COMMAND)
        return self._run(order)

    def changes(self) -> changes.Changes:
        """What the command changed."""
        caps = self._overlays.caps
        found = changes.Changes(changes.Tree(_VIEW), changes.Tree(_ROOT), caps.entries, caps.clock())
        changes.layered(found, _COMMAND)
        return found

    def close(self) -> None:
        """Send home whoever still waits for a command."""
        if self._crew:
            self._crew.dismiss()

    def _run(self, order: command.Order) -> command.Ending:
        crew, self._crew = self._crew or self._overlays.crew(), None
        return crew.run(order)


def _mount(lower: str, upper: str) -> None:
    # redirect_dir: else a rename of a folder that the image brought would fail.
    options = f"lowerdir={lower},upperdir={upper},workdir={_WORK[upper]},redirect_dir=on,index=off"
    kernel.mount("overlay", _ROOT, "overlay", _SAFE, options)


def _enter() -> None:
    """Give this process, which has a process namespace of its own, the rest of a machine."""
    kernel.unshare(kernel.NEWNS | kernel.NEWIPC)
    # Read-only: without that, even somebody without capabilities may set what belongs to uid 0.
    kernel.mount("proc", f"{_ROOT}/proc", "proc", _SAFE | kernel.NOEXEC | kernel.RDONLY, "hidepid=2")
    kernel.mount("/dev", f"{_ROOT}/dev", "", kernel.BIND)
    kernel.mount("", f"{_ROOT}/dev", "", kernel.REMOUNT | kernel.BIND | kernel.RDONLY | kernel.NOSUID)
    kernel.mount(
        "devpts", f"{_ROOT}/dev/pts", "devpts", kernel.NOSUID | kernel.NOEXEC, "newinstance,ptmxmode=0666"
    )
    kernel.mount(_SHM, f"{_ROOT}/dev/shm", "", kernel.BIND)  # noqa: S108 - a case's own
    os.chroot(_ROOT)
    os.chdir("/")


def _end(parent: int) -> int:
    """With the first process of a namespace the kernel ends all others."""
    os.kill(parent, signal.SIGKILL)
    return os.waitpid(parent, 0)[1]
