"""The Docker Engine's failures, translated to our errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from requests.exceptions import RequestException
from urllib3.exceptions import HTTPError

from runner.errors import EngineError, ImageError

ENGINE_FAULTS = (DockerException, RequestException, HTTPError)
"""Exceptions that a call to the engine, or a stream from it, may raise."""
NOT_FOUND = 404
CONFLICT = 409
"""Status of the engine's answer when a container is not running."""
LONGEST = 2_000
"""Longest message of the engine, in characters. It may quote paths as long as an agent likes."""


@contextmanager
def engine_faults(doing: str) -> Iterator[None]:
    """Raise the engine's faults as `EngineError`, and a vanished image as `ImageError`."""
    try:
        yield
    except ImageNotFound as error:
        raise ImageError(f"An image vanished while {doing}: {explanation(error)}.") from error
    except APIError as error:
        raise EngineError(f"The Docker Engine failed while {doing}: {explanation(error)}.") from error
    except ENGINE_FAULTS as error:
        raise EngineError(
            f"The Docker Engine did not answer while {doing} ({error}). See whether `docker info` answers; the same "
            f"command resumes once it does."
        ) from error


@contextmanager
def image_faults(reference: str, *, by_agent: bool) -> Iterator[None]:
    """Raise the engine's refusal to start a container as `ImageError`, if the image or its task is the cause."""
    try:
        yield
    except NotFound:  # the image, a bundle or the network is gone
        raise
    except APIError as error:
        if by_agent:
            raise ImageError(f"The image that an agent made does not start: {explanation(error)}.") from error
        if error.is_client_error():
            raise ImageError(f"{reference} does not start: {explanation(error)}.") from error
        raise


def explanation(error: Exception) -> str:
    """Return the engine's own message, without the client's wrapping."""
    message = str(getattr(error, "explanation", None) or error).strip().rstrip(".")
    return message if len(message) <= LONGEST else f"{message[: LONGEST // 2]} ... {message[-LONGEST // 2 :]}"
