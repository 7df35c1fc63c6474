"""Runs a script and watches the test programs that it calls.

    python3 -I -S watch.py SPEC.json

The first program of ours in the sandbox. Its standard output is the only channel that the judge reads: one JSON object
a line (`event`: run, file, pytest, end). Test programs have a shim in front of them, on PATH and, for bash, as
functions; a shim asks here, and the program runs as this process's child, so that what is recorded is what a program
printed, and nothing that the script says. The script is root: it can end this process, or speak to it as pytest's
plugin does; it cannot read or write this process's memory and files, which are closed to all who may not trace.
Standard library only.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import hashlib
import itertools
import json
import os
import re
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

PLACE = Path(__file__).parent
PR_SET_DUMPABLE = 4
CHUNK = 65_536
HEAD, TAIL = 1 << 20, 3 << 20
"""Bytes of a program's output that are kept: the first and the last."""
SCRIPT_TAIL = 1 << 16
TOLD, UNPACKED = 8 << 20, 64 << 20
"""Characters that the channel carries, and bytes that they stand for; the judge's own cap on the former is higher."""
FILE, FILES = 5 << 20, 2000
"""Bytes of one file of results, and how many of them one run may leave."""
IDLE_SECONDS, REST_SECONDS = 0.3, 3.0
"""After a program's end, how long its streams are silent before what still holds them is taken for a daemon; and how
long what is not silent may still be the program's."""
LOOK_SECONDS = 0.05
DEEP = 2
NOT_LOOKED_INTO = {".git", "node_modules"}
COARSE_SECONDS = 0.05
"""By which a file's time may lie before the clock's."""
SHIM = '#!/bin/sh\nexec {python} -I -S {place}/shim.py {name} "$@"\n'
FUNCTIONS = """
_assay_names() {{
    local name
    for name in {names}; do
        if type -P "$name" > /dev/null; then eval "$name() {{ {python} -I -S {place}/shim.py $name \\"\\$@\\"; }}"; fi
    done
}}
_assay_names
hash() {{ builtin hash "$@"; local code=$?; _assay_names; return $code; }}
command() {{
    if [[ $# = 2 && $1 = -v && " {names} " = *" $2 "* ]]; then type -P "$2"; else builtin command "$@"; fi
}}
"""
"""`activate` of a virtual environment calls `hash -r` when PATH has changed. Who asks where a program is, to link it or
to give it to another, must hear of a file."""
AT_PATH = '{path}() {{ {python} -I -S {place}/shim.py {path} "$@"; }}\n'


class Kept:
    """The first and the last of a program's output."""

    def __init__(self, head: int, tail: int) -> None:
        self._most, self._tail_most = head, tail
        self._head, self._tail = bytearray(), bytearray()
        self._cut = False

    def add(self, data: bytes) -> None:
        """What is between is dropped."""
        room = self._most - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * self._tail_most:
            del self._tail[: -self._tail_most]
            self._cut = True

    def whole(self) -> bytes:
        """What was kept; the two parts are no one line where something between them is missing."""
        cut = self._cut or len(self._tail) > self._tail_most
        return bytes(self._head) + (b"\n" if cut else b"") + bytes(self._tail[-self._tail_most :])


class Channel:
    """Standard output: whole lines, no more than `TOLD` in all."""

    def __init__(self) -> None:
        self._left, self._unpacked = TOLD, UNPACKED
        self._lock = threading.Lock()
        self.full = False

    def say(self, event: dict[str, object], body: bytes = b"") -> None:
        """An event; its `body` in Base64 of zlib's."""
        packed = {"body": base64.b64encode(zlib.compress(body)).decode()} if body else {}
        line = json.dumps({**event, **packed})
        with self._lock:
            self._left -= len(line)
            self._unpacked -= len(body)
            if min(self._left, self._unpacked) < 0 and event["event"] != "end":
                self.full = True
                return
            print(line, flush=True)


