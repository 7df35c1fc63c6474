"""Who a case runs as: nobody in particular, with no privilege and no way to one."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runner.sandbox.cases.inside import kernel

UID = GID = 9999
"""A number that images give to nobody."""
NAME = "user"
HOME = "/home/user"
OPEN_FILES = 1024


def become(program: bytes, file_bytes: int) -> None:
    """Make this process the case's: nothing that it, or what it executes, does can undo any of it.

    `program` is the seccomp filter, `file_bytes` the size of the largest file that it may make. The bounding set is
    empty and new privileges are off already (`serve`), so losing uid 0 loses every capability.
    """
    os.umask(0o022)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
    resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, OPEN_FILES))
    os.setgroups([])
    os.setresgid(GID, GID, GID)
    os.setresuid(UID, UID, UID)
    kernel.filter_calls(program)


def first_to_go() -> None:
    """Memory that is short is taken from this process and its children, never from the supervisor."""
    Path("/proc/self/oom_score_adj").write_text("1000")


@contextmanager
def acting() -> Iterator[None]:
    """Within, this process reads and writes as the case's user does, and no capability counts."""
    os.setegid(GID)
    os.seteuid(UID)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
