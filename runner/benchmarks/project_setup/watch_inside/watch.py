"""Runs a script and watches the test programs that it calls.

    python3 -I -S -c 'from runner.benchmarks.project_setup.watch_inside.watch import main; main(SPEC)'

The first program in the sandbox, and nothing of the image's is loaded into it (`SandboxSpec.runtime`). Its standard
output is the only channel that the judge reads: one JSON object a line (`event`: run, file, pytest, end). Test programs
have a shim in front of them, on PATH and, for bash, as functions; a shim asks here, and the program runs as this
process's child, so that what is recorded is what a program printed, and nothing that the script says. The script is
root: it can end this process, or speak to it as pytest's plugin does; it cannot read or write this process's memory and
files, which are closed to all who may not trace.
Standard library only.
"""

from __future__ import annotations

import array  # noqa: F401 - `socket.recv_fds` would import it at its first call
import base64
import contextlib
import ctypes
import glob
import itertools
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path
from typing import Any

from runner.benchmarks.project_setup.watch_inside import NO_SHELL
from runner.benchmarks.project_setup.watch_inside.programs import (
    CHUNK,
    FILE,
    LOOK_SECONDS,
    Kept,
    Pump,
    Run,
    content,
    readable,
)
from runner.benchmarks.project_setup.watch_inside.sessions import Session
from runner.benchmarks.project_setup.watch_inside.shim import GIVEN, telling

