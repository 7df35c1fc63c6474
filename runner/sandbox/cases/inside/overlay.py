"""Isolation with mounts: a fresh root for each case, made of three layers.

    the installed root    the container's own, read by all cases and written by none
    prep                  the case's files, and the effects of its prep script
    command               the effects of its command: ΔS

The layers of a case lie in one tmpfs of limited size, which is unmounted at its end.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from runner.sandbox.cases.inside import changes, command, syscalls
from runner.sandbox.cases.inside.machine_root import STAGE

_ROOT, _VIEW, _PREP, _COMMAND, _SHM = (
    f"{STAGE}/{part}" for part in ("root", "view", "prep", "command", "shm")
)
_WORK = {_PREP: f"{STAGE}/prep-work", _COMMAND: f"{STAGE}/command-work"}
"""Upper layer -> the work folder that the kernel needs beside it."""
_SAFE = syscalls.NOSUID | syscalls.NODEV


class Overlays:
    """Makes stages, one at a time: its process has its own mounts, and all stages lie at one path."""

    def __init__(self, size: str, caps: changes.Caps, become: Callable[[], None]) -> None:
        self.caps = caps
        self._size = size
        self._isolation = command.Isolation(_enter, become, _end)
        self._has_network = False
        self._own = os.open("/proc/self/ns/pid", os.O_RDONLY)

    @contextmanager
    def fresh(self) -> Iterator[Overlay]:
        """Yield a clean machine, removed without trace at the end."""
        syscalls.mount("tmpfs", STAGE, "tmpfs", _SAFE, f"{self._size},mode=0755")
        try:
            for folder in (_ROOT, _VIEW, _PREP, _COMMAND, _SHM, *_WORK.values()):
                os.mkdir(folder, 0o755)
            os.chmod(_SHM, 0o1777)  # noqa: S103 - its usual mode
            with closing(Overlay(self)) as stage:
                yield stage
        finally:
            syscalls.unmount(STAGE)

    def crew(self) -> command.Crew:
        """Return a crew in its own process and network namespaces, for the root that is mounted when it gets
        its order.
        """
        if self._network_used():
            syscalls.unshare(syscalls.NEWNET)
            syscalls.loopback_up()
        syscalls.enter(self._own, syscalls.NEWPID)  # otherwise a second namespace could not be made
        syscalls.unshare(syscalls.NEWPID)
        return command.Crew(self._isolation)

    def _network_used(self) -> bool:
        """Return whether this process's network has been used. Making a new one takes longer than the rest of a stage.

        Sockets die with their processes. Whatever could outlive them, such as a port that is not free again at once,
        needs a packet, and the loopback, the only interface, has counted it.
        """
        if not self._has_network:
            self._has_network = True
            return True
        lines = Path("/proc/self/net/dev").read_text().splitlines()
        return any(line.split()[1] != "0" for line in lines if line.lstrip().startswith("lo:"))


class Overlay:
    """The stage of one case."""

    how = "overlay"
    files = _PREP
    """Prefix of the paths of the case's own files."""

    def __init__(self, overlays: Overlays) -> None:
        self._overlays = overlays
        self._crew: command.Crew | None = overlays.crew()

    def open_root(self) -> None:
        """Let the case's user make entries in `/`, without touching others' entries there. Call before `prepare`."""
        for layer in (_PREP, _COMMAND):  # a merged view's root has the attributes of its upper layer
            os.chmod(layer, 0o1777)  # noqa: S103 - the machine is the case's own

    def prepare(self, order: command.Order) -> command.Ending:
        """Run the prep script. Its changes are part of the state that the command finds."""
        _mount("/", _PREP)
        try:
            return self._run(order)
        finally:
            syscalls.unmount(_ROOT)

    def run(self, order: command.Order) -> command.Ending:
        """Run the command."""
        lower = f"{_PREP}:/"
        syscalls.mount("overlay", _VIEW, "overlay", syscalls.RDONLY, f"lowerdir={lower},redirect_dir=follow")
        _mount(lower, _COMMAND)
        return self._run(order)

    def changes(self) -> changes.Changes:
        """Return what the command changed."""
        caps = self._overlays.caps
        found = changes.Changes(changes.Tree(_VIEW), changes.Tree(_ROOT), caps.entries, caps.clock())
        changes.layered(found, _COMMAND)
        return found

    def close(self) -> None:
        """Dismiss the crew if it still waits for a command."""
        if self._crew:
            self._crew.dismiss()

    def _run(self, order: command.Order) -> command.Ending:
        crew, self._crew = self._crew or self._overlays.crew(), None
        return crew.run(order)


def _mount(lower: str, upper: str) -> None:
    # redirect_dir: without it, renaming a folder of the image would fail.
    options = f"lowerdir={lower},upperdir={upper},workdir={_WORK[upper]},redirect_dir=on,index=off"
    syscalls.mount("overlay", _ROOT, "overlay", _SAFE, options)


def _enter() -> None:
    """Give this process, which has its own process namespace, the rest of a machine."""
    syscalls.unshare(syscalls.NEWNS | syscalls.NEWIPC)
    # Read-only: otherwise even a process without capabilities may set what belongs to uid 0.
    syscalls.mount("proc", f"{_ROOT}/proc", "proc", _SAFE | syscalls.NOEXEC | syscalls.RDONLY, "hidepid=2")
    syscalls.mount("/dev", f"{_ROOT}/dev", "", syscalls.BIND)
    syscalls.mount(
        "", f"{_ROOT}/dev", "", syscalls.REMOUNT | syscalls.BIND | syscalls.RDONLY | syscalls.NOSUID
    )
    syscalls.mount(
        "devpts", f"{_ROOT}/dev/pts", "devpts", syscalls.NOSUID | syscalls.NOEXEC, "newinstance,ptmxmode=0666"
    )
    syscalls.mount(_SHM, f"{_ROOT}/dev/shm", "", syscalls.BIND)  # noqa: S108 - a case's own
    os.chroot(_ROOT)
    os.chdir("/")


def _end(parent: int) -> int:
    """Kill the namespace's first process; the kernel ends all others with it."""
    os.kill(parent, signal.SIGKILL)
    return os.waitpid(parent, 0)[1]
