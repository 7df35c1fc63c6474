"""Check whether a fresh container of an image stays alive.

How a used container ended proves nothing about its image: whoever worked in it may have ended it.
"""

from __future__ import annotations

from typing import Any

from docker import APIClient
from docker.errors import APIError
from requests.exceptions import RequestException

from runner.sandbox.docker import stuck
from runner.sandbox.docker.files import Files

LIVES_SECONDS = 3
"""Seconds to wait. A container that has no program to start with is dead within a fraction of this."""


def lives(api: APIClient, created: dict[str, Any]) -> bool:
    """Return whether a container created with these arguments is alive after `LIVES_SECONDS`.

    Raises `APIError` if the container does not start.
    """
    container = api.create_container(**created)["Id"]
    try:
        Files(api, container).mend_users()
        api.start(container)
        api.wait(container, timeout=LIVES_SECONDS)
    except APIError:
        raise
    except RequestException:  # no answer in time: it still runs
        return True
    else:
        return False
    finally:
        stuck.remove(api, container)