class Watcher:
    """Everything that is known of one script's run."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self._spec = spec
        self._programs: list[str] = spec["programs"]
        self._results = re.compile(spec["results"])
        self._began = time.monotonic()
        self._channel = Channel()
        self._numbers = itertools.count()
        self._folders = os.environ.get("PATH", os.defpath).split(":")

    def run(self) -> None:
        """The script from its beginning to its end or its time limit."""
        self._prepare()
        printed = Kept(0, SCRIPT_TAIL)
        reading, writing = os.pipe()
        shell = shutil.which("bash") or "/bin/sh"
        child = subprocess.Popen(
            [shell, self._spec["script"]],
            cwd=self._spec["workdir"],
            env=self._env(),
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=writing,
            start_new_session=True,
        )
        os.close(writing)
        pump = Pump({reading: None}, printed)
        deadline = self._began + self._spec["seconds"]
        while child.poll() is None and time.monotonic() < deadline:
            self._shims()
            time.sleep(LOOK_SECONDS)
        code = child.poll()
        if code is None:
            os.killpg(child.pid, signal.SIGKILL)
        pump.rest()
        end = {"event": "end", "code": code, "seconds": time.monotonic() - self._began}
        self._channel.say({**end, "full": self._channel.full}, printed.whole())

    def _prepare(self) -> None:
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
        (PLACE / "bin").mkdir(parents=True, exist_ok=True)
        self._shims()
        names = {"python": sys.executable, "place": PLACE}
        functions = [AT_PATH.format(path=path, **names) for path in self._spec["paths"]]
        functions.append(FUNCTIONS.format(names=" ".join(self._programs), **names))
        (PLACE / "functions").write_text("".join(functions))
        door = socket.socket(socket.AF_UNIX)
        door.bind(str(PLACE / "socket"))
        (PLACE / "socket").chmod(0o777)
        door.listen(64)
        threading.Thread(target=self._hear, args=(door,), daemon=True).start()

    def _env(self) -> dict[str, str]:
        env = dict(os.environ)
        env["PATH"] = f"{PLACE}/bin:{env.get('PATH', os.defpath)}"
        env["BASH_ENV"] = f"{PLACE}/functions"
        env["PYTHONPATH"] = ":".join(filter(None, (f"{PLACE}/plugin", env.get("PYTHONPATH"))))
        env["TOX_TESTENV_PASSENV"] = "PYTHONPATH"
        env["TOX_OVERRIDE"] = "testenv.pass_env+=PYTHONPATH"
        return env

    def _shims(self) -> None:
        """A shim for each program that is there by now: a name that nothing is behind would be a lie."""
        for name in self._programs:
            shim = PLACE / "bin" / name
            if not shim.exists() and any(os.access(f"{folder}/{name}", os.X_OK) for folder in self._folders):
                new = PLACE / f"new-{name}"
                new.write_text(SHIM.format(python=sys.executable, place=PLACE, name=name))
                new.chmod(0o755)
                new.rename(shim)

    def _hear(self, door: socket.socket) -> None:
        while True:
            connection, _ = door.accept()
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        """One request; what makes no sense has no answer."""
        with connection, contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            head, files, _, _ = socket.recv_fds(connection, 8 + 4, 3)
            length, numbers = int.from_bytes(head[:8], "big"), head[8:].partition(b"\xff")
            data = bytearray(numbers[2])
            while len(data) < length and (more := connection.recv(CHUNK)):
                data += more
            request = json.loads(data.decode("utf-8", "surrogateescape"))
            if request["ask"] == "run":
                code = Run(request, connection, dict(zip(numbers[0], files, strict=True))).watch(self._tell)
                connection.sendall(str(code).encode())
            elif request["ask"] == "pytest":
                self._pytest(request)
                connection.sendall(b"0")

    def _tell(self, run: Run, started: float, code: int) -> None:
        """One program's run, and the files of results that are new since it began."""
        # Elsewhere there may be a whole system below a folder.
        elsewhere = (run.cwd,) if len(Path(run.cwd).parts) > DEEP else ()
        roots = dict.fromkeys((self._spec["workspace"], *elsewhere))
        found = dict.fromkeys(path for root in roots for path in self._new_results(root, started))
        number = next(self._numbers)
        told = {"run": number, "argv": run.argv, "code": code, "file": run.file, "script": run.script}
        self._channel.say({"event": "run", **told}, run.printed.whole())
        for path in list(found)[:FILES]:
            with contextlib.suppress(OSError):
                self._channel.say({"event": "file", "run": number, "path": path}, _content(path, FILE))

    def _new_results(self, root: str, since: float) -> list[str]:
        """Files of results below a folder that are newer; by the time that a script cannot set."""
        border = time.time() - (time.monotonic() - since) - COARSE_SECONDS
        found = []
        for folder, folders, names in os.walk(root):
            folders[:] = [name for name in folders if name not in NOT_LOOKED_INTO]
            for name in names:
                path = f"{folder}/{name}"
                if self._results.fullmatch(path) and _changed(path) >= border:
                    found.append(path)
        return found

    def _pytest(self, request: dict[str, Any]) -> None:
        """A session of pytest: its tests by file, each file with the digest of what it holds now."""
        tests = []
        for name, outcome in request["tests"].items():
            file, _, rest = name.partition("::")
            tests.append((os.path.normpath(os.path.join(request["root"], file)), rest, outcome))  # noqa: PTH118
        files = {path: _digest(path) for path in {path for path, _, _ in tests}}
        conftests = {path: _digest(path) for path in request["conftests"]}
        body = {"tests": tests, "files": files, "conftests": conftests}
        self._channel.say({"event": "pytest"}, json.dumps(body).encode())