PLACE = Path(__file__).parent
PR_SET_DUMPABLE = 4
SCRIPT_TAIL = 1 << 16
TOLD, UNPACKED = 8 << 20, 64 << 20
"""Characters that the channel carries, and bytes that they stand for; the judge's own cap on the former is higher."""
FILES = 2000
"""Files of results that one run may leave."""
DEEP = 2
"""Parts of a path below which there is no whole system."""
NOT_LOOKED_INTO = {".git", "node_modules"}
COARSE_SECONDS = 0.05
"""By which a file's time may lie before the clock's."""
SHIM = '#!/bin/sh\nexec {python} -I -S {place}/shim.py {name} "$@"\n'
FUNCTIONS = """
for _assay in {names}; do
    eval "$_assay() {{ {python} -I -S {place}/shim.py $_assay \\"\\$@\\"; }}"
done
unset _assay
_assay_where() {{
    local asked=$1 name code=1 IFS=" "; shift
    for name; do
        if [[ " {names} " = *" $name "* ]]; then builtin type -P "$name"; else builtin $asked "$name"; fi && code=0
    done
    return $code
}}
command() {{
    if [[ ${{1-}} = -v ]]; then _assay_where "command -v" "${{@:2}}"; else builtin command "$@"; fi
}}
type() {{
    if [[ ${{1-}} = -* ]]; then _assay_where "type $1" "${{@:2}}"; else _assay_where type "$@"; fi
}}
hash() {{
    if [[ $# = 0 || $1 = -* ]]; then builtin hash "$@"; else _assay_where hash "$@" > /dev/null; fi
}}
_assay_first() {{
    if [[ $PATH = {place}/bin:* ]]; then return; fi
    local name
    for name in {names}; do
        if [[ ! -e {place}/bin/$name ]] && builtin type -P "$name" > /dev/null; then
            ln -s "{place}/shims/$name" {place}/bin/ 2> /dev/null || :
        fi
    done
    PATH={place}/bin:$PATH
}}
trap _assay_first DEBUG
"""
"""Who asks whether or where a program is, must hear of a file or of none. Whatever a script puts on PATH, shims come
first again, for what calls programs itself (`timeout`, `xargs`)."""
AT_PATH = '{path}() {{ {python} -I -S {place}/shim.py {path} "$@"; }}\n'


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
        self._running: dict[Run, float] = {}
        """What has not ended -> when it began."""
        self._sessions: dict[str, Session] = {}
        """Those of pytest that have not ended."""
        self._telling = threading.Lock()
        """Held while something is told: the script's end may be nearer than that of a look through a workspace."""
        self._folders = GIVEN.get("PATH", os.defpath).split(":")

    def run(self) -> None:
        """The script from its beginning to its end or its time limit."""
        self._prepare()
        _import_nothing_more()
        printed = Kept(0, SCRIPT_TAIL)
        reading, writing = os.pipe()
        shell = shutil.which("bash", path=GIVEN.get("PATH", os.defpath)) or "/bin/sh"
        if not Path(shell).exists():
            os._exit(NO_SHELL)
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
            self._sites()
            time.sleep(LOOK_SECONDS)
        code = child.poll()
        if code is None:
            os.killpg(child.pid, signal.SIGKILL)
        pump.rest()
        for run in list(self._running):
            self._tell(run, None)
        with self._telling:
            for name in list(self._sessions):
                self._tell_session(name)
            end = {"event": "end", "code": code, "seconds": time.monotonic() - self._began}
            self._channel.say({**end, "full": self._channel.full}, printed.whole())

    def _prepare(self) -> None:
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
        for folder in ("bin", "shims"):
            (PLACE / folder).mkdir(parents=True, exist_ok=True)
        for name in self._programs:
            shim = PLACE / "shims" / name
            shim.write_text(SHIM.format(python=sys.executable, place=PLACE, name=name))
            shim.chmod(0o755)
        self._shims()
        self._sites()
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
        env = telling(GIVEN)
        env["PATH"] = f"{PLACE}/bin:{env.get('PATH', os.defpath)}"
        env["BASH_ENV"] = f"{PLACE}/functions"
        env["TOX_TESTENV_PASSENV"] = "PYTHONPATH"
        env["TOX_OVERRIDE"] = "testenv.pass_env+=PYTHONPATH"
        return env

    def _shims(self) -> None:
        """A shim for each program that is there by now: a name that nothing is behind would be a lie."""
        for name in self._programs:
            shim = PLACE / "bin" / name
            if not shim.exists() and any(os.access(f"{folder}/{name}", os.X_OK) for folder in self._folders):
                with contextlib.suppress(FileExistsError):
                    shim.symlink_to(PLACE / "shims" / name)

    def _sites(self) -> None:
        """Have pytest find its plugin beside the packages of each Python too: scripts clear and change PYTHONPATH."""
        for pattern in self._spec["sites"]:
            for folder in glob.iglob(pattern):  # noqa: PTH207 - patterns are absolute
                line = Path(folder, "assay_watch.pth")
                if not line.exists():
                    with contextlib.suppress(OSError):
                        line.write_text(f"{PLACE}/plugin\n")

    def _hear(self, door: socket.socket) -> None:
        while True:
            connection, _ = door.accept()
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        """One request; what makes no sense has no answer."""
        # Whoever asks may be the script, so whatever a request leads to is the request's fault.
        with connection, contextlib.suppress(Exception):
            head, files, _, _ = socket.recv_fds(connection, 8 + 4, 3)
            length, numbers = int.from_bytes(head[:8], "big"), head[8:].partition(b"\xff")
            data = bytearray(numbers[2])
            while len(data) < length and (more := connection.recv(CHUNK)):
                data += more
            request = json.loads(data.decode("utf-8", "surrogateescape"))
            if request["ask"] == "run":
                run = Run(request, connection, dict(zip(numbers[0], files, strict=True)))
                self._running[run] = time.monotonic()
                code = run.watch(self._tell)
                connection.sendall(str(code).encode())
            elif request["ask"] == "pytest":
                with self._telling:
                    self._sessions.setdefault(request["session"], Session()).add(request)
                    if request["last"]:
                        self._tell_session(request["session"])
                connection.sendall(b"0")

    def _tell(self, run: Run, code: int | None) -> None:
        """One program's run (`code` None: it has not ended), once; and what results it left."""
        with self._telling:
            if (started := self._running.pop(run, None)) is not None:
                self._tell_run(run, code, started)

    def _tell_run(self, run: Run, code: int | None, started: float) -> None:
        """How it ended and what it printed, and files of results that are new since it began."""
        # Elsewhere there may be a whole system below a folder.
        elsewhere = (run.cwd,) if len(Path(run.cwd).parts) > DEEP else ()
        roots = dict.fromkeys((self._spec["workspace"], *elsewhere))
        found = dict.fromkeys(path for root in roots for path in self._new_results(root, started))
        number = next(self._numbers)
        told = {
            "run": number,
            "argv": list(map(readable, run.argv)),
            "code": code,
            "file": run.file,
            "script": run.script,
        }
        self._channel.say({"event": "run", **told}, run.printed.whole())
        for path in list(found)[:FILES]:
            with contextlib.suppress(OSError):
                self._channel.say(
                    {"event": "file", "run": number, "path": readable(path)}, content(path, FILE)
                )

    def _tell_session(self, name: str) -> None:
        if session := self._sessions.pop(name, None):
            self._channel.say({"event": "pytest"}, session.body())

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


def _changed(path: str) -> float:
    """When a regular file was written last, by the time that nobody can set; long ago for all else."""
    try:
        state = os.lstat(path)
    except OSError:
        return 0.0
    return state.st_ctime if stat.S_ISREG(state.st_mode) else 0.0


def _import_nothing_more() -> None:
    """From here on there is a script that is root, and can put folders of its own in the place of the library's."""
    sys.meta_path.clear()
    sys.path.clear()


def main(spec: str) -> None:
    """Watch the script that a specification's file describes; see `runner.benchmarks.project_setup.rerun.watch_files`."""
    Watcher(json.loads(Path(spec).read_text())).run()
    os._exit(0)  # threads that still carry bytes must not hold up the exit
