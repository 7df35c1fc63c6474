"""Owners: who started a container, whether they still live, and the removal of what dead ones left.

A process that is killed cleans nothing up, and its pid may come back as another's. So everything of ours names its
owner by node, pid and start time, and carries a lease for the eyes of other nodes, which cannot see the pid.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from docker import APIClient

from runner.records import Reaped
from runner.sandbox.docker import stuck
from runner.sandbox.docker.engine import call
from runner.sandbox.docker.faults import ENGINE_FAULTS, engine_faults

OWNER_PID = "assay.owner_pid"
OWNER_START = "assay.owner_start"
NODE = "assay.node"
LEASE = "assay.lease"
"""Unix time after which another node no longer believes that somebody owns it."""
LEASE_SECONDS = 24 * 3600
"""Longer than sandboxes live; only a budget without a wall limit knows no bound."""
LIST_SECONDS = 60.0
"""Longest wait for the engine to list containers or images, and to remove an image."""
AT_ONCE = 4
"""Containers that are removed at a time: one that the engine cannot remove holds up no other."""
RELEASE_SECONDS = 5.0
"""Longest wait for one container when a process that is about to end removes its own."""
RELEASES = 2
"""Times that such a process looks for containers: a thread of it may just be starting one."""


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


def reap(
    api: APIClient, say: Callable[[str], None] = lambda _: None, seconds: float = stuck.REMOVE_SECONDS
) -> Reaped:
    """Remove abandoned containers with their anonymous volumes, and abandoned snapshots.

    `say` hears how many there are before the first is removed. A container that the engine cannot remove within about
    thrice `seconds` is left. Bundles and task images have no owner and stay. Raises `EngineError`.
    """
    with engine_faults("looking for what dead runners left"):
        containers = [found for found in _containers(api) if abandoned(found["Labels"])]
        images = [found for found in _owned(api, "/images/json") if abandoned(found["Labels"])]
    if containers:
        say(f"removing {_counted(len(containers))} that a dead run left")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        gone = list(pool.map(lambda found: stuck.remove(api, found["Id"], seconds), containers))
    for image in images:
        with suppress(*ENGINE_FAULTS):  # another image may stand on it
            call(api, "DELETE", f"/images/{image['Id']}", LIST_SECONDS, force=1)
    left = tuple(
        c["Names"][0].lstrip("/") for c, is_gone in zip(containers, gone, strict=True) if not is_gone
    )
    return Reaped(removed=sum(gone), left=left)


def release(api: APIClient) -> None:
    """Remove the containers of this process, whatever runs in them. Failures are left to the next runner."""
    mine = owned()
    with suppress(*ENGINE_FAULTS), ThreadPoolExecutor(AT_ONCE) as pool:
        for _ in range(RELEASES):
            found = [each["Id"] for each in _containers(api) if _same_owner(each["Labels"], mine)]
            list(pool.map(lambda container: stuck.remove(api, container, RELEASE_SECONDS), found))


def _containers(api: APIClient) -> list[dict[str, Any]]:
    return _owned(api, "/containers/json", all=1)


def _owned(api: APIClient, path: str, **params: int) -> list[dict[str, Any]]:
    """What the engine lists that carries an owner's labels."""
    filters = json.dumps({"label": [OWNER_PID]})
    found: list[dict[str, Any]] = call(api, "GET", path, LIST_SECONDS, filters=filters, **params).json()
    return found


def _same_owner(labels: Mapping[str, str], owner: Mapping[str, str]) -> bool:
    return all(labels.get(name) == owner[name] for name in (OWNER_PID, OWNER_START, NODE))


def _counted(containers: int) -> str:
    return f"{containers} container{'' if containers == 1 else 's'}"


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
