"""Run test programs as the watcher's children, record their output, and pass it on."""

from __future__ import annotations

import contextlib
import hashlib
import os
import resource
import select
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHUNK, LOOK_SECONDS = 65_536, 0.05
PIPE = 1 << 20
"""Most bytes that a pipe holds."""
HEAD, TAIL = 1 << 20, 3 << 20
"""First and last bytes of a program's output that are kept."""
IDLE_LOOKS, REST_SECONDS = 20, 5.0
"""Number of looks without output, together a second, after which a process that still holds the streams of an ended
program counts as a daemon; and the time after the end for which further output still counts as the program's."""
AT_ONCE = 4096
"""Bytes that a writable pipe takes without blocking."""
FILE = 5 << 20
"""Largest file whose content is read, in bytes."""


class Printed:
    """First and last bytes of a program's output."""

    def __init__(self, head: int, tail: int) -> None:
        self._most, self._tail_most = head, tail
        self._head, self._tail = bytearray(), bytearray()
        self._cut = False

    def add(self, data: bytes) -> None:
        """Add output; bytes between the first and the last are dropped."""
        room = self._most - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * self._tail_most:
            del self._tail[: -self._tail_most]
            self._cut = True

    def whole(self) -> bytes:
        """Return both parts, with a line end where bytes between them are missing."""
        cut = self._cut or len(self._tail) > self._tail_most
        return bytes(self._head) + (b"\n" if cut else b"") + bytes(self._tail[-self._tail_most :])


class Run:
    """One program, run for a shim."""

    def __init__(self, request: dict[str, Any], shim: socket.socket, files: dict[int, int]) -> None:
        """Read a shim's request. Raises `ValueError` for an invalid one."""
        self.argv: list[str] = request["argv"]
        self.cwd: str = request["cwd"]
        self.program: str = request["program"]
        if not self.argv or not all(isinstance(word, str) for word in (self.cwd, self.program, *self.argv)):
            raise ValueError("it names no program")
        self.printed = Printed(HEAD, TAIL)
        self.file, self.script = self._first_file(), self._text()
        """Digests from before the program runs."""
        self._request, self._shim, self._files = request, shim, files

    def watch(self, tell: Callable[[Run, int], None]) -> int:
        """Run the program to its end; return its exit code, negative for a signal."""
        try:
            child, pump = self._start()
        except OSError:
            return 126
        threading.Thread(target=self._pass_signals, args=(child,), daemon=True).start()
        code = child.wait()
        pump.rest()
        with contextlib.suppress(OSError):
            tell(self, code)
        return code

    def _first_file(self) -> list[str]:
        """Return path and digest of the first argument that is a file."""
        for word in self.argv[1:]:
            path = os.path.realpath(os.path.join(self.cwd, word))  # noqa: PTH118
            if os.path.isfile(path):  # noqa: PTH113
                return [readable(path), digest(path)]
        return []

    def _text(self) -> list[str]:
        """Return path and digest of a program that is a script and not from a package of the system."""
        path = os.path.realpath(self.program)
        with contextlib.suppress(OSError):
            if not content(path, 4).startswith(b"\x7fELF") and not _packaged(path):
                return [readable(path), digest(path)]
        return []

    def _start(self) -> tuple[subprocess.Popen[bytes], Pump]:
        sources, ends = self._pipes()
        peer = self._shim.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        _, user, group = (int.from_bytes(peer[at : at + 4], sys.byteorder) for at in (0, 4, 8))
        as_other: dict[str, Any] = (
            {"user": user, "group": group, "extra_groups": self._request["groups"]} if user else {}
        )
        stdin = self._files.get(0, subprocess.DEVNULL)

        def popen(command: list[str], program: str) -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                command,
                executable=program,
                cwd=self.cwd,
                env=self._request["env"],
                umask=self._request["umask"],
                stdin=stdin,
                stdout=ends.get(1, subprocess.DEVNULL),
                stderr=ends.get(2, subprocess.DEVNULL),
                process_group=0,
                preexec_fn=self._limit,  # noqa: PLW1509 - it takes no lock that another thread could hold
                **as_other,
            )

        try:
            try:
                child = popen(self.argv, self.program)
            except OSError as error:
                if error.strerror != "Exec format error":
                    raise
                child = popen(["sh", self.program, *self.argv[1:]], "/bin/sh")  # as shells do
        finally:
            for end in {*ends.values(), stdin} - {subprocess.DEVNULL}:
                os.close(end)
        return child, Pump(sources, self.printed)

    def _limit(self) -> None:
        """Give the new process its caller's limits before the program begins: it could act without them."""
        for kind, limit in self._request["limits"].items():
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(int(kind), tuple(limit))

    def _pipes(self) -> tuple[dict[int, int | None], dict[int, int]]:
        """Return ends to read from, with the shim's files that they go to, and ends to write to, by number.

        Two streams of the same file share a pipe, which keeps their order.
        """
        sources: dict[int, int | None] = {}
        ends: dict[int, int] = {}
        states = {fd: os.fstat(self._files[fd])[:3] for fd in (1, 2) if fd in self._files}
        for fd in states:
            if fd == 2 and states.get(1) == states[2]:  # noqa: PLR2004 - standard error
                ends[2] = os.dup(ends[1])
                os.close(self._files[2])
                continue
            reading, ends[fd] = os.pipe()
            sources[reading] = self._files[fd]
        return sources, ends

    def _pass_signals(self, child: subprocess.Popen[bytes]) -> None:
        """Pass on the shim's signals; end the program with a shim that was killed."""
        with contextlib.suppress(OSError):
            while given := self._shim.recv(1):
                child.send_signal(given[0])
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)


