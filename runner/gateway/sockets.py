"""Unix sockets that a sandbox mounts."""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack
from pathlib import Path

GATEWAY_SOCKET = "gateway.sock"
LONGEST_PATH = 107
"""Longest path of a unix socket on Linux, in bytes without the final zero."""


def listen(path: Path) -> socket.socket:
    """Open a socket at this path that any user of the sandbox may write to. Raises `OSError`."""
    if len(os.fsencode(path)) > LONGEST_PATH:
        raise OSError(
            f"{path} is longer than the {LONGEST_PATH} bytes of a socket's path; choose a shorter folder"
        )
    with ExitStack() as undo:
        listening = undo.enter_context(socket.socket(socket.AF_UNIX))
        listening.bind(str(path))
        path.chmod(0o666)
        listening.listen()
        undo.pop_all()
    return listening
