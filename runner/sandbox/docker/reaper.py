"""Owners of containers: their labels, the test whether they are alive, and the removal of what dead owners left.

A killed process cleans nothing up, and its pid may later belong to another process. So everything of ours names its
owner by node, pid and start time. It also carries a lease for other nodes, which cannot see the pid.
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
from runner.sandbox.docker import stuck_containers
from runner.sandbox.docker.engine import call
from runner.sandbox.docker.engine_faults import ENGINE_FAULTS, engine_faults

OWNER_PID = "assay.owner_pid"
OWNER_START = "assay.owner_start"
NODE = "assay.node"
LEASE = "assay.lease"
"""Unix time after which other nodes treat the owner as dead."""
_OWNED = json.dumps({"label": [OWNER_PID]})
"""Filter of everything that has an owner."""
LEASE_SECONDS = 24 * 3600
"""Length of a lease. Sandboxes do not live that long, unless a budget has no limit on wall time."""
LIST_SECONDS = 60.0
"""Longest wait for the engine to list containers or images, or to remove an image."""
AT_ONCE = 4
"""Number of containers removed at a time, so that one that cannot be removed does not hold up the others."""
RELEASE_SECONDS = 5.0
"""Longest wait for one container when an ending process removes its own."""
RELEASES = 2
"""Number of times that an ending process looks for its containers: one of its threads may just be starting one."""


def owner_labels() -> dict[str, str]:
    """Return labels that name this process as the owner. A snapshot inherits those of its container."""
    return {
        OWNER_PID: str(os.getpid()),
        OWNER_START: _start(os.getpid()) or "",
        NODE: _node(),
        LEASE: str(int(time.time()) + LEASE_SECONDS),
    }


def is_abandoned(labels: Mapping[str, str]) -> bool:
    """Return whether an object with these labels has no living owner.

    That is so if the owner is gone from this node, if the lease of one that cannot be seen from here has expired, or if
    the labels are malformed: a Dockerfile may set any labels.
    """
    try:
        pid, lease = int(labels[OWNER_PID]), int(labels[LEASE])
    except (KeyError, ValueError):
        return True
    if labels.get(NODE) == _node() and not _is_hidden(pid):
        return _start(pid) != labels.get(OWNER_START)
    return lease < time.time()


def reap(
    api: APIClient,
    say: Callable[[str], None] = lambda _: None,
    seconds: float = stuck_containers.REMOVE_SECONDS,
) -> Reaped:
    """Remove abandoned containers with their anonymous volumes, and abandoned snapshots.

    `say` is told their number before the first is removed. A container that the engine cannot remove within about three
    times `seconds` is left. Bundles and task images have no owner and stay. Raises `EngineError`.
    """
    with engine_faults("looking for what dead runners left"):
        containers = [found for found in _containers(api) if is_abandoned(found["Labels"])]
        images = [found for found in _owned(api, "/images/json") if is_abandoned(found["Labels"])]
    if containers:
        say(f"removing {_number(len(containers))} that a dead run left")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        gone = list(pool.map(lambda found: stuck_containers.remove(api, found["Id"], seconds), containers))
    remove_networks_and_volumes(api, is_abandoned)
    for image in images:
        with suppress(*ENGINE_FAULTS):  # another image may depend on it
            # Without `noprune`, the engine would also remove nameless images beneath it, which living runs may use.
            call(api, "DELETE", f"/images/{image['Id']}", LIST_SECONDS, force=1, noprune=1)
    left = tuple(
        c["Names"][0].lstrip("/") for c, is_gone in zip(containers, gone, strict=True) if not is_gone
    )
    return Reaped(removed=sum(gone), left=left)


def release(api: APIClient) -> None:
    """Remove the containers of this process, whatever runs in them. Failures are left to the next runner."""
    mine = owner_labels()
    with suppress(*ENGINE_FAULTS), ThreadPoolExecutor(AT_ONCE) as pool:
        for _ in range(RELEASES):
            found = [each["Id"] for each in _containers(api) if _same_owner(each["Labels"], mine)]
            list(pool.map(lambda container: stuck_containers.remove(api, container, RELEASE_SECONDS), found))
        remove_networks_and_volumes(api, lambda labels: _same_owner(labels, mine))


def remove_networks_and_volumes(api: APIClient, chosen: Callable[[Mapping[str, str]], bool]) -> None:
    """Remove the owned networks and volumes of which `chosen` is true. What a container still uses stays."""
    with suppress(*ENGINE_FAULTS):
        networks = _owned(api, "/networks")
        volumes = call(api, "GET", "/volumes", LIST_SECONDS, filters=_OWNED).json()["Volumes"] or ()
        paths = [f"/networks/{each['Id']}" for each in networks if chosen(each["Labels"])]
        paths += [f"/volumes/{each['Name']}" for each in volumes if chosen(each["Labels"])]
        for path in paths:
            with suppress(*ENGINE_FAULTS):
                call(api, "DELETE", path, LIST_SECONDS)


def _containers(api: APIClient) -> list[dict[str, Any]]:
    return _owned(api, "/containers/json", all=1)


def _owned(api: APIClient, path: str, **params: int) -> list[dict[str, Any]]:
    """Return the engine's list of objects with an owner's labels."""
    found: list[dict[str, Any]] = call(api, "GET", path, LIST_SECONDS, filters=_OWNED, **params).json()
    return found


def _same_owner(labels: Mapping[str, str], owner: Mapping[str, str]) -> bool:
    return all(labels.get(name) == owner[name] for name in (OWNER_PID, OWNER_START, NODE))


def _number(containers: int) -> str:
    return f"{containers} container{'' if containers == 1 else 's'}"


def _node() -> str:
    """Return an identifier of this machine and pid namespace, outside of which our pids mean nothing."""
    return f"{socket.gethostname()}/{Path('/proc/self/ns/pid').stat().st_ino}"


def _is_hidden(pid: int) -> bool:
    """Return whether a process of another user lives that /proc does not show here (mounted with `hidepid`)."""
    try:
        Path(f"/proc/{pid}/stat").read_bytes()
    except PermissionError:
        return True
    except (FileNotFoundError, ProcessLookupError):
        try:
            os.kill(pid, 0)
        except PermissionError:
            return True
        except (ProcessLookupError, OverflowError):
            return False
    return False


def _start(pid: int) -> str | None:
    """Return when a process started, as boot id and clock ticks; None if it does not exist or is a zombie."""
    try:
        # The second field, the program's name, may contain anything, but ends at the last parenthesis.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, started = fields[0], fields[19]
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return None if state in "ZX" else f"{boot}/{started}"
