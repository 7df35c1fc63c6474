"""Keep one shell on a terminal of its own inside a sandbox, and report what its commands do.

The program stays in the sandbox, or fails and says why; `ask_inside.py` talks to it. Its argument is JSON: the `name`
of its socket, which is abstract and takes no disk, and the shell's `folder`. It runs on the interpreter of the `python`
bundle in isolated mode, and imports only the standard library and the shell, which is passed along.
"""

from __future__ import annotations

import _thread
import base64
import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from runner.benchmarks.project_setup.agent.shell_inside import AGAIN_SECONDS, CHUNK, Shell

HEAD_BYTES = 1 << 15
TAIL_BYTES = 1 << 16
"""Longest beginning and end that are kept of the output between two answers; the rest is counted."""
LINE_BYTES = 4095
"""Longest line that a terminal takes; it silently drops the rest."""

LOOK_SECONDS = 1.0
"""Longest pause between two checks whether processes can still be started."""
FULL_SECONDS = 3.0
"""Time without room for another process after which all processes are ended."""
CTRL_C_SECONDS = 1.0
"""Time between Ctrl-C, which shells expect, and SIGTERM to each process."""
TERM_SECONDS = 2.0
"""Time between SIGTERM and SIGKILL."""
KILL_SECONDS = 2.0
"""Time between SIGKILL and giving up the shell."""
REQUEST_SECONDS = 5.0
SET_CHILD_SUBREAPER = 36
STATE, PARENT, STARTED = 0, 1, 19
"""Positions of fields in `/proc/<pid>/stat`, behind the program's name."""


class Process(NamedTuple):
    """Identity of a process, which no later process with the same number has."""

    pid: int
    started: int


class Printed:
    """Beginning and end of what was printed, in bounded memory."""

    def __init__(self) -> None:
        self._head, self._tail, self._total = bytearray(), bytearray(), 0

    def add(self, data: bytes) -> None:
        """Add output."""
        room = HEAD_BYTES - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        self._total += len(data)
        if len(self._tail) > 2 * TAIL_BYTES:
            del self._tail[:-TAIL_BYTES]

    def take(self) -> dict[str, object]:
        """Return both parts and the number of bytes between them, and forget them."""
        head, tail = bytes(self._head), bytes(self._tail[-TAIL_BYTES:])
        dropped = self._total - len(head) - len(tail)
        self.__init__()  # type: ignore[misc]
        coded = [base64.b64encode(part).decode() for part in (head, tail)]
        return {"head": coded[0], "tail": coded[1], "dropped": dropped}


