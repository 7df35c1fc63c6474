"""One command of a case: started as the case's user, followed to its end or deadline, its output limited."""

from __future__ import annotations

import codecs
import hashlib
import marshal
import os
import select
import signal
import struct
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from runner.sandbox.cases.inside import syscalls, user

CHUNK = 1 << 16
FLOOD_BYTES = 64 << 20
"""Longest stream in bytes; a command that writes more is killed. The supervisor reads and digests it, and no command
may cause unlimited work there."""
CANNOT_START = 126
KILLED = 128 + signal.SIGKILL
IGNORED = (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ)
"""Signals that the supervisor ignores. What it executes would inherit that."""
_BEGAN = struct.Struct("d")
_REPORT = struct.Struct("idd")
"""Wait status, wall seconds, processor seconds."""


class Stream:
    """One output stream of a command: its beginning, its length, and the digest of the whole."""

    def __init__(self, cap: int) -> None:
        self._cap, self._stored, self._digest = cap, bytearray(), hashlib.sha256()
        self.total = 0

    def add(self, data: bytes) -> None:
        """Add data, storing it as far as there is room."""
        self._stored += data[: self._cap - len(self._stored)]
        self._digest.update(data)
        self.total += len(data)

    @property
    def digest(self) -> str:
        """SHA-256 of everything that was read."""
        return self._digest.hexdigest()

    @property
    def floods(self) -> bool:
        """Return whether the stream is longer than is ever read."""
        return self.total > FLOOD_BYTES

    @property
    def text(self) -> str:
        r"""The stored beginning. If it is not UTF-8, such bytes are written `\xNN` and backslashes are doubled."""
        beginning = self._stored.replace(b"\\", b"\\\\") if self.binary else self._stored
        return self._decode(beginning, "backslashreplace")

    @property
    def binary(self) -> bool:
        """Return whether the stored beginning is not UTF-8. A cap that fell within a character does not make it so."""
        try:
            self._decode(self._stored, "strict")
        except UnicodeDecodeError:
            return True
        return False

    def _decode(self, content: bytearray, errors: str) -> str:
        return codecs.utf_8_decode(content, errors, not self.cut)[0]

    @property
    def cut(self) -> bool:
        """Return whether more was written than is stored."""
        return self.total > len(self._stored)


@dataclass(frozen=True)
class Order:
    """A command to run, with its limits."""

    script: str
    workdir: str
    env: Mapping[str, str]
    seconds: float
    output_bytes: int


@dataclass(frozen=True)
class Ending:
    """Result of a command."""

    exit_code: int | None
    """Exit code; None unless `exited`."""
    ended: str
    """One of exited, deadline and flood: see `runner.records.cases.CaseResult`."""
    seconds: float
    cpu_seconds: float
    stdout: Stream
    stderr: Stream


@dataclass(frozen=True)
class Isolation:
    """The steps that isolate a command, for one of the two kinds of isolation."""

    enter: Callable[[], None]
    """Enter namespaces and root directory. Called in the command's own process."""
    become: Callable[[], None]
    """Take on user, limits and system calls. Called in that process just before it executes the command."""
    end: Callable[[int], int]
    """End the parent with this pid and everything beneath it, and return its wait status."""


