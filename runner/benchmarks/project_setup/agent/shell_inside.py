"""One interactive bash on a terminal of its own, for `terminal_inside.py`.

Ctrl-C brings the shell back to its prompt with its state. It reads commands from one pipe and reports on another how
each ended. Commands inherit neither pipe, and see no prompt.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import shlex
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CHUNK = 1 << 16
PIPE_BYTES = 1 << 20
"""Room for the longest command, quoted in the worst way."""
HIGH = 200
"""Lowest of our descriptors: a shell's own redirections use single digits."""
ROWS, COLUMNS = 50, 200
SETTINGS = {"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "PS1": "$ ", "SHELL": "/bin/bash"}
BASH = ("bash", "--norc", "--noprofile", "--noediting", "+H", "-i")
FENCE_SECONDS = 2.0
"""Time limit for output to come through the terminal, which takes about a millisecond."""
AGAIN_SECONDS = 0.1


class Shell:
    """One bash and its terminal. The constructor raises `OSError` when it cannot be started."""

    def __init__(self, folder: str) -> None:
        self.master, slave = os.openpty()
        self._fence = os.open(os.ttyname(slave), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
        commands, self._commands = os.pipe()
        self.reports, report = os.pipe()
        self._slave, self._report = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, HIGH) for end in (slave, report))
        with contextlib.suppress(OSError):  # the default size will do
            fcntl.fcntl(self._commands, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        for end in (self.master, self._commands):
            os.set_blocking(end, False)
        self._settings = _quiet(slave)
        process = subprocess.Popen(
            BASH,
            cwd=_nearest(folder),
            env={**os.environ, **SETTINGS},
            stdin=commands,
            stdout=subprocess.DEVNULL,  # prompts and the like
            stderr=subprocess.DEVNULL,
            pass_fds=(self._slave, self._report),
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - no threads then
        )
        process.returncode = 0  # the terminal reaps it with all others
        self.pid = process.pid
        for end in (slave, report, commands):
            os.close(end)
        os.write(self._commands, b"unset HISTFILE\n")

    def close(self) -> None:
        """Close the descriptors."""
        for end in (self.master, self._fence, self._commands, self.reports, self._slave, self._report):
            os.close(end)

    @property
    def folder(self) -> str:
        """Current folder. Raises `OSError` once the shell is dead."""
        return str(Path(f"/proc/{self.pid}/cwd").readlink())

    def begin(self, number: int, command: str) -> bool:
        """Start a command whose end is reported under this number. Return False if it is too long."""
        at, own = self._slave, self._report
        line = f"builtin eval {shlex.quote(command)} <&{at} >&{at} 2>&{at} {at}>&- {own}>&-\n"
        data = line.encode(errors="replace") + self._question(number)
        if 2 * len(data) > fcntl.fcntl(self._commands, fcntl.F_GETPIPE_SZ):
            return False
        os.write(self._commands, data)  # in one write: the command may end the shell
        return True

    def ask(self, number: int) -> None:
        """Have the shell report when it is idle; a dead shell does not."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._commands, self._question(number))

    def _question(self, number: int) -> bytes:
        return f"builtin echo {number} $? >&{self._report}\n".encode()

    def type(self, text: bytes) -> int:
        """Type a text; return how many bytes the terminal had room for."""
        with contextlib.suppress(BlockingIOError):
            return os.write(self.master, text)
        return 0

    def forget(self) -> None:
        """Drop input that was not read: it is not for later commands, and a Ctrl-C would wait behind it."""
        termios.tcflush(self.master, termios.TCOFLUSH)
        termios.tcflush(self._slave, termios.TCIFLUSH)

    def read(self) -> bytes:
        """Return what has been printed, without waiting."""
        with contextlib.suppress(BlockingIOError):
            return os.read(self.master, CHUNK)
        return b""

    def printed(self) -> Iterator[bytes]:
        """Yield all that has been written to the terminal until now, including what has not come through yet.

        A random mark is written behind the output and waited for. The terminal's first settings are restored.
        """
        termios.tcsetattr(self._slave, termios.TCSANOW, self._settings)
        mark, missing, seen = os.urandom(16).hex().encode(), True, b""
        until = time.monotonic() + FENCE_SECONDS
        while mark not in seen and time.monotonic() < until:
            if missing:
                with contextlib.suppress(BlockingIOError):
                    missing = not os.write(self._fence, mark)
            select.select([self.master], [], [], AGAIN_SECONDS)
            seen += self.read()
            if mark not in seen:
                yield seen[: -len(mark)]
                seen = seen[-len(mark) :]
        yield seen.replace(mark, b"")


def _quiet(slave: int) -> list[Any]:
    """Make a terminal pass on output unchanged, without echo; return its settings."""
    settings = termios.tcgetattr(slave)
    settings[0] &= ~termios.IXON
    settings[1] &= ~termios.OPOST
    settings[3] &= ~termios.ECHO
    termios.tcsetattr(slave, termios.TCSANOW, settings)
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", ROWS, COLUMNS, 0, 0))
    return settings


def _nearest(folder: str) -> Path:
    """Return the folder, or the nearest one above it that still exists."""
    return next(path for path in (Path(folder), *Path(folder).parents) if path.is_dir())
