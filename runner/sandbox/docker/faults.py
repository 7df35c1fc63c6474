"""Failures of the Docker Engine, as ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from docker.errors import APIError, DockerException, ImageNotFound
from requests.exceptions import RequestException
from urllib3.exceptions import HTTPError

from runner.errors import EngineError, ImageError

ENGINE_FAULTS = (DockerException, RequestException, HTTPError)
"""What a call to the engine, or a stream from it, can raise."""
NOT_FOUND = 404
CONFLICT = 409
"""The engine's answer when a container is not running."""
LONGEST = 2_000
"""Characters of what the engine said; it may quote paths as long as an agent likes."""


@contextmanager
def engine_faults(doing: str) -> Iterator[None]:
    """Raise what the engine did wrong as `EngineError`, a vanished image as `ImageError`."""
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


def explanation(error: Exception) -> str:
    """What the engine itself said, without the client's wrapping."""
    said = str(getattr(error, "explanation", None) or error).strip().rstrip(".")
    return said if len(said) <= LONGEST else f"{said[: LONGEST // 2]} ... {said[-LONGEST // 2 :]}"
