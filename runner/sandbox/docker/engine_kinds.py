"""Refuse engines on which sandboxes were not shown to hold: Podman, rootless Docker, and any on another machine.

Each speaks Docker's API and would run trials. What would be wrong with them is not visible in a result.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from runner.errors import EngineError

if TYPE_CHECKING:
    from docker import DockerClient

REMOTE = frozenset({"http", "https", "ssh", "tcp"})
"""Kinds of addresses by which an engine is reached over a network."""
DEFAULT = "its default socket"


class UnfitEngineError(EngineError):
    """An engine answers, or would answer, that sandboxes must not use."""


def check_address(base_url: str | None) -> None:
    """Raise `UnfitEngineError` for the address of an engine that is reached over a network.

    `base_url` is the address that was asked for; None means that of the environment.
    """
    address = base_url or os.environ.get("DOCKER_HOST", "")
    if urlsplit(address).scheme in REMOTE:
        raise UnfitEngineError(
            f"The engine at {address} is reached over a network, and may run on another machine, where the sockets "
            "and files that sandboxes mount from this one do not exist: use an engine on this machine by its socket "
            "(DOCKER_HOST=unix:///var/run/docker.sock), or executor=ray to run trials on other machines."
        )


def check_kind(client: DockerClient, base_url: str | None) -> None:
    """Raise `UnfitEngineError` if Podman or a rootless Docker Engine answers."""
    where = base_url or os.environ.get("DOCKER_HOST") or DEFAULT
    version: dict[str, Any] = client.version()
    parts = version.get("Components") or ()
    if podman := next((part for part in parts if part.get("Name") == "Podman Engine"), None):
        raise UnfitEngineError(
            f"Podman {podman.get('Version')} answers at {where}, and sandboxes are not safe on it: with Podman 4.3.1 "
            "and 5.4.2, a fresh folder of a container held files of its image, so that a planted reward would count. "
            "Use Docker Engine 20.10 or later (DOCKER_HOST=unix:///var/run/docker.sock)."
        )
    options = client.info().get("SecurityOptions") or ()
    if any(option.split(",")[0] == "name=rootless" for option in options):
        raise UnfitEngineError(
            f"The Docker Engine at {where} is rootless, and sandboxes were never tested on one: their limits, the "
            "machines of test cases and the owners of files rest on an engine that runs as root. Use one that does "
            "(DOCKER_HOST=unix:///var/run/docker.sock)."
        )
