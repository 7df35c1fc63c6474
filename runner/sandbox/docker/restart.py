"""Whether a new container of an image lives. What became of another one may be the doing of whoever worked in it."""

from __future__ import annotations

from typing import Any

from docker import APIClient
from docker.errors import APIError
from requests.exceptions import RequestException

from runner.sandbox.docker import stuck
from runner.sandbox.docker.files import Files

LIVES_SECONDS = 3
"""What has no program to begin with is dead within a fraction of it."""


def lives(api: APIClient, created: dict[str, Any]) -> bool:
    """Whether a container that is created so is alive after `LIVES_SECONDS`. Raises `APIError` if it does not start."""
    container = api.create_container(**created)["Id"]
    try:
        Files(api, container).mend_users()
        api.start(container)
        api.wait(container, timeout=LIVES_SECONDS)
    except APIError:
        raise
    except RequestException:  # no answer in time
        return True
    else:
        return False
    finally:
        stuck.remove(api, container)
