"""What the kernel counts of a container's network, read from outside, where nothing inside can change it."""

from __future__ import annotations

from pathlib import Path


def unrouted(pid: int, container: str) -> int | None:
    """How often its processes sent or connected to an address that no route leads to, which fails at once.

    `pid` is of the container's first process, on this machine; None if it is not there, as that of a dead container or
    of an engine elsewhere.
    """
    process = Path("/proc", str(pid))
    try:
        if container not in (process / "cgroup").read_text():  # another's, as this process sees them
            return None
        snmp, snmp6 = process / "net" / "snmp", process / "net" / "snmp6"
        names, values = (line.split() for line in snmp.read_text().splitlines() if line.startswith("Ip: "))
        old = int(values[names.index("OutNoRoutes")])
        new = dict(map(str.split, snmp6.read_text().splitlines())) if snmp6.exists() else {}
    except OSError:
        return None
    return old + int(new.get("Ip6OutNoRoutes", 0))
