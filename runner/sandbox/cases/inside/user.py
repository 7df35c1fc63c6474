"""The user of a case: an unused number, with no privilege and no way to gain one."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runner.sandbox.cases.inside import syscalls

UID = GID = 9999
"""A number that images give to nobody."""
NAME = "user"
HOME = "/home/user"
OPEN_FILES = 1024


def become(program: bytes, file_bytes: int) -> None:
    """Make this process the case's: neither it nor what it executes can undo any of this.

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
    syscalls.filter_calls(program)


def first_to_go() -> None:
    """Make the kernel take this process and its children first when memory is short, never the supervisor."""
    Path("/proc/self/oom_score_adj").write_text("1000")


@contextmanager
def acting() -> Iterator[None]:
    """Read and write as the case's user within the context, without any capability."""
    os.setegid(GID)
    os.seteuid(UID)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
