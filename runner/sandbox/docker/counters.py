"""What the kernel counts of a container, read from outside, where nothing inside can change it."""

from __future__ import annotations

from pathlib import Path

from runner.records import Counted

COUNTS = Path("/sys/fs/cgroup")
FILES = {"memory": "memory.oom_control", "": "memory.events"}
"""Name of a control group's controllers, none in version 2 -> the file that says how many were killed."""


def counted(pid: int, container: str, *, own_network: bool) -> Counted:
    """What is known of it; nothing when `pid`, of its first process, is not on this machine: dead, or its engine
    elsewhere. Without an own network its packets are this machine's too, and not looked at.
    """
    process = Path("/proc", str(pid))
    try:
        groups = (process / "cgroup").read_text()
        if container not in groups:  # another's, as this process sees them
            return Counted()
        return Counted(
            unrouted=_unrouted(process / "net") if own_network else None, memory_kills=_memory_kills(groups)
        )
    except OSError:
        return Counted()


def lives(pid: int, container: str) -> bool:
    """Whether its first process runs, as seen from this machine; False also where `pid` is another machine's."""
    process = Path("/proc", str(pid))
    try:
        state = (process / "stat").read_text().rpartition(")")[2].split()[0]
        return state not in "ZX" and container in (process / "cgroup").read_text()
    except OSError:
        return False


def _unrouted(net: Path) -> int:
    names, values = (
        line.split() for line in (net / "snmp").read_text().splitlines() if line.startswith("Ip: ")
    )
    old = int(values[names.index("OutNoRoutes")])
    new = dict(map(str.split, (net / "snmp6").read_text().splitlines())) if (net / "snmp6").exists() else {}
    return old + int(new.get("Ip6OutNoRoutes", 0))


def _memory_kills(groups: str) -> int | None:
    """From the container's control group, by `/proc/<pid>/cgroup`: version 1 has one a controller, 2 one for all."""
    for line in groups.splitlines():
        _, controllers, path = line.split(":", 2)
        file = COUNTS / controllers / path.lstrip("/") / FILES.get(controllers, "")
        if file.is_file():
            return int(dict(map(str.split, file.read_text().splitlines()))["oom_kill"])
    return None