class Pump(threading.Thread):
    """Thread that records output and passes it on."""

    def __init__(self, sources: dict[int, int | None], printed: Printed) -> None:
        super().__init__(daemon=True)
        self._sources, self._printed = sources, printed
        self._silent = dict.fromkeys(sources, 0)
        """Looks in a row that found a source silent. They are counted, not timed: on a busy machine time passes without
        a look."""
        self._rests = False
        self.start()

    def run(self) -> None:
        """Work until every end is closed."""
        threads = [
            threading.Thread(target=self._carry, args=pair, daemon=True) for pair in self._sources.items()
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def rest(self) -> None:
        """Wait until no more output comes, or only a daemon's."""
        self._silent = dict.fromkeys(self._sources, 0)  # what was printed last may not have been read yet
        self._rests = True
        until = time.monotonic() + REST_SECONDS
        while (
            self.is_alive()
            and time.monotonic() < until
            and any(looks < IDLE_LOOKS for looks in self._silent.values())
        ):
            self.join(LOOK_SECONDS)
        self._rests = False

    def _carry(self, source: int, target: int | None) -> None:
        late, is_open = b"", True
        try:
            while is_open or late:
                # A running program may wait for its reader; the output of one that has ended may not.
                has_room = len(late) < CHUNK + (PIPE if self._rests else 0)
                ready = _ready(source if is_open and has_room else None, target if late else None)
                if source in ready:
                    data = os.read(source, CHUNK)
                    self._printed.add(data)
                    late += data if target is not None else b""
                    is_open, self._silent[source] = bool(data), 0
                elif has_room:
                    self._silent[source] += 1 if is_open else IDLE_LOOKS
                if target is not None and target in ready:
                    late = late[os.write(target, late[:AT_ONCE]) :]
        except OSError:  # nobody reads it: the program notices as it would without us
            pass
        finally:
            os.close(source)
            if target is not None:
                os.close(target)


def _ready(reading: int | None, writing: int | None) -> set[int]:
    """Return the descriptors that can be used within the time of a look."""
    waiting = select.poll()
    for descriptor, event in ((reading, select.POLLIN), (writing, select.POLLOUT)):
        if descriptor is not None:
            waiting.register(descriptor, event)
    return {descriptor for descriptor, _ in waiting.poll(LOOK_SECONDS * 1000)}


def content(path: str, most: int) -> bytes:
    """Return the beginning of a regular file, without following links. Raises `OSError`."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(path)
        return file.read(most)


def readable(name: str) -> str:
    r"""Return a name as text: bytes that are not UTF-8 are written `\udcNN`."""
    return name.encode(errors="backslashreplace").decode()


def digest(path: str) -> str:
    """Return the SHA-256 of a file; empty if it cannot be read or is larger than `FILE`."""
    try:
        data = content(os.path.realpath(path), FILE + 1)
    except (OSError, ValueError):  # ValueError: no file can have this name
        return ""
    return hashlib.sha256(data).hexdigest() if len(data) <= FILE else ""


def _packaged(path: str) -> bool:
    """Return whether a Debian package installed this file unchanged; elsewhere, whether it lies in /usr/bin."""
    lists = list(Path("/var/lib/dpkg/info").glob("*.md5sums"))
    if not lists:
        return path.startswith("/usr/bin/")
    digest = hashlib.md5(content(path, FILE), usedforsecurity=False).hexdigest()
    line = f"{digest}  {path[1:]}\n".encode()
    return any(line in listed.read_bytes() for listed in lists)
