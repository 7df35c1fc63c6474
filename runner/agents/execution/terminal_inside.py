"""Keeps one shell on a terminal of its own inside a sandbox, and tells what its commands do.

Stays behind with a shell, or fails and says why; `ask_inside.py` is what talks to it. Asked by JSON for the socket's
`name`, an abstract one that takes no disk, and the shell's `folder`. Runs on the `python` bundle's interpreter in
isolated mode and imports nothing but the standard library.

The shell is an interactive bash, which a Ctrl-C brings back to its prompt with all that it knows. It reads commands
from a pipe, and says that one has ended, and how, on another: neither of them, nor its prompts, is any command's.
"""

from __future__ import annotations

import _thread
import base64
import contextlib
import ctypes
import fcntl
import json
import os
import select
import shlex
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

HEAD_BYTES = 1 << 15
TAIL_BYTES = 1 << 16
"""Kept of what a command prints between two answers; what is between the two is counted."""
CHUNK = 1 << 16
PIPE_BYTES = 1 << 20
"""Room for a command that is quoted in the worst way."""
HIGH = 200
"""Descriptors from here on are ours: a shell's own redirections use single digits."""
LINE_BYTES = 4095
"""A terminal drops what is beyond, without a word."""
ROWS, COLUMNS = 50, 200
SETTINGS = {"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "PS1": "$ ", "SHELL": "/bin/bash"}
BASH = ("bash", "--norc", "--noprofile", "--noediting", "+H", "-i")

LOOK_SECONDS = 1.0
"""Between two looks whether processes can still be started, when nothing happens."""
FULL_SECONDS = 3.0
"""No room for another process for so long is no accident."""
FENCE_SECONDS = 2.0
"""For what a command printed to come through its terminal; it takes a millisecond."""
CTRL_C_SECONDS = 1.0
"""Between Ctrl-C, which is what a shell expects, and asking each process to end."""
TERM_SECONDS = 2.0
"""Between that and killing them."""
KILL_SECONDS = 2.0
"""Between killing them and taking the shell for one that cannot be used any more."""
AGAIN_SECONDS = 0.1
REQUEST_SECONDS = 5.0
SET_CHILD_SUBREAPER = 36
STATE, PARENT, STARTED = 0, 1, 19
"""Of what `/proc/<pid>/stat` says behind the program's name."""


class Process(NamedTuple):
    """A process, and no later one of the same number."""

    pid: int
    started: int


class Kept:
    """What was printed: its beginning and its end, however much it was."""

    def __init__(self) -> None:
        self._head, self._tail, self._total = bytearray(), bytearray(), 0

    def add(self, data: bytes) -> None:
        """Keep what there is room for."""
        room = HEAD_BYTES - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        self._total += len(data)
        if len(self._tail) > 2 * TAIL_BYTES:
            del self._tail[:-TAIL_BYTES]

    def take(self) -> dict[str, object]:
        """Both parts, and how many bytes are missing between them; from now on nothing was printed."""
        head, tail = bytes(self._head), bytes(self._tail[-TAIL_BYTES:])
        dropped = self._total - len(head) - len(tail)
        self.__init__()  # type: ignore[misc]
        coded = [base64.b64encode(part).decode() for part in (head, tail)]
        return {"head": coded[0], "tail": coded[1], "dropped": dropped}


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


class Terminal:
    """The shell, what it runs, and who asks: one at a time."""

    def __init__(self, listener: socket.socket, folder: str) -> None:
        self._listener = listener
        self._shell = Shell(folder)
        self._folder = self._shell.folder
        self._kept = Kept()
        self._notes: list[str] = []
        self._heard = self._command = 0
        """Numbers of the last request, and of the last that was a command."""
        self._answer: dict[str, object] = {}
        self._is_running = False
        self._began = self._ended = 0.0
        self._code: int | None = None
        self._earlier: frozenset[Process] = frozenset()
        """What was there before the command."""
        self._full_since = 0.0
        self._woken, end = os.pipe()
        os.set_blocking(end, False)
        signal.set_wakeup_fd(end, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def serve(self) -> None:
        """Answer for ever."""
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
        if request["number"] != self._heard:  # else its answer was lost, and nothing is done twice
            self._heard, self._answer = request["number"], {}
            if not self._do(request["do"], request["text"]):
                request["seconds"] = 0.0
        until = time.monotonic() + request["seconds"]
        while not self._answer and self._is_running and (left := until - time.monotonic()) > 0:
            if self._look(min(left, LOOK_SECONDS), client):
                return
            self._watch()
        self._answer = self._answer or self._told()
        client.sendall(json.dumps(self._answer).encode() + b"\n")

    def _do(self, what: str, text: str) -> bool:
        """Whether there is something new to wait for."""
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

    def _told(self) -> dict[str, object]:
        notes, self._notes = self._notes, []
        return {
            **self._kept.take(),
            "state": "running" if self._is_running else "ended",
            "exit_code": self._code,
            "seconds": (time.monotonic() if self._is_running else self._ended) - self._began,
            "cwd": os.fsencode(self._folder).decode(errors="replace"),
            "note": os.fsencode(" ".join(notes)).decode(errors="replace"),
        }

    def _look(self, seconds: float, asker: socket.socket | None = None) -> bool:
        """Take in what happens within this time, and no longer than until something does; whether the asker did."""
        shell = self._shell
        watched: list[int | socket.socket] = [shell.master, shell.reports, self._woken]
        ready, _, _ = select.select([*watched, *([asker] if asker else [])], [], [], seconds)
        if shell.master in ready:
            self._kept.add(shell.read())
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
        """The command has ended: all that it printed is kept."""
        for data in self._shell.printed():
            self._kept.add(data)
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
        """The shell is dead: take another."""
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
        """End all processes when there is no room for another one: no request would come through any more."""
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
        """What the shell's commands started and what came of it, but for those to spare and what they started."""
        return below((os.getpid(), self._shell.pid), spared)

    def _freeze(self) -> None:
        """Stop all processes, so that they can be killed faster than they start new ones."""
        stopped: set[Process] = set()
        while new := self._processes() - stopped:
            send(new, signal.SIGSTOP)
            stopped |= new

    def _end(self, spared: Collection[Process]) -> None:
        """End the running command, and all processes but the shell and those to spare."""
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
                self._shell.ask(self._command)  # what it still had to read is forgotten
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
    """Living processes below these, without them, without those to spare and what is below those."""
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
    """Send them a signal; those that are gone, or another user's, do not get it."""
    for process in processes:
        with contextlib.suppress(OSError):
            os.kill(process.pid, what)


def serve(name: str, folder: str) -> int:
    """Start a terminal and leave it behind; says why when it cannot be started."""
    ready, end = os.pipe()
    if os.fork():
        os.close(end)
        with os.fdopen(ready) as file:
            said = file.read()
        print(said, end="")
        return 1 if said else 0
    os.setsid()
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # what its parent leaves behind becomes ours
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


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    sys.exit(serve(given["name"], given["folder"]))