class Run:
    """One program, run for a shim."""

    def __init__(self, request: dict[str, Any], shim: socket.socket, files: dict[int, int]) -> None:
        self.argv: list[str] = request["argv"]
        self.cwd: str = request["cwd"]
        self.program: str = request["program"]
        self.printed = Kept(HEAD, TAIL)
        self.file, self.script = self._first_file(), self._text()
        """As they are before it runs."""
        self._request, self._shim, self._files = request, shim, files

    def watch(self, tell: Callable[[Run, float, int], None]) -> int:
        """Run it to its end; returns its exit code, negative for a signal."""
        started = time.monotonic()
        try:
            child, pump = self._start()
        except OSError:
            return 126
        threading.Thread(target=self._pass_signals, args=(child,), daemon=True).start()
        code = child.wait()
        pump.rest()
        with contextlib.suppress(OSError):
            tell(self, started, code)
        return code

    def _first_file(self) -> list[str]:
        """The first argument that is a file, and its digest."""
        for word in self.argv[1:]:
            path = os.path.realpath(os.path.join(self.cwd, word))  # noqa: PTH118
            if os.path.isfile(path):  # noqa: PTH113
                return [path, _digest(path)]
        return []

    def _text(self) -> list[str]:
        """The program and its digest where it is a text that no package of the system brought."""
        path = os.path.realpath(self.program)
        with contextlib.suppress(OSError):
            if not _content(path, 4).startswith(b"\x7fELF") and not _packaged(path):
                return [path, _digest(path)]
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
        for kind, limit in self._request["limits"].items():
            with contextlib.suppress(OSError, ValueError):
                resource.prlimit(child.pid, int(kind), tuple(limit))
        return child, Pump(sources, self.printed)

    def _pipes(self) -> tuple[dict[int, int | None], dict[int, int]]:
        """Ends to read from with the shim's files that they go to, and ends to write to by number.

        Both streams of one file are one pipe: then their order is kept.
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
        """Signals that the shim got; a shim that was killed takes its program with it."""
        with contextlib.suppress(OSError):
            while given := self._shim.recv(1):
                child.send_signal(given[0])
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)


class Pump(threading.Thread):
    """Carries what is printed to where it was to go, and keeps it."""

    def __init__(self, sources: dict[int, int | None], printed: Kept) -> None:
        super().__init__(daemon=True)
        self._sources, self._printed = sources, printed
        self._heard = time.monotonic()
        self.start()

    def run(self) -> None:
        """Until every end is closed."""
        threads = [
            threading.Thread(target=self._carry, args=pair, daemon=True) for pair in self._sources.items()
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def rest(self) -> None:
        """Wait until nothing more comes, or what comes is a daemon's."""
        latest = time.monotonic() + REST_SECONDS
        while self.is_alive() and time.monotonic() < min(latest, self._heard + IDLE_SECONDS):
            self.join(LOOK_SECONDS)

    def _carry(self, source: int, target: int | None) -> None:
        try:
            while data := os.read(source, CHUNK):
                self._heard = time.monotonic()
                self._printed.add(data)
                while target is not None and data:
                    data = data[os.write(target, data) :]
                    self._heard = time.monotonic()
        except OSError:  # nobody reads it: its program hears of that as it would have
            pass
        finally:
            os.close(source)
            if target is not None:
                os.close(target)


def _changed(path: str) -> float:
    """When a regular file was written last, by the time that nobody can set; long ago for all else."""
    try:
        state = os.lstat(path)
    except OSError:
        return 0.0
    return state.st_ctime if stat.S_ISREG(state.st_mode) else 0.0


def _content(path: str, most: int) -> bytes:
    """Of a regular file, links not followed. Raises `OSError`."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(path)
        return file.read(most)


def _digest(path: str) -> str:
    """SHA-256 of what a path holds; empty when it holds nothing of sane size."""
    try:
        content = _content(os.path.realpath(path), FILE + 1)
    except OSError:
        return ""
    return hashlib.sha256(content).hexdigest() if len(content) <= FILE else ""


def _packaged(path: str) -> bool:
    """Whether a package of Debian's brought this file as it is now; elsewhere, whether packages put theirs there."""
    lists = list(Path("/var/lib/dpkg/info").glob("*.md5sums"))
    if not lists:
        return path.startswith("/usr/bin/")
    digest = hashlib.md5(_content(path, FILE), usedforsecurity=False).hexdigest()
    line = f"{digest}  {path[1:]}\n".encode()
    return any(line in listed.read_bytes() for listed in lists)


if __name__ == "__main__":
    Watcher(json.loads(Path(sys.argv[1]).read_text())).run()
    os._exit(0)
