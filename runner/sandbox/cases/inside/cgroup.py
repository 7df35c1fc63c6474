"""A lane's own share of the container's memory and processes, so that one lane's case cannot starve another's."""

from __future__ import annotations

import os
from pathlib import Path

from runner.sandbox.cases.inside import syscalls

OWN_MB = 48
"""MiB for the supervisor itself."""
OWN_PIDS = 3
"""Processes for the supervisor and a case's parent, and one to spare."""


def join(place: str, lane: str, memory_mb: int, pids: int) -> None:
    """Put this process, and so every case that it starts, into a control group with these limits.

    `place` is a folder to mount on for a moment, in a mount namespace of this process's own. The container has its own
    control group namespace, so no group above it is in reach. Raises `OSError` where the engine does not permit this;
    then only the container's limits hold.
    """
    memory, processes = str((memory_mb + OWN_MB) << 20), str(pids + OWN_PIDS)
    if Path("/sys/fs/cgroup/cgroup.controllers").exists():
        _unified(Path(place), lane, {"memory.max": memory, "pids.max": processes})
    else:
        _separate(Path(place, lane), "memory", {"memory.limit_in_bytes": memory})
        _separate(Path(place, lane), "pids", {"pids.max": processes})
    syscalls.unshare(syscalls.NEWCGROUP)  # a case sees its group as the root, the same in every lane


def _separate(group: Path, controller: str, limits: dict[str, str]) -> None:
    """Enter a group of version 1, which has one hierarchy per controller."""
    place = str(group.parent)
    syscalls.mount("cgroup", place, "cgroup", 0, controller)
    try:
        _enter(group, limits)
    finally:
        syscalls.unmount(place)


def _unified(place: Path, lane: str, limits: dict[str, str]) -> None:
    """Enter a group of version 2. There a group with controllers has no processes, so the existing ones move to a
    sibling.
    """
    syscalls.mount("cgroup2", str(place), "cgroup2")
    try:
        rest = place / "rest"
        rest.mkdir(exist_ok=True)
        for pid in (place / "cgroup.procs").read_text().split():
            (rest / "cgroup.procs").write_text(pid)
        (place / "cgroup.subtree_control").write_text("+memory +pids")
        _enter(place / lane, limits)
    finally:
        syscalls.unmount(str(place))


def _enter(group: Path, limits: dict[str, str]) -> None:
    group.mkdir(exist_ok=True)
    for name, value in limits.items():
        (group / name).write_text(value)
    (group / "cgroup.procs").write_text(str(os.getpid()))
