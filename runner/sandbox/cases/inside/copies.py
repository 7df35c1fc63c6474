"""Isolation without mounts: one root, restored after each case.

A case can write only to a handful of folders (`root.folders`), which the engine made as tmpfs of limited size. They
are empty before each case. Their content after prep is the state that the command finds.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from runner.sandbox.cases.inside import changes, command, syscalls, user
from runner.sandbox.cases.inside.machine_root import Folder, folders

_SHARED_MEMORY = Folder("/dev/shm", 0, 0o1777)  # noqa: S108 - a case's own
_QUEUES = Folder("/dev/mqueue", 0, 0o1777)
_TABLES = {"shm": "shmctl", "sem": "semctl", "msg": "msgctl"}
"""Tables of System V objects, which outlive their makers -> the call that removes one."""
_IPC_RMID = 0
_EVERYBODY = -1


class Copies:
    """Makes stages, one at a time and alone in its container: all stages are the same root."""

    def __init__(self, files_root: str, caps: changes.Caps, become: Callable[[], None]) -> None:
        self.caps = caps
        self.watched = folders(files_root)
        self.isolation = command.Isolation(_nothing, become, _end)
        syscalls.adopt_orphans()

    @contextmanager
    def fresh(self) -> Iterator[Copy]:
        """Yield the root as it was installed, and restore it at the end."""
        try:
            yield Copy(self)
        finally:
            for folder in (*self.watched, _SHARED_MEMORY, _QUEUES):
                folder.clear()
            _remove_objects()


class Copy:
    """The stage of one case."""

    how = "copy"
    files = ""
    """Prefix of the paths of the case's own files."""

    def __init__(self, copies: Copies) -> None:
        self._copies = copies
        self._paths = [os.fsencode(folder.path) for folder in copies.watched]

    def open_root(self) -> None:
        """Do nothing: all cases share the root, and additions to it would not be removed."""

    def prepare(self, order: command.Order) -> command.Ending:
        """Run the prep script."""
        return command.Crew(self._copies.isolation).run(order)

    def run(self, order: command.Order) -> command.Ending:
        """Record the state, then run the command."""
        self._before = changes.Frozen(changes.Tree("/"), self._paths, self._copies.caps.clock())
        return command.Crew(self._copies.isolation).run(order)

    def changes(self) -> changes.Changes:
        """Return what the command changed."""
        found = changes.Changes(
            self._before, changes.Tree("/"), self._copies.caps.entries, self._copies.caps.clock()
        )
        if self._before.cut:
            found.truncated.add("diff_seconds")
        for path in self._paths:
            found.compare(path)
        return found


def _nothing() -> None:
    """Enter nothing: namespaces are not permitted."""


def _end(parent: int) -> int:
    """Kill all processes of the case's user at once, then wait for those that this process inherited.

    The signal goes to every process, from a user who may kill nobody else, so no new process can be missed. For that
    moment those processes could kill this one too. Then the case is lost, and nothing else.
    """
    os.setresuid(user.UID, user.UID, 0)
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
    with user.acting():  # the objects' owner: nobody else may remove them
        for table, call in _TABLES.items():
            for line in Path("/proc/sysvipc", table).read_text().splitlines()[1:]:
                identity = int(line.split()[1])
                arguments = (identity, 0, _IPC_RMID) if table == "sem" else (identity, _IPC_RMID, None)
                getattr(libc, call)(*arguments)
