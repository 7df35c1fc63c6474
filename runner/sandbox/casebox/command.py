"""One command of a case: started as its user, followed to its end or deadline, its output capped."""

from __future__ import annotations

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

from runner.sandbox.casebox import kernel, person

CHUNK = 1 << 16
CANNOT_START = 126
KILLED = 128 + signal.SIGKILL
IGNORED = (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ)
"""By the supervisor, and so by what it executes, unless it is undone."""
_REPORT = struct.Struct("idd")
"""Wait status, wall seconds, processor seconds."""


class Stream:
    """What a command wrote to stdout or stderr: the beginning, and how much it was."""

    def __init__(self, cap: int) -> None:
        self._cap, self._kept = cap, bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        """Keep what there is room for."""
        self._kept += data[: self._cap - len(self._kept)]
        self.total += len(data)

    @property
    def text(self) -> str:
        r"""Where it is no UTF-8, such bytes are written `\xNN` and backslashes doubled."""
        kept = self._kept.replace(b"\\", b"\\\\") if self.binary else self._kept
        return kept.decode(errors="backslashreplace")

    @property
    def binary(self) -> bool:
        """Whether what is kept is no UTF-8."""
        try:
            self._kept.decode()
        except UnicodeDecodeError:
            return True
        return False

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
    """None after the deadline."""
    seconds: float
    cpu_seconds: float
    stdout: Stream
    stderr: Stream


@dataclass(frozen=True)
class Walls:
    """What stands around a command, by the way that is taken."""

    enter: Callable[[], None]
    """Called in the parent of the command: namespaces, root directory."""
    become: Callable[[], None]
    """Called in the command's own process before it executes anything: user, limits, system calls."""
    end: Callable[[int], int]
    """Ends the parent with this pid and everything beneath it; returns its wait status when nothing is left."""


def run(order: Order, walls: Walls) -> Ending:
    """Run a script; returns when nothing of it is alive any more.

    A child of this process, the *parent*, starts the shell, waits for it and reports by a pipe that the shell does not
    have; output comes by pipes of its own. So whatever a command writes, it cannot write a result.

    Raises `RuntimeError` when the walls could not be put up.
    """
    (report, reporting), (out, outwards), (err, errwards) = os.pipe(), os.pipe(), os.pipe()
    began = time.monotonic()
    parent = os.fork()
    if parent == 0:
        _lead(order, walls, reporting, (outwards, errwards))
    for descriptor in (reporting, outwards, errwards):
        os.close(descriptor)
    streams = {out: Stream(order.output_bytes), err: Stream(order.output_bytes)}
    late = _follow(report, streams, began + order.seconds)
    status = walls.end(parent)
    said = os.read(report, _REPORT.size)
    for descriptor, stream in streams.items():
        while data := os.read(descriptor, CHUNK):  # nobody is left who could write more
            stream.add(data)
    for descriptor in (report, *streams):
        os.close(descriptor)
    if not said and os.waitstatus_to_exitcode(status) > 0:
        raise RuntimeError("a case's walls could not be put up")
    if late or not said:  # without a report: taken by the kernel when memory was short
        return Ending(None if late else KILLED, time.monotonic() - began, 0.0, *streams.values())
    ended, seconds, cpu = _REPORT.unpack(said)
    code = os.waitstatus_to_exitcode(ended)
    return Ending(code if code >= 0 else 128 - code, seconds, cpu, *streams.values())


def _follow(report: int, streams: Mapping[int, Stream], deadline: float) -> bool:
    """Read output until the report is there or its writer is gone; True when the deadline came first."""
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
            return False
    return True


def _lead(order: Order, walls: Walls, report: int, outputs: tuple[int, int]) -> NoReturn:
    """The parent: never returns, and says on the supervisor's stderr what went wrong."""
    try:
        kernel.die_with_parent()
        person.first_to_go()
        walls.enter()
        began = time.monotonic()
        shell = os.fork()
        if shell == 0:
            _shell(order, walls, outputs)
        pid = 0
        while pid != shell:  # also of orphans, whom it inherits
            pid, status, usage = os.wait3(0)
        cpu = usage.ru_utime + usage.ru_stime
        os.write(report, _REPORT.pack(status, time.monotonic() - began, cpu))
    except BaseException:  # noqa: BLE001 - a copy of the supervisor must not go on as one
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


def _shell(order: Order, walls: Walls, outputs: tuple[int, int]) -> NoReturn:
    """The command's own process."""
    try:
        nothing = os.open(os.devnull, os.O_RDONLY)
        for standard, descriptor in enumerate((nothing, *outputs)):
            os.dup2(descriptor, standard)
        os.setsid()
        for ignored in IGNORED:
            signal.signal(ignored, signal.SIG_DFL)
        walls.become()
        os.chdir(order.workdir)
        os.execve("/bin/sh", ("sh", "-c", order.script), dict(order.env))  # noqa: S606 - the shell is the point
    except BaseException as error:  # noqa: BLE001 - as above; this goes to the command's stderr
        os.write(2, f"cannot start: {error}\n".encode(errors="replace"))
    os._exit(CANNOT_START)