class Terminal:
    """Shell with at most one running command and one client at a time."""

    def __init__(self, listener: socket.socket, folder: str) -> None:
        self._listener = listener
        self._shell = Shell(folder)
        self._folder = self._shell.folder
        self._printed = Printed()
        self._notes: list[str] = []
        self._heard = self._command = 0
        """Numbers of the last request, and of the last that was a command."""
        self._answer: dict[str, object] = {}
        self._is_running = False
        self._began = self._ended = 0.0
        self._code: int | None = None
        self._earlier: frozenset[Process] = frozenset()
        """Processes that were there before the command."""
        self._full_since = 0.0
        self._woken, end = os.pipe()
        os.set_blocking(end, False)
        signal.set_wakeup_fd(end, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def serve(self) -> None:
        """Answer requests for ever."""
        while True:
            if self._look(LOOK_SECONDS, self._listener):
                client, _ = self._listener.accept()
                with client, contextlib.suppress(ConnectionError, TimeoutError, ValueError):  # it may die
                    self._hear(client)
            self._watch()

    def _hear(self, client: socket.socket) -> None:
        client.settimeout(REQUEST_SECONDS)
        with client.makefile("rb") as stream:
            request = json.loads(stream.readline())
        if request["number"] != self._heard:  # otherwise its answer was lost: do nothing twice
            self._heard, self._answer = request["number"], {}
            if not self._do(request["do"], request["text"]):
                request["seconds"] = 0.0
        until = time.monotonic() + request["seconds"]
        while not self._answer and self._is_running and (left := until - time.monotonic()) > 0:
            if self._look(min(left, LOOK_SECONDS), client):
                return
            self._watch()
        self._answer = self._answer or self._report()
        client.sendall(json.dumps(self._answer).encode() + b"\n")

    def _do(self, what: str, text: str) -> bool:
        """Carry out a request; return whether there is something new to wait for."""
        if what == "run":
            return self._begin(text)
        if not self._is_running:
            self._notes.append("No command is running.")
        elif what == "write":
            self._type(f"{text}\n".encode(errors="replace"))
        elif what == "terminate":
            self._end(self._earlier)
            self._notes.append("It was terminated.")
        return True

    def _type(self, data: bytes) -> None:
        if max(map(len, data.splitlines())) > LINE_BYTES:
            self._notes.append(f"Not typed: a terminal's line has no room for more than {LINE_BYTES} bytes.")
        elif (taken := self._shell.type(data)) < len(data):
            self._notes.append(f"The command does not read: {taken} of {len(data)} bytes were taken.")

    def _begin(self, command: str) -> bool:
        if self._is_running:
            self._notes.append("Another command still runs: this one was not started.")
            return False
        self._earlier = frozenset(self._processes())
        self._command, self._code = self._heard, None
        self._began = self._ended = time.monotonic()
        self._is_running = self._shell.begin(self._command, command)
        if not self._is_running:
            self._notes.append("The command is too long: write it to a file and run that.")
        return self._is_running

    def _report(self) -> dict[str, object]:
        notes, self._notes = self._notes, []
        return {
            **self._printed.take(),
            "state": "running" if self._is_running else "ended",
            "exit_code": self._code,
            "seconds": (time.monotonic() if self._is_running else self._ended) - self._began,
            "cwd": os.fsencode(self._folder).decode(errors="replace"),
            "note": os.fsencode(" ".join(notes)).decode(errors="replace"),
        }

    def _look(self, seconds: float, asker: socket.socket | None = None) -> bool:
        """Handle the first events within this time; return whether the asker is among them."""
        shell = self._shell
        watched: list[int | socket.socket] = [shell.master, shell.reports, self._woken]
        ready, _, _ = select.select([*watched, *([asker] if asker else [])], [], [], seconds)
        if shell.master in ready:
            self._printed.add(shell.read())
        if shell.reports in ready:
            for line in os.read(shell.reports, CHUNK).splitlines():
                number, code = map(int, line.split())
                if number == self._command and self._is_running:
                    self._finish(code)
        if self._woken in ready:
            os.read(self._woken, CHUNK)
            self._reap()
        return asker in ready

    def _finish(self, code: int) -> None:
        """Record that the command has ended, with all that it printed."""
        for data in self._shell.printed():
            self._printed.add(data)
        self._shell.forget()
        self._is_running, self._code, self._ended = False, code, time.monotonic()
        with contextlib.suppress(OSError):
            self._folder = self._shell.folder

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self._shell.pid:
                    code = os.waitstatus_to_exitcode(ended[1])
                    self._renew(code if code >= 0 else 128 - code)

    def _renew(self, code: int) -> None:
        """Replace the dead shell."""
        if self._is_running:
            self._finish(code)
        self._shell.close()
        self._shell = Shell(self._folder)
        self._folder = self._shell.folder
        self._notes.append(
            f"The shell itself ended, with {code}: `exit`, `exec`, an error under `set -e`, or a signal does that. "
            f"A new one was started in {self._folder}; variables and activated environments are gone."
        )

    def _watch(self) -> None:
        """End all processes when no other can be started: no request would come through any more."""
        now = time.monotonic()
        try:
            _thread.start_new_thread(lambda: None, ())
        except RuntimeError:
            self._full_since = self._full_since or now
        else:
            self._full_since = 0.0
        if self._full_since and now - self._full_since >= FULL_SECONDS:
            self._full_since = 0.0
            self._freeze()
            self._end(frozenset())
            self._notes.append("There were as many processes as the sandbox allows: all of them were killed.")

    def _processes(self, spared: Collection[Process] = ()) -> set[Process]:
        """Return the descendants of the shell, without those to spare and their descendants."""
        return below((os.getpid(), self._shell.pid), spared)

    def _freeze(self) -> None:
        """Stop all processes, so that they cannot start new ones faster than they are killed."""
        stopped: set[Process] = set()
        while new := self._processes() - stopped:
            send(new, signal.SIGSTOP)
            stopped |= new

    def _end(self, spared: Collection[Process]) -> None:
        """End the running command and all processes except the shell and those to spare."""
        if self._is_running:
            self._shell.forget()
            self._shell.type(b"\x03")
            self._await_end(spared, CTRL_C_SECONDS)
        send(self._processes(spared), signal.SIGTERM)
        self._await_end(spared, TERM_SECONDS)
        until = time.monotonic() + KILL_SECONDS
        while ((left := self._processes(spared)) or self._is_running) and time.monotonic() < until:
            send(left, signal.SIGKILL)
            if self._is_running:
                os.kill(self._shell.pid, signal.SIGINT)
                self._shell.ask(self._command)  # the interrupt discarded what the shell had not read
            self._await_end(spared, AGAIN_SECONDS)
        if self._is_running:
            os.kill(self._shell.pid, signal.SIGKILL)
        while self._is_running:
            self._look(LOOK_SECONDS)

    def _await_end(self, spared: Collection[Process], seconds: float) -> None:
        until = time.monotonic() + seconds
        while (self._is_running or self._processes(spared)) and (left := until - time.monotonic()) > 0:
            self._look(min(left, AGAIN_SECONDS))


def below(roots: Collection[int], spared: Collection[Process]) -> set[Process]:
    """Return living descendants of the roots, without those to spare and their descendants."""
    children: dict[int, list[tuple[Process, bool]]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_bytes().rpartition(b")")[2].split()
            process = Process(int(stat.parent.name), int(fields[STARTED]))
            children.setdefault(int(fields[PARENT]), []).append((process, fields[STATE] not in b"ZX"))
    found: set[Process] = set()
    waiting = list(roots)
    while waiting:
        for process, is_alive in children.get(waiting.pop(), []):
            if process.pid not in roots and process not in spared:
                waiting.append(process.pid)
                if is_alive:
                    found.add(process)
    return found


def send(processes: Collection[Process], what: signal.Signals) -> None:
    """Send each process a signal, unless it is gone or another user's."""
    for process in processes:
        with contextlib.suppress(OSError):
            os.kill(process.pid, what)


def serve(name: str, folder: str) -> int:
    """Start a terminal that stays behind; print why if it cannot be started."""
    ready, end = os.pipe()
    if os.fork():
        os.close(end)
        with os.fdopen(ready) as file:
            failure = file.read()
        print(failure, end="")
        return 1 if failure else 0
    os.setsid()
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # adopt orphans
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    try:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(f"\0{name}")
        listener.listen()
        terminal = Terminal(listener, folder)
    except OSError as error:
        os.write(end, f"{error}".encode())
        return 1
    os.close(end)
    terminal.serve()
    return 0


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    sys.exit(serve(given["name"], given["folder"]))