class Crew:
    """Two processes that wait for a command: the *parent*, a child of this process, and its own child, the later shell.

    Forks take longer than everything else around a command, so these are started in advance. The parent waits for the
    shell and reports by a pipe that the shell does not have; output comes by other pipes. So whatever a command writes,
    it cannot forge a result.
    """

    def __init__(self, isolation: Isolation) -> None:
        self._isolation = isolation
        (given, self._giving), (self._report, reporting) = os.pipe(), os.pipe()
        (self._out, outwards), (self._err, errwards) = os.pipe(), os.pipe()
        self._parent = os.fork()
        if self._parent == 0:
            os.close(self._giving)  # so that the shell notices this process's end
            _lead(isolation, given, reporting, (outwards, errwards))
        for descriptor in (given, reporting, outwards, errwards):
            os.close(descriptor)

    def run(self, order: Order) -> Ending:
        """Run a script and return when none of its processes is alive any more. May be called once.

        Raises `RuntimeError` when the isolation could not be set up.
        """
        began = time.monotonic()
        with open(self._giving, "wb") as file:
            marshal.dump((order.script, order.workdir, dict(order.env)), file)
        streams = {self._out: Stream(order.output_bytes), self._err: Stream(order.output_bytes)}
        in_time = _follow(self._report, streams, began + order.seconds)
        status = self._isolation.end(self._parent)
        report = os.read(self._report, _REPORT.size)
        for descriptor, stream in streams.items():
            while data := os.read(descriptor, CHUNK):  # nobody is left who could write more
                stream.add(data)
        self._close()
        if not report and os.waitstatus_to_exitcode(status) > 0:
            raise RuntimeError("the isolation of a case could not be set up")
        # Decided by the streams' lengths, so it does not depend on how fast they were read.
        flood = any(stream.floods for stream in streams.values())
        if flood or not in_time:
            ended = "flood" if flood else "deadline"
            return Ending(None, ended, time.monotonic() - began, 0.0, *streams.values())
        if not report:  # killed by the kernel when memory was short
            return Ending(KILLED, "exited", time.monotonic() - began, 0.0, *streams.values())
        status, seconds, cpu = _REPORT.unpack(report)
        code = os.waitstatus_to_exitcode(status)
        return Ending(code if code >= 0 else 128 - code, "exited", seconds, cpu, *streams.values())

    def dismiss(self) -> None:
        """End both processes without a command. An alternative to `run`."""
        os.close(self._giving)
        self._isolation.end(self._parent)
        self._close()

    def _close(self) -> None:
        for descriptor in (self._report, self._out, self._err):
            os.close(descriptor)


def _follow(report: int, streams: Mapping[int, Stream], deadline: float) -> bool:
    """Read output until the report is there or its writer is gone.

    Returns False when the deadline or a flood of output came first.
    """
    waiting = select.poll()
    for descriptor in (report, *streams):
        waiting.register(descriptor, select.POLLIN)
    while (left := deadline - time.monotonic()) > 0:
        ready = [descriptor for descriptor, _ in waiting.poll(left * 1000)]
        for descriptor in ready:
            if descriptor in streams:
                if data := os.read(descriptor, CHUNK):
                    streams[descriptor].add(data)
                else:
                    waiting.unregister(descriptor)
        if report in ready:
            return True
        if any(stream.floods for stream in streams.values()):
            return False
    return False


def _lead(isolation: Isolation, given: int, report: int, outputs: tuple[int, int]) -> NoReturn:
    """Act as the parent: never return, and print failures on the supervisor's stderr."""
    try:
        syscalls.die_with_parent()
        user.first_to_go()
        started, starting = os.pipe()
        shell = os.fork()
        if shell == 0:
            os.close(report)
            _shell(isolation, given, starting, outputs)
        os.close(starting)
        pid = 0
        while pid != shell:  # also wait for inherited orphans
            pid, status, usage = os.wait3(0)
        ended = time.monotonic()
        (began,) = _BEGAN.unpack(os.read(started, _BEGAN.size))
        os.write(report, _REPORT.pack(status, ended - began, usage.ru_utime + usage.ru_stime))
    except BaseException:  # noqa: BLE001 - this copy of the supervisor must not go on as one
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


def _shell(isolation: Isolation, given: int, starting: int, outputs: tuple[int, int]) -> NoReturn:
    """Act as the command's own process: never return."""
    try:
        os.setsid()
        for ignored in IGNORED:
            signal.signal(ignored, signal.SIG_DFL)
        with open(given, "rb") as file:
            order = file.read()
        if not order:
            os._exit(0)
        script, workdir, env = marshal.loads(order)  # noqa: S302 - written by the supervisor itself
        isolation.enter()
    except BaseException:  # noqa: BLE001 - as above; without a start to report, the parent fails too
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(CANNOT_START)
    try:
        nothing = os.open(os.devnull, os.O_RDONLY)
        for standard, descriptor in enumerate((nothing, *outputs)):
            os.dup2(descriptor, standard)
        os.write(starting, _BEGAN.pack(time.monotonic()))
        isolation.become()
        os.chdir(workdir)
        os.execve("/bin/sh", ("sh", "-c", script), env)  # noqa: S606 - a shell is what a case asks for
    except BaseException as error:  # noqa: BLE001 - as above; goes to the command's stderr
        os.write(2, f"cannot start: {error}\n".encode(errors="replace"))
    os._exit(CANNOT_START)
