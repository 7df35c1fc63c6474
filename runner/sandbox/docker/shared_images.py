"""Images that are made once and shared through a registry, so that all machines judge with the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from docker import APIClient
from docker.errors import APIError, ImageNotFound

from runner.errors import ImageError
from runner.protocols import ImageProgress
from runner.sandbox.docker.engine_faults import ENGINE_FAULTS, NOT_FOUND, explanation

REFUSED = (401, 403, NOT_FOUND)
"""Statuses of an image that is not there. Some registries say of a missing one that access is denied."""


class SharedImages:
    """The images of one registry, under the tags that they have on each machine."""

    def __init__(self, api: APIClient, registry: str, pull: Callable[[str, ImageProgress], str]) -> None:
        """Name the registry: `HOST[:PORT]/FOLDER`. `pull` pulls a reference, and returns why that failed or ""."""
        self._api, self._registry, self._pull = api, registry, pull

    def obtain(self, tag: str, make: Callable[[], str], progress: ImageProgress) -> str:
        """Return the id of the image that the registry has under `tag`, and give it this tag here.

        If the registry has none, the image that `make` builds or finds here is pushed. A machine that was quicker
        wins: its image is used, and not the one made here. Between two pushes within the same second nobody can
        choose; then the digests on the records differ. Raises `ImageError` if the registry cannot be used.
        """
        if shared := self._digest(tag):
            return self._take(tag, shared, progress)
        made = make()
        if shared := self._digest(tag):
            return self._take(tag, shared, progress)
        with progress("pushing"):
            self._push(tag, made)
        return made

    def _digest(self, tag: str) -> str:
        """Return the digest under which the registry has the image, or "" if it has none."""
        try:
            found: dict[str, Any] = self._api.inspect_distribution(f"{self._registry}/{tag}")  # type: ignore[no-untyped-call]
            return str(found["Descriptor"]["digest"])
        except APIError as error:
            if error.status_code in REFUSED:
                return ""
            raise self._unusable(explanation(error)) from error
        except ENGINE_FAULTS as error:
            raise self._unusable(str(error)) from error

    def _take(self, tag: str, digest: str, progress: ImageProgress) -> str:
        repository, _, version = tag.partition(":")
        reference = f"{self._registry}/{repository}@{digest}"
        if not (found := self._id(reference)):
            reason = self._pull(reference, progress)
            if not (found := self._id(reference)):
                raise self._unusable(reason or f"{reference} did not arrive")
        self._api.tag(found, repository, version, force=True)
        return found

    def _push(self, tag: str, image: str) -> None:
        repository, _, version = tag.partition(":")
        try:
            self._api.tag(image, f"{self._registry}/{repository}", version, force=True)
            events = self._api.push(f"{self._registry}/{repository}", version, stream=True, decode=True)
            reason = next((str(event["error"]) for event in events if "error" in event), "")
        except ENGINE_FAULTS as error:
            raise self._unusable(str(error)) from error
        if reason:
            raise self._unusable(reason)

    def _id(self, reference: str) -> str | None:
        try:
            return str(self._api.inspect_image(reference)["Id"])  # type: ignore[no-untyped-call]
        except ImageNotFound:
            return None

    def _unusable(self, reason: str) -> ImageError:
        return ImageError(
            f"The registry {self._registry} cannot be used ({reason}). Log in to it with `docker login` on this "
            f"machine, or leave out `sandbox.registry` to build images on each machine."
        )
