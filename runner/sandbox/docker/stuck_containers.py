"""Containers that the engine cannot end or remove because of what an agent did in them.

The engine looks up users in the container's own `/etc/passwd`. If that is a named pipe, the engine waits while it holds
the container's lock, and every later call for that container waits too. The engine also fails to remove folders that
are nested deeper than its limit on open files. Both are repaired from outside: by this process if it has the rights,
else in a container of the base image, which every user of the engine may start.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from docker import APIClient
from docker.errors import APIError, NotFound
from docker.types import LogConfig, Mount
from requests.exceptions import RequestException

from runner.errors import EngineError, SpoiledMachine
from runner.sandbox.docker import base_image, stuck_containers_inside
from runner.sandbox.docker.engine import call
from runner.sandbox.docker.engine_faults import CONFLICT, ENGINE_FAULTS, NOT_FOUND, engine_faults, gone

KILL_SECONDS = 30.0
"""Longest wait for the engine to kill a container; the engine itself waits 10 s for the container's death."""
REMOVE_SECONDS = 60.0
"""Longest wait for the engine to remove a container."""
PING_SECONDS = 10.0
"""Longest wait for a sign of life of the engine."""
HELPER_SECONDS = 60
"""Time limit of a helper container, in seconds."""
PAUSE_SECONDS = 0.5
"""Pause between two attempts to remove a container."""
GROUPS = Path("/sys/fs/cgroup")
DOOMED, LAYERS, SEEN_GROUPS, PROGRAM = "/doomed", "/layers", "/groups", "/stuck_inside.py"


@contextmanager
def machine_faults(api: APIClient, doing: str, *, used: bool) -> Iterator[None]:
    """Raise the engine's faults as `engine_faults` does, but as `SpoiledMachine` if only this container is affected.

    `used` says whether something that may be hostile has run in the container; only then it can be to blame.
    """
    try:
        with engine_faults(doing):
            yield
    except EngineError as error:
        if not used or gone(error.__cause__) or not works(api):  # nobody inside can remove a container
            raise
        raise SpoiledMachine(f"The machine can no longer be used: {error}") from error


def works(api: APIClient) -> bool:
    """Return whether the engine runs a program in the base image. If it does, a failure concerns one container only."""
    try:
        if not answers(api):
            return False
        host = api.create_host_config(network_mode="none")
        control = api.create_container(
            base_image.tag(),
            ["true"],
            labels={"assay.role": "build"},
            network_disabled=True,
            host_config=host,
        )["Id"]
        try:
            api.start(control)
            return bool(api.wait(control, timeout=HELPER_SECONDS)["StatusCode"] == 0)
        finally:
            call(api, "DELETE", f"/containers/{control}", REMOVE_SECONDS, force=1)
    except ENGINE_FAULTS:
        return False


def answers(api: APIClient) -> bool:
    """Return whether the engine answers at all."""
    try:
        return call(api, "GET", "/_ping", PING_SECONDS).ok
    except ENGINE_FAULTS:
        return False


def kill(api: APIClient, container: str, seconds: float = KILL_SECONDS) -> None:
    """End every process of a container, without the engine if need be. A dead or missing container is not an error.

    Raises `APIError`, and `RequestException` when not even that helps within about twice `seconds`.
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
    """Remove a container with its anonymous volumes. Return whether it is gone, after at most about three times
    `seconds`.

    If the engine does not answer or cannot remove it, the container is left without an error.
    """
    until = time.monotonic() + 2 * seconds
    while time.monotonic() < until:
        try:
            call(api, "DELETE", f"/containers/{container}", seconds, force=1, v=1)
        except NotFound:
            return True
        except APIError as error:
            if error.status_code != CONFLICT:  # a conflict: it is being removed already
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
    """Kill the container's processes, and the engine's processes that wait in it, without using the engine."""
    folder = Path(api.info()["DockerRootDir"], "image", "overlay2", "layerdb", "mounts")
    if os.geteuid() == 0 and stuck_containers_inside.end(container, folder, GROUPS):
        return
    layers = Mount(LAYERS, str(folder), type="bind", read_only=True)
    groups = Mount(SEEN_GROUPS, str(GROUPS), type="bind")
    command = ("end", container, LAYERS, SEEN_GROUPS)
    _help(api, command, pid_mode="host", cap_add=["KILL"], mounts=[layers, groups])


def flatten(api: APIClient, container: str) -> None:
    """Move the deep folders of a dead container up, so that the engine can remove them."""
    found = call(api, "GET", f"/containers/{container}/json", PING_SECONDS).json()
    doomed = Mount(DOOMED, found["GraphDriver"]["Data"]["UpperDir"], type="bind")
    _help(api, ("flatten", DOOMED), cap_add=["DAC_OVERRIDE", "FOWNER"], mounts=[doomed])


def _help(api: APIClient, arguments: tuple[str, ...], mounts: list[Mount], **host: Any) -> None:
    """Run `stuck_inside` as root in a container with nothing but these mounts and options."""
    program = Mount(PROGRAM, str(Path(stuck_containers_inside.__file__)), type="bind", read_only=True)
    created = api.create_container(
        base_image.tag(),
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
