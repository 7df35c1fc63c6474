"""Owners: who started a container, whether they still live, and the removal of what dead ones left.

A process that is killed cleans nothing up, and its pid may come back as another's. So everything of ours names its
owner by node, pid and start time, and carries a lease for the eyes of other nodes, which cannot see the pid.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from docker import APIClient
from docker.errors import APIError

from runner.records import Reaped
from runner.sandbox import stuck
from runner.sandbox.faults import engine_faults

OWNER_PID = "assay.owner_pid"
OWNER_START = "assay.owner_start"
NODE = "assay.node"
LEASE = "assay.lease"
"""Unix time after which another node no longer believes that somebody owns it."""
LEASE_SECONDS = 24 * 3600
"""Longer than sandboxes live; only a budget without a wall limit knows no bound."""


def owned() -> dict[str, str]:
    """Labels of what this process starts now. A snapshot inherits those of its container."""
    return {
        OWNER_PID: str(os.getpid()),
        OWNER_START: _start(os.getpid()) or "",
        NODE: _node(),
        LEASE: str(int(time.time()) + LEASE_SECONDS),
    }


def abandoned(labels: Mapping[str, str]) -> bool:
    """Whether nobody owns what carries these labels: its owner is gone from this node, another's lease ran out, or they
    are none that a runner wrote; a Dockerfile may say what it likes.
    """
    try:
        pid, lease = int(labels[OWNER_PID]), int(labels[LEASE])
    except (KeyError, ValueError):
        return True
    if labels.get(NODE) == _node():
        return _start(pid) != labels.get(OWNER_START)
    return lease < time.time()


def reap(api: APIClient, seconds: float = stuck.REMOVE_SECONDS) -> Reaped:
    """Remove abandoned containers with their anonymous volumes, and abandoned snapshots.

    A container that the engine cannot remove within about thrice `seconds` is left. Bundles and task images have no
    owner and stay. Raises `EngineError`.
    """
    ours = {"label": OWNER_PID}
    removed, left = 0, []
    with engine_faults("removing what dead runners left"):
        for container in api.containers(all=True, filters=ours):
            if abandoned(container["Labels"]):
                if stuck.remove(api, container["Id"], seconds):
                    removed += 1
                else:
                    left.append(container["Names"][0].lstrip("/"))
        for image in api.images(filters=ours):
            if abandoned(image["Labels"]):
                with suppress(APIError):
                    api.remove_image(image["Id"], force=True)
    return Reaped(removed=removed, left=tuple(left))


def _node() -> str:
    """This machine and pid namespace: only here does a pid of ours mean anything."""
    return f"{socket.gethostname()}/{Path('/proc/self/ns/pid').stat().st_ino}"


def _start(pid: int) -> str | None:
    """When a process started: boot and clock ticks since; None if there is none. A zombie has ended."""
    try:
        # The second field, the program's name, may hold anything, but ends with the last parenthesis.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, started = fields[0], fields[19]
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return None if state in "ZX" else f"{boot}/{started}"
