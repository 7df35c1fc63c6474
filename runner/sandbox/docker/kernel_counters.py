"""The kernel's counters of a container, read from outside, where nothing inside can change them."""

from __future__ import annotations

from pathlib import Path

from runner.records import Counted

COUNTS = Path("/sys/fs/cgroup")
FILES = {"memory": "memory.oom_control", "": "memory.events"}
"""Controllers of a control group (empty in version 2) -> the file that counts its killed processes."""


def read(pid: int, container: str, *, own_network: bool) -> Counted:
    """Return the counters of a container; none if its first process, `pid`, is not on this machine.

    The process may be dead, or its engine may run elsewhere. A container without a network of its own shares this
    machine's packets, so they are not counted.
    """
    process = Path("/proc", str(pid))
    try:
        groups = (process / "cgroup").read_text()
        if container not in groups:  # the pid belongs to another process here
            return Counted()
        return Counted(
            unrouted=_unrouted(process / "net") if own_network else None, memory_kills=_memory_kills(groups)
        )
    except OSError:
        return Counted()


def _unrouted(net: Path) -> int:
    names, values = (
        line.split() for line in (net / "snmp").read_text().splitlines() if line.startswith("Ip: ")
    )
    old = int(values[names.index("OutNoRoutes")])
    new = dict(map(str.split, (net / "snmp6").read_text().splitlines())) if (net / "snmp6").exists() else {}
    return old + int(new.get("Ip6OutNoRoutes", 0))


def _memory_kills(groups: str) -> int | None:
    """Return the number of killed processes of the control group in `/proc/<pid>/cgroup`.

    Version 1 has one group per controller, version 2 one for all.
    """
    for line in groups.splitlines():
        _, controllers, path = line.split(":", 2)
        file = COUNTS / controllers / path.lstrip("/") / FILES.get(controllers, "")
        if file.is_file():
            return int(dict(map(str.split, file.read_text().splitlines()))["oom_kill"])
    return None
