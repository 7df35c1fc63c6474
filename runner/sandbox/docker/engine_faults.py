"""The Docker Engine's failures, translated to our errors."""

from __future__ import annotations

import re
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
BUNDLE_PREFIX = "assay-bundle-"
"""Beginning of the names of the containers that own bundles."""
GONE = re.compile(r"(?:Cannot \w+ container: \w+: )?No such container: (?P<name>[\w.-]+)")
"""The whole message of the engine about a container that is gone. A part of a message may be a path that an agent has
chosen."""
PRUNED = "Stop what removes {} beside a run, such as a scheduled `docker system prune`."
BUNDLE_GONE = (
    f" It holds programs for sandboxes. {PRUNED.format('containers')} The same command installs it again."
)
LONGEST = 2_000
"""Longest message of the engine, in characters. It may quote paths as long as an agent likes."""


@contextmanager
def engine_faults(doing: str) -> Iterator[None]:
    """Raise the engine's faults as `EngineError`."""
    try:
        yield
    except ImageNotFound as error:
        raise EngineError(
            f"An image vanished while {doing}: {explanation(error)}. {PRUNED.format('images')}"
        ) from error
    except APIError as error:
        advice = BUNDLE_GONE if _is_bundle_gone(error) else ""
        raise EngineError(f"The Docker Engine failed while {doing}: {explanation(error)}.{advice}") from error
    except ENGINE_FAULTS as error:
        raise EngineError(
            f"The Docker Engine did not answer while {doing} ({error}). See whether `docker info` answers; the same "
            f"command resumes once it does."
        ) from error


@contextmanager
def image_faults(image: str) -> Iterator[None]:
    """Raise the engine's refusal to start a container as `ImageError`, if its image or task is the cause.

    The error's message begins with `image`. A failure of the engine itself stays an `APIError`.
    """
    try:
        yield
    except NotFound:  # the image, a bundle or the network is gone
        raise
    except APIError as error:
        if error.is_server_error() or _is_bundle_gone(error):
            raise
        raise ImageError(f"{image} does not start: {explanation(error)}.") from error


def gone(error: BaseException | None) -> str:
    """Return the name or id of the container that the engine misses; empty if the error is another one."""
    found = GONE.fullmatch(explanation(error)) if isinstance(error, APIError) else None
    return found["name"] if found else ""


def _is_bundle_gone(error: APIError) -> bool:
    """Return whether the engine refuses a container because a bundle that it mounts is gone."""
    return gone(error).startswith(BUNDLE_PREFIX)


def explanation(error: Exception) -> str:
    """Return the engine's own message, without the client's wrapping."""
    message = str(getattr(error, "explanation", None) or error).strip().rstrip(".")
    return message if len(message) <= LONGEST else f"{message[: LONGEST // 2]} ... {message[-LONGEST // 2 :]}"
