"""Snapshots: images of the file system that an agent left. They are removed with their container."""

from __future__ import annotations

import secrets
from contextlib import suppress

from docker import APIClient
from docker.errors import NotFound

from runner.records import Image
from runner.sandbox.docker.images import ImageConfig, Images

REPOSITORY = "assay-snapshot"
"""Repository of snapshots. Their tags are random."""


class Snapshots:
    """The snapshots of one container."""

    def __init__(self, api: APIClient, images: Images) -> None:
        self._api, self._images = api, images
        self._taken: list[Image] = []

    def take(self, container: str, config: ImageConfig) -> Image:
        """Copy the container's file system, which does not change meanwhile, as an image with this configuration."""
        tag = secrets.token_hex(8)
        found = self._api.commit(container, repository=REPOSITORY, tag=tag, pause=False)["Id"]
        snapshot = Image(id=found, reference=f"{REPOSITORY}:{tag}", origin="built")
        self._images.remember(snapshot, config)
        self._taken.append(snapshot)
        return snapshot

    def remove(self) -> None:
        """Remove all of them. Raises what the engine raises."""
        while self._taken:
            snapshot = self._taken.pop()
            self._images.forget(snapshot)
            # Without `noprune`, the engine would also remove the image of the container if it has lost its name.
            with suppress(NotFound):
                self._api.remove_image(snapshot.reference, force=True, noprune=True)
