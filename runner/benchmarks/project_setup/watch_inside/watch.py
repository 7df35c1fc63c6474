"""Run a script and watch the test programs that it calls.

    python3 -I -S -c 'from runner.benchmarks.project_setup.watch_inside.watch import main; main(SPEC)'

The watcher is the first program in the sandbox and loads nothing of the image (`SandboxSpec.runtime`). The judge reads
only its standard output: one JSON object a line (`event`: run, file, pytest, end). Shims stand in front of test
programs, on PATH and, for bash, as functions. A shim asks the watcher, and the program runs as the watcher's child, so
the record is what the program printed and not what the script says. The script is root: it can end the watcher, or
speak to it like pytest's plugin. It cannot read or write the watcher's memory and files, which are closed to processes
that may not trace. The watcher uses the standard library only.
"""

from __future__ import annotations

import array  # noqa: F401 - else `socket.recv_fds` imports it at its first call
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
    Printed,
    Pump,
    Run,
    content,
    readable,
)
from runner.benchmarks.project_setup.watch_inside.sessions import Session
from runner.benchmarks.project_setup.watch_inside.shim import IMAGE_ENV, reporting_env

PLACE = Path(__file__).parent
PR_SET_DUMPABLE = 4
SCRIPT_TAIL = 1 << 16
CHANNEL_CHARACTERS, CHANNEL_BYTES = 8 << 20, 64 << 20
"""Most characters that the channel carries, below the judge's own cap, and most bytes that they unpack to."""
FILES = 2000
"""Most files of results of one run."""
DEEP = 2
"""Number of a path's parts up to which the folder may hold a whole system."""
NOT_LOOKED_INTO = {".git", "node_modules"}
COARSE_SECONDS = 0.05
"""Time by which a file's timestamp may lag behind the clock."""
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
"""Lookups of a program (`command -v`, `type`, `hash`) must name a file and not our function. Shims come first on PATH
again, whatever a script puts there, for programs that call others (`timeout`, `xargs`)."""
AT_PATH = '{path}() {{ {python} -I -S {place}/shim.py {path} "$@"; }}\n'


class Channel:
    """Standard output, in whole lines, up to `CHANNEL_CHARACTERS` in all."""

    def __init__(self) -> None:
        self._left, self._unpacked = CHANNEL_CHARACTERS, CHANNEL_BYTES
        self._lock = threading.Lock()
        self.full = False

    def say(self, event: dict[str, object], body: bytes = b"") -> None:
        """Write an event, with its `body` as Base64 of zlib."""
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
    """One script's run, with its test programs and sessions of pytest."""

    def __init__(self, spec: dict[str, Any]) -> None:
        """`spec` is the content of `spec.json`, which `rerun.watch_files` writes."""
        self._spec = spec
        self._programs: list[str] = spec["programs"]
        self._results = re.compile(spec["results"])
        self._began = time.monotonic()
        self._channel = Channel()
        self._numbers = itertools.count()
        self._running: dict[Run, float] = {}
        """Programs that have not ended -> their start."""
        self._sessions: dict[str, Session] = {}
        """Sessions of pytest that have not ended."""
        self._reporting = threading.Lock()
        """Held during each report: the script may end while a workspace is still being searched."""
        self._folders = IMAGE_ENV.get("PATH", os.defpath).split(":")

    def run(self) -> None:
        """Run the script to its end or its time limit."""
        self._prepare()
        _import_nothing_more()
        printed = Printed(0, SCRIPT_TAIL)
        reading, writing = os.pipe()
        shell = shutil.which("bash", path=IMAGE_ENV.get("PATH", os.defpath)) or "/bin/sh"
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
        with self._reporting:
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
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(PLACE / "socket"))
        (PLACE / "socket").chmod(0o777)
        listener.listen(64)
        threading.Thread(target=self._hear, args=(listener,), daemon=True).start()

    def _env(self) -> dict[str, str]:
        env = reporting_env(IMAGE_ENV)
        env["PATH"] = f"{PLACE}/bin:{env.get('PATH', os.defpath)}"
        env["BASH_ENV"] = f"{PLACE}/functions"
        env["TOX_TESTENV_PASSENV"] = "PYTHONPATH"
        env["TOX_OVERRIDE"] = "testenv.pass_env+=PYTHONPATH"
        return env

    def _shims(self) -> None:
        """Add a shim for each program that exists by now: a shim without a program would mislead scripts."""
        for name in self._programs:
            shim = PLACE / "bin" / name
            if not shim.exists() and any(os.access(f"{folder}/{name}", os.X_OK) for folder in self._folders):
                with contextlib.suppress(FileExistsError):
                    shim.symlink_to(PLACE / "shims" / name)

    def _sites(self) -> None:
        """Make the plugin known beside the packages of each Python too, since scripts change PYTHONPATH."""
        for pattern in self._spec["sites"]:
            for folder in glob.iglob(pattern):  # noqa: PTH207 - patterns are absolute
                line = Path(folder, "assay_watch.pth")
                if not line.exists():
                    with contextlib.suppress(OSError):
                        line.write_text(f"{PLACE}/plugin\n")

    def _hear(self, listener: socket.socket) -> None:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        """Answer one request; an invalid one gets no answer."""
        # The script itself may ask, so any exception is the fault of the request.
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
                with self._reporting:
                    self._sessions.setdefault(request["session"], Session()).add(request)
                    if request["last"]:
                        self._tell_session(request["session"])
                connection.sendall(b"0")

    def _tell(self, run: Run, code: int | None) -> None:
        """Report one program's run, once, and its files of results. `code` None: the program has not ended."""
        with self._reporting:
            if (started := self._running.pop(run, None)) is not None:
                self._tell_run(run, code, started)

    def _tell_run(self, run: Run, code: int | None, started: float) -> None:
        """Report end, output, and files of results that are newer than the start."""
        # A folder near the root may hold a whole system.
        elsewhere = (run.cwd,) if len(Path(run.cwd).parts) > DEEP else ()
        roots = dict.fromkeys((self._spec["workspace"], *elsewhere))
        found = dict.fromkeys(path for root in roots for path in self._new_results(root, started))
        number = next(self._numbers)
        described = {
            "run": number,
            "argv": list(map(readable, run.argv)),
            "code": code,
            "file": run.file,
            "script": run.script,
        }
        self._channel.say({"event": "run", **described}, run.printed.whole())
        for path in list(found)[:FILES]:
            with contextlib.suppress(OSError):
                self._channel.say(
                    {"event": "file", "run": number, "path": readable(path)}, content(path, FILE)
                )

    def _tell_session(self, name: str) -> None:
        if session := self._sessions.pop(name, None):
            self._channel.say({"event": "pytest"}, session.body())

    def _new_results(self, root: str, since: float) -> list[str]:
        """Return newer files of results below a folder, by a timestamp that scripts cannot set."""
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
    """Return when a regular file last changed, by the timestamp that cannot be set; 0 for anything else."""
    try:
        state = os.lstat(path)
    except OSError:
        return 0.0
    return state.st_ctime if stat.S_ISREG(state.st_mode) else 0.0


def _import_nothing_more() -> None:
    """Turn off imports: the script is root and can replace the library's folders."""
    sys.meta_path.clear()
    sys.path.clear()


def main(spec: str) -> None:
    """Watch the script that a specification's file describes; see `project_setup.rerun.watch_files`."""
    Watcher(json.loads(Path(spec).read_text())).run()
    os._exit(0)  # threads that still carry bytes must not hold up the exit
