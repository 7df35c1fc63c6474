"""Way two, where mounts are not permitted: one root, put back after each case.

A case can write to a handful of folders only (`ground.folders`), which the engine made tmpfs of limited size. They
are empty before each case, and what is in them after prep is the state that the command finds.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from runner.sandbox.cases.inside import changes, command, kernel, person
from runner.sandbox.cases.inside.ground import Folder, folders

_SHARED_MEMORY = Folder("/dev/shm", 0, 0o1777)  # noqa: S108 - a case's own
_QUEUES = Folder("/dev/mqueue", 0, 0o1777)
_TABLES = {"shm": "shmctl", "sem": "semctl", "msg": "msgctl"}
"""System V objects, which outlive their makers -> the call that removes one."""
_IPC_RMID = 0
_EVERYBODY = -1


class Copies:
    """Makes stages. One at a time, and alone in its container: all stages are the same root."""

    def __init__(self, files_root: str, caps: changes.Caps, become: Callable[[], None]) -> None:
        self.caps = caps
        self.watched = folders(files_root)
        self.walls = command.Walls(_nothing, become, _end)
        kernel.adopt_orphans()

    @contextmanager
    def fresh(self) -> Iterator[Copy]:
        """The root as it was installed; put back at the end."""
        try:
            yield Copy(self)
        finally:
            for folder in (*self.watched, _SHARED_MEMORY, _QUEUES):
                folder.clear()
            _remove_objects()


class Copy:
    """One case's stage."""

    how = "copy"
    files = ""
    """Where the case's own files are written, by their absolute paths."""

    def __init__(self, copies: Copies) -> None:
        self._copies = copies
        self._paths = [os.fsencode(folder.path) for folder in copies.watched]

    def open_root(self) -> None:
        """Do nothing: the root is that of all cases, and what was added to it would not be removed."""

    def prepare(self, order: command.Order) -> command.Ending:
        """Run the prep script."""
        return command.Crew(self._copies.walls).run(order)

    def run(self, order: command.Order) -> command.Ending:
        """Run the command, after a look at what is there."""
        self._before = changes.Frozen(changes.Tree("/"), self._paths, self._copies.caps.clock())
        return command.Crew(self._copies.walls).run(order)

    def changes(self) -> changes.Changes:
        """What the command changed."""
        found = changes.Changes(
            self._before, changes.Tree("/"), self._copies.caps.entries, self._copies.caps.clock()
        )
        if self._before.cut:
            found.truncated.add("diff_seconds")
        for path in self._paths:
            found.compare(path)
        return found


def _nothing() -> None:
    """No namespaces: they are not permitted."""


def _end(parent: int) -> int:
    """Kill all of the case's user at once, then wait for what the kernel gave to us of them.

    Sent to everybody by somebody who may kill nobody else, so that no process can be born meanwhile and be missed. For
    that moment they could kill us too; then the case is lost, and nothing else.
    """
    os.setresuid(person.UID, person.UID, 0)
    try:
        os.kill(_EVERYBODY, signal.SIGKILL)
    except ProcessLookupError:
        pass
    finally:
        os.setresuid(0, 0, 0)
    os.kill(parent, signal.SIGKILL)
    status = os.waitpid(parent, 0)[1]
    while True:
        try:
            os.waitpid(_EVERYBODY, 0)
        except ChildProcessError:
            return status


def _remove_objects() -> None:
    libc = ctypes.CDLL(None)
    with person.acting():  # whose they are: nobody else may remove them
        for table, call in _TABLES.items():
            for line in Path("/proc/sysvipc", table).read_text().splitlines()[1:]:
                identity = int(line.split()[1])
                arguments = (identity, 0, _IPC_RMID) if table == "sem" else (identity, _IPC_RMID, None)
                getattr(libc, call)(*arguments)
