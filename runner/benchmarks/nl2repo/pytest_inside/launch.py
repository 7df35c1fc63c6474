"""Run the commands of a hidden suite one by one, as a user without rights, and pass on the reports of their tests.

    python3 launch.py SPEC.json

This program belongs to root and starts before any code of the candidate. It runs on the runtime's own interpreter
(`sandbox.inside.PYTHON`), tests run on the image's. The judge reads only this program's standard output, one JSON
object per line. The output of commands goes to standard error and means nothing. Reports arrive through a pipe; each
line begins with a random word that was drawn for the command. Standard library only.
"""

from __future__ import annotations

import json
import os
import secrets
import select
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

LINE = 16_384
"""Longest report, in bytes. Our plugin writes no longer ones."""
REPORTS = 100_000
"""Largest number of reports of one command; further ones are dropped."""
EVENTS = ("test", "collection", "forged")
"""Events that a session may report. Only this program reports how a command ended."""
IMAGE_ENV = {name[1:]: value for name, value in os.environ.items() if name[0] == "+"}
"""Environment of the image. Each name is prefixed with `+` for the interpreter, so that no variable affects it."""
CHANNEL = "ASSAY_REPORT"
"""Variable with `fd:word` for `session.py`, set only for commands that run tests. Code in such a command can find it
(`/proc/PID/environ`). The word keeps out code that writes to every descriptor, but not code written to be judged."""
PLUGINS = "ASSAY_PLUGINS"
_PYTEST = '#!/bin/sh\nexec {python} -I -S {session} "$@"\n'
_PYTHON = """#!/bin/sh
if [ "$1" = -m ] && [ "$2" = pytest ]; then shift 2; exec {bin}/pytest "$@"; fi
exec {python} "$@"
"""


class Owner(NamedTuple):
    """User that runs the commands."""

    uid: int
    gid: int
    home: str


def main(path: str) -> None:
    """Run the commands of a specification; `runner.benchmarks.nl2repo.verifier` writes its keys."""
    spec = json.loads(Path(path).read_text())
    owner = _owner(spec["user"])
    place = Path(path).parent
    programs = IMAGE_ENV.get("PATH", os.defpath)
    python = shutil.which("python3", path=programs)
    if python is None:
        sys.exit("the image has no python3")
    env = {
        "PATH": f"{_programs(place, os.path.realpath(python))}:{programs}",
        "HOME": owner.home,
        "LANG": "C.UTF-8",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        PLUGINS: " ".join(spec["plugins"]),
        **{name: value for name, value in IMAGE_ENV.items() if name.startswith("PIP_")},
        **spec["env"],
    }
    for index, command in enumerate(spec["commands"], start=spec["first"]):
        ended = _run(index, command, spec, env, owner)
        _write({"event": "command", "command": index, **ended})


def _owner(name: str) -> Owner:
    """Return a user of the image. Read the file itself: the C library would load modules that the image names."""
    lines = Path("/etc/passwd").read_text(errors="replace").splitlines()
    found = next((line.split(":") for line in lines if line.startswith(f"{name}:")), None)
    if found is None:
        sys.exit(f"the image has no user {name}")
    return Owner(int(found[2]), int(found[3]), found[5])


def _programs(place: Path, python: str) -> Path:
    """Write the programs that stand in for `pytest` and `python -m pytest`; return their folder."""
    folder = place / "bin"
    folder.mkdir()
    texts = {"pytest": _PYTEST, "py.test": _PYTEST, "python": _PYTHON, "python3": _PYTHON}
    for name, text in texts.items():
        program = folder / name
        program.write_text(text.format(python=python, session=place / "session.py", bin=folder))
        program.chmod(program.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return folder


def _run(
    index: int, command: str, spec: dict[str, Any], env: dict[str, str], owner: Owner
) -> dict[str, object]:
    """Run one command in a shell to its end or its time limit, then kill everything that it started."""
    reading, writing = os.pipe()
    word = secrets.token_hex(16)
    began = time.monotonic()
    deadline = began + float(spec["seconds"])
    judged = index in spec["judged"]
    shell = subprocess.Popen(
        ["/bin/bash", "-c", command],
        cwd=str(spec["workdir"]),
        env={**env, CHANNEL: f"{writing}:{word}"} if judged else env,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr.fileno(),
        user=owner.uid,
        group=owner.gid,
        extra_groups=[],
        umask=0o022,
        start_new_session=True,
        pass_fds=(writing,) if judged else (),
    )
    os.close(writing)
    reports = _Reports(reading, index, word)
    while shell.poll() is None and time.monotonic() < deadline:
        reports.wait(0.05)
    late = shell.poll() is None
    _end_all(owner)
    shell.wait()
    while reports.wait(0.0):
        pass
    os.close(reading)
    return {"code": None if late else shell.returncode, "seconds": time.monotonic() - began}


class _Reports:
    """Reports from one command's pipe. Lines that do not begin with the word are dropped."""

    def __init__(self, pipe: int, command: int, word: str) -> None:
        self._pipe, self._command, self._word = pipe, command, f"{word} ".encode()
        self._rest = b""
        self._left = REPORTS

    def wait(self, seconds: float) -> bool:
        """Pass on what arrives within `seconds`; return whether anything did."""
        if not select.select([self._pipe], [], [], seconds)[0]:
            return False
        data = os.read(self._pipe, 65_536)
        if not data:
            time.sleep(seconds)
            return False
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest[-LINE:]
        for line in lines:
            self._pass_on(line)
        return True

    def _pass_on(self, line: bytes) -> None:
        if not line.startswith(self._word) or len(line) > LINE or not self._left:
            return
        try:
            report = json.loads(line[len(self._word) :])
        except (ValueError, RecursionError):
            return
        if isinstance(report, dict) and report.get("event") in EVENTS:
            self._left -= 1
            _write({**report, "command": self._command})


def _end_all(owner: Owner) -> None:
    """Kill every process of the user, also in other sessions."""
    if (child := os.fork()) == 0:
        try:
            os.setgid(owner.gid)
            os.setuid(owner.uid)
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def _write(report: dict[str, object]) -> None:
    """Write a report. Lone surrogates are escaped: the judge would reject them as invalid JSON."""
    text = {
        name: value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value
        for name, value in report.items()
    }
    print(json.dumps(text), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
