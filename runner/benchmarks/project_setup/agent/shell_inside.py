"""One interactive bash on a terminal of its own, as `terminal_inside.py` keeps it, beside which it is loaded.

A Ctrl-C brings it back to its prompt with all that it knows. It reads commands from a pipe, and says that one has
ended, and how, on another: neither of them, nor its prompts, is any command's.
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
"""Room for a command that is quoted in the worst way."""
HIGH = 200
"""Descriptors from here on are ours: a shell's own redirections use single digits."""
ROWS, COLUMNS = 50, 200
SETTINGS = {"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "PS1": "$ ", "SHELL": "/bin/bash"}
BASH = ("bash", "--norc", "--noprofile", "--noediting", "+H", "-i")
FENCE_SECONDS = 2.0
"""For what a command printed to come through its terminal; it takes a millisecond."""
AGAIN_SECONDS = 0.1


class Shell:
    """One bash and its terminal. Raises `OSError` when it cannot be started."""

    def __init__(self, folder: str) -> None:
        self.master, slave = os.openpty()
        self._fence = os.open(os.ttyname(slave), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
        commands, self._commands = os.pipe()
        self.reports, report = os.pipe()
        self._slave, self._report = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, HIGH) for end in (slave, report))
        with contextlib.suppress(OSError):  # it is as it is
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
        process.returncode = 0  # it is reaped with all others
        self.pid = process.pid
        for end in (slave, report, commands):
            os.close(end)
        os.write(self._commands, b"unset HISTFILE\n")

    def close(self) -> None:
        """Give the descriptors back."""
        for end in (self.master, self._fence, self._commands, self.reports, self._slave, self._report):
            os.close(end)

    @property
    def folder(self) -> str:
        """Where it is. Raises `OSError` once it is dead."""
        return str(Path(f"/proc/{self.pid}/cwd").readlink())

    def begin(self, number: int, command: str) -> bool:
        """Have a command run, and its end reported under this number; False: it is too long."""
        at, own = self._slave, self._report
        line = f"builtin eval {shlex.quote(command)} <&{at} >&{at} 2>&{at} {at}>&- {own}>&-\n"
        data = line.encode(errors="replace") + self._question(number)
        if 2 * len(data) > fcntl.fcntl(self._commands, fcntl.F_GETPIPE_SZ):
            return False
        os.write(self._commands, data)  # at once: it may be the shell's last
        return True

    def ask(self, number: int) -> None:
        """Have it said when the shell has nothing to do; the dead say nothing."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._commands, self._question(number))

    def _question(self, number: int) -> bytes:
        return f"builtin echo {number} $? >&{self._report}\n".encode()

    def type(self, text: bytes) -> int:
        """How many bytes of a text the terminal had room for."""
        with contextlib.suppress(BlockingIOError):
            return os.write(self.master, text)
        return 0

    def forget(self) -> None:
        """Drop what was typed and not read: it is for no later command, and a Ctrl-C would wait behind it."""
        termios.tcflush(self.master, termios.TCOFLUSH)
        termios.tcflush(self._slave, termios.TCIFLUSH)

    def read(self) -> bytes:
        """What has been printed; nothing if that is nothing."""
        with contextlib.suppress(BlockingIOError):
            return os.read(self.master, CHUNK)
        return b""

    def printed(self) -> Iterator[bytes]:
        """All that has been written to the terminal until now, some of which may not have come through it yet.

        A mark that nobody can guess is written behind it and waited for. The terminal is as it was at the beginning
        then, whatever a command made of it.
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
    """Make a terminal show nothing but what commands print, as they print it; returns its settings."""
    settings = termios.tcgetattr(slave)
    settings[0] &= ~termios.IXON
    settings[1] &= ~termios.OPOST
    settings[3] &= ~termios.ECHO
    termios.tcsetattr(slave, termios.TCSANOW, settings)
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", ROWS, COLUMNS, 0, 0))
    return settings


def _nearest(folder: str) -> Path:
    """The folder, or of those above it the first that is still there."""
    return next(path for path in (Path(folder), *Path(folder).parents) if path.is_dir())
