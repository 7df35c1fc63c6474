"""Containers that the engine cannot end or remove because of what an agent did in them.

The engine looks for users in the container's own `/etc/passwd`. Where that is a named pipe the engine waits with the
container locked, and every later call for that container waits behind it. The engine also fails to remove folders that
are nested deeper than it may open files. Both are undone from outside: by this process where it has the rights, else in
a container of the base image, which every user of the engine may start.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from docker import APIClient
from docker.errors import APIError, NotFound
from docker.types import LogConfig, Mount
from requests.exceptions import RequestException

from runner.sandbox.docker import base, stuck_inside
from runner.sandbox.docker.engine import call
from runner.sandbox.docker.faults import CONFLICT, ENGINE_FAULTS, NOT_FOUND

KILL_SECONDS = 30.0
"""Longest wait for the engine to kill a container; the engine itself waits 10 s for the container's death."""
REMOVE_SECONDS = 60.0
"""Longest wait for the engine to remove a container."""
PING_SECONDS = 10.0
"""Longest wait for a sign of life of the engine."""
HELPER_SECONDS = 60
"""Longest run of a container that helps."""
PAUSE_SECONDS = 0.5
"""Between two tries to remove a container."""
GROUPS = Path("/sys/fs/cgroup")
DOOMED, LAYERS, SEEN_GROUPS, PROGRAM = "/doomed", "/layers", "/groups", "/stuck_inside.py"


def answers(api: APIClient) -> bool:
    """Whether the engine answers at all; a call that stays unanswered is then one container's trouble."""
    try:
        return call(api, "GET", "/_ping", PING_SECONDS).ok
    except ENGINE_FAULTS:
        return False


def kill(api: APIClient, container: str, seconds: float = KILL_SECONDS) -> None:
    """End every process of a container, past the engine if need be; one that is dead or gone already is no error.

    Raises `RequestException` when not even that helps within about twice `seconds`, and `APIError`.
    """
    for is_last in (False, True):
        try:
            call(api, "POST", f"/containers/{container}/kill", seconds)
        except APIError as error:
            if error.status_code not in (NOT_FOUND, CONFLICT):
                raise
        except RequestException:
            if is_last:
                raise
            end(api, container)
            continue
        return


def remove(api: APIClient, container: str, seconds: float = REMOVE_SECONDS) -> bool:
    """Remove a container with its anonymous volumes; whether it is gone. Takes at most about thrice `seconds`.

    An engine that does not answer, or cannot, is no error: the container is then left.
    """
    until = time.monotonic() + 2 * seconds
    while time.monotonic() < until:
        try:
            call(api, "DELETE", f"/containers/{container}", seconds, force=1, v=1)
        except NotFound:
            return True
        except APIError as error:
            if error.status_code != CONFLICT:  # else it is being removed, perhaps by an earlier call of ours
                with suppress(*ENGINE_FAULTS):
                    flatten(api, container)
            time.sleep(PAUSE_SECONDS)
        except RequestException:
            if not answers(api):
                return False
            with suppress(*ENGINE_FAULTS):
                end(api, container)
        else:
            return True
    return False


def end(api: APIClient, container: str) -> None:
    """Kill the container's processes, and those of the engine that wait in it, without the engine."""
    folder = Path(api.info()["DockerRootDir"], "image", "overlay2", "layerdb", "mounts")
    if os.geteuid() == 0 and stuck_inside.end(container, folder, GROUPS):
        return
    layers = Mount(LAYERS, str(folder), type="bind", read_only=True)
    groups = Mount(SEEN_GROUPS, str(GROUPS), type="bind")
    command = ("end", container, LAYERS, SEEN_GROUPS)
    _help(api, command, pid_mode="host", cap_add=["KILL"], mounts=[layers, groups])


def flatten(api: APIClient, container: str) -> None:
    """Let no folder that a dead container wrote lie deeper than the engine can remove."""
    found = call(api, "GET", f"/containers/{container}/json", PING_SECONDS).json()
    doomed = Mount(DOOMED, found["GraphDriver"]["Data"]["UpperDir"], type="bind")
    _help(api, ("flatten", DOOMED), cap_add=["DAC_OVERRIDE", "FOWNER"], mounts=[doomed])


def _help(api: APIClient, arguments: tuple[str, ...], mounts: list[Mount], **host: Any) -> None:
    """Run `stuck_inside` as root in a container that has nothing but what is named."""
    program = Mount(PROGRAM, str(Path(stuck_inside.__file__)), type="bind", read_only=True)
    created = api.create_container(
        base.tag(),
        ["python3", "-I", "-S", PROGRAM, *arguments],
        user="0",
        labels={"assay.role": "build"},
        network_disabled=True,
        host_config=api.create_host_config(
            network_mode="none",
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            log_config=LogConfig(type="none"),
            mounts=[program, *mounts],
            **host,
        ),
    )["Id"]
    try:
        api.start(created)
        api.wait(created, timeout=HELPER_SECONDS)
    finally:
        call(api, "DELETE", f"/containers/{created}", REMOVE_SECONDS, force=1)
