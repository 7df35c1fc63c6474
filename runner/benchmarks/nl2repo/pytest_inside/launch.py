"""Runs the commands of a hidden suite one by one, as a user without rights, and passes on what their tests report.

    python3 launch.py SPEC.json

The first program of ours in the sandbox, root's, started before anything of the candidate runs, on the runtime's own
interpreter (`sandbox.inside.PYTHON`); tests run on the image's. Its standard output is the only channel that the judge
reads, one JSON object a line; whatever commands print goes to standard error and means nothing. Reports reach it
through a pipe, each line with a word that was drawn for this command. Standard library only.
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
"""Bytes of a report; a longer one is nobody's of ours."""
REPORTS = 100_000
"""Of one command; more are dropped."""
TOLD = ("test", "collection", "forged")
"""Events that a session reports. How a command ended is ours to say."""
GIVEN = {name[1:]: value for name, value in os.environ.items() if name[0] == "+"}
"""The image's environment. The interpreter has it under these names, so that nothing of it is its own."""
CHANNEL = "ASSAY_REPORT"
"""Variable `fd:word` for `session.py`; of commands with tests only. Whoever looks for it in such a command finds it
(`/proc/PID/environ`): the word keeps out what writes to every descriptor, and nobody who was written to be judged."""
PLUGINS = "ASSAY_PLUGINS"
_PYTEST = '#!/bin/sh\nexec {python} -I -S {session} "$@"\n'
_PYTHON = """#!/bin/sh
if [ "$1" = -m ] && [ "$2" = pytest ]; then shift 2; exec {bin}/pytest "$@"; fi
exec {python} "$@"
"""


class Owner(NamedTuple):
    """Who commands run as."""

    uid: int
    gid: int
    home: str


def main(path: str) -> None:
    """Run what the specification says; see `runner.benchmarks.nl2repo.verifier` for its keys."""
    spec = json.loads(Path(path).read_text())
    owner = _owner(spec["user"])
    place = Path(path).parent
    programs = GIVEN.get("PATH", os.defpath)
    python = shutil.which("python3", path=programs)
    if python is None:
        sys.exit("the image has no python3")
    env = {
        "PATH": f"{_programs(place, os.path.realpath(python))}:{programs}",
        "HOME": owner.home,
        "LANG": "C.UTF-8",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        PLUGINS: " ".join(spec["plugins"]),
        **{name: value for name, value in GIVEN.items() if name.startswith("PIP_")},
        **spec["env"],
    }
    for index, command in enumerate(spec["commands"], start=spec["first"]):
        ended = _run(index, command, spec, env, owner)
        _say({"event": "command", "command": index, **ended})


def _owner(name: str) -> Owner:
    """Of a user of the image, read as a file: the C library would load what the image names for it."""
    lines = Path("/etc/passwd").read_text(errors="replace").splitlines()
    found = next((line.split(":") for line in lines if line.startswith(f"{name}:")), None)
    if found is None:
        sys.exit(f"the image has no user {name}")
    return Owner(int(found[2]), int(found[3]), found[5])


def _programs(place: Path, python: str) -> Path:
    """`pytest` and `python -m pytest` as the commands call them: ours."""
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
    """One command by a shell, to its end or its time limit; then nothing that it started lives."""
    reports, ours = os.pipe()
    word = secrets.token_hex(16)
    began = time.monotonic()
    deadline = began + float(spec["seconds"])
    judged = index in spec["judged"]
    shell = subprocess.Popen(
        ["/bin/bash", "-c", command],
        cwd=str(spec["workdir"]),
        env={**env, CHANNEL: f"{ours}:{word}"} if judged else env,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr.fileno(),
        user=owner.uid,
        group=owner.gid,
        extra_groups=[],
        umask=0o022,
        start_new_session=True,
        pass_fds=(ours,) if judged else (),
    )
    os.close(ours)
    heard = _Reports(reports, index, word)
    while shell.poll() is None and time.monotonic() < deadline:
        heard.wait(0.05)
    late = shell.poll() is None
    _end_all(owner)
    shell.wait()
    while heard.wait(0.0):
        pass
    os.close(reports)
    return {"code": None if late else shell.returncode, "seconds": time.monotonic() - began}


class _Reports:
    """Lines from one command's pipe; what is not said with the word is dropped."""

    def __init__(self, pipe: int, command: int, word: str) -> None:
        self._pipe, self._command, self._word = pipe, command, f"{word} ".encode()
        self._rest = b""
        self._left = REPORTS

    def wait(self, seconds: float) -> bool:
        """Pass on what arrives within `seconds`; whether anything did."""
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
        if isinstance(report, dict) and report.get("event") in TOLD:
            self._left -= 1
            _say({**report, "command": self._command})


def _end_all(owner: Owner) -> None:
    """Kill every process of the user, whatever session it fled to."""
    if (child := os.fork()) == 0:
        try:
            os.setgid(owner.gid)
            os.setuid(owner.uid)
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def _say(report: dict[str, object]) -> None:
    """Text that is no Unicode is none of JSON's for the judge, who would leave the report out."""
    text = {
        name: value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value
        for name, value in report.items()
    }
    print(json.dumps(text), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
