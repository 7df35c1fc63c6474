"""The network of sandboxes with open access: to the world, but not to each other (ADR 11)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.errors import EngineError
from runner.sandbox.docker import engine

if TYPE_CHECKING:
    from docker import APIClient

NAME = "assay-open"
INTERFACE = "assay0"
"""Name of the network's interface on the engine's machine, for firewall rules."""
ISOLATION = "com.docker.network.bridge.enable_icc"
"""The engine's option that lets the containers of a network reach each other unless it is false."""
LABELS = {"assay.role": "network"}


def ensure(api: APIClient) -> str:
    """Return the network's name, making the network if it is missing.

    Raises `EngineError` if a network of this name would let sandboxes reach each other, and what the engine raises.
    """
    if not _is_there(api):
        with engine.exclusive("network"):
            if not _is_there(api):
                options = {ISOLATION: "false", "com.docker.network.bridge.name": INTERFACE}
                api.create_network(
                    NAME, driver="bridge", options=options, labels=LABELS, check_duplicate=True
                )
    return NAME


def _is_there(api: APIClient) -> bool:
    found = next((network for network in api.networks(names=[NAME]) if network["Name"] == NAME), None)
    if found and found["Options"].get(ISOLATION) != "false":
        raise EngineError(
            f"The network {NAME} would let sandboxes reach each other. Remove it (docker network rm {NAME}); "
            "the next run makes it again."
        )
    return found is not None
