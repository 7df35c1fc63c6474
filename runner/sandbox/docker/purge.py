"""Remove what remains between runs: bundles, the base image, and task images built here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from docker.errors import APIError

from runner import locks
from runner.errors import ConfigError
from runner.sandbox.docker import base_image, stuck_containers
from runner.sandbox.docker.agent_builds import PULLED
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.engine_faults import engine_faults
from runner.sandbox.docker.images import REPOSITORY
from runner.sandbox.docker.reaper import OWNER_PID

ROLE = "assay.role"
"""Label of everything that remains between runs (bundle, base, build, rerun). Images of tasks and those that agents'
builds pulled lack it; their repositories identify them."""


@contextmanager
def alone() -> Iterator[None]:
    """Keep runners from starting within the context. Raises `ConfigError` if one is at work or about to begin."""
    with ExitStack() as stack:
        try:
            stack.enter_context(locks.exclusive(base_image.IN_USE, wait=False))
        except BlockingIOError as error:
            raise ConfigError("A runner is at work. Stop it, then clean again.") from error
        yield


def purge(
    label: str = ROLE, tasks: str = REPOSITORY, pulled: str = PULLED, owned: str = OWNER_PID
) -> tuple[int, int]:
    """Remove what remains between runs; return the numbers of removed containers and images.

    These are containers with their volumes, networks and images with the label `label`, images of the repository
    `tasks`, and images of the repository `pulled` with all their other names. Raises `ConfigError` while anything
    labelled `owned` exists, because a runner is using it. Raises `EngineError`.
    """
    client = connect()
    with engine_faults("removing bundles and images"):
        if at_work := client.api.containers(all=True, filters={"label": owned}):
            names = ", ".join(container["Names"][0].lstrip("/") for container in at_work[:3])
            raise ConfigError(f"A runner is at work ({names}). Stop it, then clean again.")
        containers = client.api.containers(all=True, filters={"label": label})
        for container in containers:
            stuck_containers.remove(client.api, container["Id"])
        # A bundle's volume has a name, and so does not go with its container.
        for name in {mount["Name"] for each in containers for mount in each["Mounts"] if "Name" in mount}:
            with suppress(APIError):
                client.api.remove_volume(name)
        for network in client.api.networks(filters={"label": label}):
            with suppress(APIError):  # somebody else's container uses it
                client.api.remove_network(network["Id"])
        built = [*client.api.images(filters={"label": label}), *client.api.images(name=tasks)]
        built.sort(key=lambda image: int(image["Created"]), reverse=True)
        removed = 0
        # Children go before their base. A pulled image's date of creation is its maker's, so it comes last.
        for image in dict.fromkeys(image["Id"] for image in (*built, *client.api.images(name=pulled))):
            with suppress(APIError):  # stays: an image of the user's own depends on it
                client.api.remove_image(image, force=True)
                removed += 1
    return len(containers), removed
