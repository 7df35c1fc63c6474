"""Removal of what is kept between runs: bundles, the base image, task images built here."""

from __future__ import annotations

from contextlib import suppress

from docker.errors import APIError

from runner.errors import ConfigError
from runner.sandbox.docker import stuck
from runner.sandbox.docker.builds import PULLED
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.faults import engine_faults
from runner.sandbox.docker.images import REPOSITORY
from runner.sandbox.docker.reaper import OWNER_PID

ROLE = "assay.role"
"""Label of everything that is kept but the images of tasks and those that agents pulled, which their repositories tell:
bundle, base, build, rerun.
"""


def purge(
    kept: str = ROLE, tasks: str = REPOSITORY, pulled: str = PULLED, owned: str = OWNER_PID
) -> tuple[int, int]:
    """Remove containers, networks and images that carry the label `kept`, images of the repository `tasks`, and those
    of `pulled` with whatever other names they have; returns how many containers and images.

    Raises `ConfigError` while anything labelled `owned` exists: a runner is using them. Raises `EngineError`.
    """
    client = connect()
    with engine_faults("removing bundles and images"):
        if at_work := client.api.containers(all=True, filters={"label": owned}):
            names = ", ".join(container["Names"][0].lstrip("/") for container in at_work[:3])
            raise ConfigError(f"A runner is at work ({names}). Stop it, then clean again.")
        containers = client.api.containers(all=True, filters={"label": kept})
        for container in containers:
            stuck.remove(client.api, container["Id"])
        for network in client.api.networks(filters={"label": kept}):
            with suppress(APIError):  # somebody else's container is on it
                client.api.remove_network(network["Id"])
        made = [*client.api.images(filters={"label": kept}), *client.api.images(name=tasks)]
        made.sort(key=lambda image: int(image["Created"]), reverse=True)
        removed = 0
        # A base after its children. When one was made that was pulled, its maker says.
        for image in dict.fromkeys(image["Id"] for image in (*made, *client.api.images(name=pulled))):
            with suppress(APIError):  # an image of the user's own is built on it: it stays
                client.api.remove_image(image, force=True)
                removed += 1
    return len(containers), removed
