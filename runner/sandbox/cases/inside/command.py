"""One command of a case: started as its user, followed to its end or deadline, its output capped."""

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

from runner.sandbox.cases.inside import kernel, person

CHUNK = 1 << 16
FLOOD_BYTES = 64 << 20
"""Longest stream that is read: a command that writes more is killed. Reading and digesting it is the supervisor's work,
which no command may have without limit."""
CANNOT_START = 126
KILLED = 128 + signal.SIGKILL
IGNORED = (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ)
"""By the supervisor, and so by what it executes, unless it is undone."""
_BEGAN = struct.Struct("d")
_REPORT = struct.Struct("idd")
"""Wait status, wall seconds, processor seconds."""


class Stream:
    """What a command wrote to stdout or stderr: the beginning, the length, and the digest of the whole."""

    def __init__(self, cap: int) -> None:
        self._cap, self._kept, self._digest = cap, bytearray(), hashlib.sha256()
        self.total = 0

    def add(self, data: bytes) -> None:
        """Keep what there is room for."""
        self._kept += data[: self._cap - len(self._kept)]
        self._digest.update(data)
        self.total += len(data)

    @property
    def digest(self) -> str:
        """SHA-256 of everything that was read."""
        return self._digest.hexdigest()

    @property
    def floods(self) -> bool:
        """Whether there was more than anybody reads."""
        return self.total > FLOOD_BYTES

    @property
    def text(self) -> str:
        r"""Where it is no UTF-8, such bytes are written `\xNN` and backslashes doubled."""
        kept = self._kept.replace(b"\\", b"\\\\") if self.binary else self._kept
        return self._decoded(kept, "backslashreplace")

    @property
    def binary(self) -> bool:
        """Whether what is kept is no UTF-8; that the cap fell within a character does not make it so."""
        try:
            self._decoded(self._kept, "strict")
        except UnicodeDecodeError:
            return True
        return False

    def _decoded(self, kept: bytearray, errors: str) -> str:
        return codecs.utf_8_decode(kept, errors, not self.cut)[0]

    @property
    def cut(self) -> bool:
        """Whether there was more."""
        return self.total > len(self._kept)


@dataclass(frozen=True)
class Order:
    """What is to be run."""

    script: str
    workdir: str
    env: Mapping[str, str]
    seconds: float
    output_bytes: int


@dataclass(frozen=True)
class Ending:
    """How it ended."""

    exit_code: int | None
    """None unless `exited`."""
    ended: str
    """exited, deadline or flood: see `runner.records.cases.CaseResult`."""
    seconds: float
    cpu_seconds: float
    stdout: Stream
    stderr: Stream


@dataclass(frozen=True)
class Walls:
    """What stands around a command, by the way that is taken."""

    enter: Callable[[], None]
    """Called in the command's own process: namespaces, root directory."""
    become: Callable[[], None]
    """Called there before it executes anything: user, limits, system calls."""
    end: Callable[[int], int]
    """Ends the parent with this pid and everything beneath it; returns its wait status when nothing is left."""


class Crew:
    """Two processes that wait for a command: the *parent*, a child of this process, and its own, the later shell.

    Forks cost more than all else around a command, so these are there before there is anything to run. The parent
    waits for the shell and reports by a pipe that the shell does not have; output comes by pipes of its own. So
    whatever a command writes, it cannot write a result.
    """

    def __init__(self, walls: Walls) -> None:
        self._walls = walls
        (given, self._giving), (self._report, reporting) = os.pipe(), os.pipe()
        (self._out, outwards), (self._err, errwards) = os.pipe(), os.pipe()
        self._parent = os.fork()
        if self._parent == 0:
            os.close(self._giving)  # so that the shell hears of this process's end
            _lead(walls, given, reporting, (outwards, errwards))
        for descriptor in (given, reporting, outwards, errwards):
            os.close(descriptor)

    def run(self, order: Order) -> Ending:
        """Run a script; returns when nothing of it is alive any more. Once only.

        Raises `RuntimeError` when the walls could not be put up.
        """
        began = time.monotonic()
        with open(self._giving, "wb") as file:
            marshal.dump((order.script, order.workdir, dict(order.env)), file)
        streams = {self._out: Stream(order.output_bytes), self._err: Stream(order.output_bytes)}
        in_time = _follow(self._report, streams, began + order.seconds)
        status = self._walls.end(self._parent)
        said = os.read(self._report, _REPORT.size)
        for descriptor, stream in streams.items():
            while data := os.read(descriptor, CHUNK):  # nobody is left who could write more
                stream.add(data)
        self._close()
        if not said and os.waitstatus_to_exitcode(status) > 0:
            raise RuntimeError("a case's walls could not be put up")
        # By the streams' lengths, and so the same however fast they were read.
        flood = any(stream.floods for stream in streams.values())
        if flood or not in_time:
            ended = "flood" if flood else "deadline"
            return Ending(None, ended, time.monotonic() - began, 0.0, *streams.values())
        if not said:  # taken by the kernel when memory was short
            return Ending(KILLED, "exited", time.monotonic() - began, 0.0, *streams.values())
        status, seconds, cpu = _REPORT.unpack(said)
        code = os.waitstatus_to_exitcode(status)
        return Ending(code if code >= 0 else 128 - code, "exited", seconds, cpu, *streams.values())

    def dismiss(self) -> None:
        """End both without a command; instead of `run`."""
        os.close(self._giving)
        self._walls.end(self._parent)
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


def _lead(walls: Walls, given: int, report: int, outputs: tuple[int, int]) -> NoReturn:
    """The parent: never returns, and says on the supervisor's stderr what went wrong."""
    try:
        kernel.die_with_parent()
        person.first_to_go()
        started, starting = os.pipe()
        shell = os.fork()
        if shell == 0:
            os.close(report)
            _shell(walls, given, starting, outputs)
        os.close(starting)
        pid = 0
        while pid != shell:  # also of orphans, whom it inherits
            pid, status, usage = os.wait3(0)
        ended = time.monotonic()
        (began,) = _BEGAN.unpack(os.read(started, _BEGAN.size))
        os.write(report, _REPORT.pack(status, ended - began, usage.ru_utime + usage.ru_stime))
    except BaseException:  # noqa: BLE001 - a copy of the supervisor must not go on as one
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


def _shell(walls: Walls, given: int, starting: int, outputs: tuple[int, int]) -> NoReturn:
    """The command's own process."""
    try:
        os.setsid()
        for ignored in IGNORED:
            signal.signal(ignored, signal.SIG_DFL)
        with open(given, "rb") as file:
            order = file.read()
        if not order:
            os._exit(0)
        script, workdir, env = marshal.loads(order)  # noqa: S302 - the supervisor's own
        walls.enter()
    except BaseException:  # noqa: BLE001 - as above; the parent has no beginning to report, and fails too
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(CANNOT_START)
    try:
        nothing = os.open(os.devnull, os.O_RDONLY)
        for standard, descriptor in enumerate((nothing, *outputs)):
            os.dup2(descriptor, standard)
        os.write(starting, _BEGAN.pack(time.monotonic()))
        walls.become()
        os.chdir(workdir)
        os.execve("/bin/sh", ("sh", "-c", script), env)  # noqa: S606 - the shell is the point
    except BaseException as error:  # noqa: BLE001 - as above; this goes to the command's stderr
        os.write(2, f"cannot start: {error}\n".encode(errors="replace"))
    os._exit(CANNOT_START)
