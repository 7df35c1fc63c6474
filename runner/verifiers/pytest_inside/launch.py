"""Runs the commands of a hidden suite one by one, as a user without rights, and passes on what their tests report.

    python3 -I -S launch.py SPEC.json

The first program of ours in the sandbox, root's, started before anything of the candidate runs. Its standard output is
the only channel that the judge reads, one JSON object a line; whatever commands print goes to standard error and means
nothing. Reports reach it through a pipe, each line with a word that was drawn for this command. Standard library only.
"""

from __future__ import annotations

import json
import os
import pwd
import secrets
import select
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

LINE = 16_384
"""Bytes of a report; a longer one is nobody's of ours."""
REPORTS = 100_000
"""Of one command; more are dropped."""
CHANNEL = "ASSAY_REPORT"
"""Variable `fd:word` for `session.py`; of commands with tests only. Whoever looks for it in such a command finds it
(`/proc/PID/environ`): the word keeps out what writes to every descriptor, and nobody who was written to be judged."""
PLUGINS = "ASSAY_PLUGINS"
_PYTEST = '#!/bin/sh\nexec {python} -I -S {session} "$@"\n'
_PYTHON = """#!/bin/sh
if [ "$1" = -m ] && [ "$2" = pytest ]; then shift 2; exec {bin}/pytest "$@"; fi
exec {python} "$@"
"""


def main(path: str) -> None:
    """Run what the specification says; see `runner.verifiers.nl2repo` for its keys."""
    spec = json.loads(Path(path).read_text())
    owner = pwd.getpwnam(spec["user"])
    place = Path(path).parent
    python = os.path.realpath(sys.executable)
    env = {
        "PATH": f"{_programs(place, python)}:{os.environ.get('PATH', os.defpath)}",
        "HOME": owner.pw_dir,
        "LANG": "C.UTF-8",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        PLUGINS: " ".join(spec["plugins"]),
        **{name: value for name, value in os.environ.items() if name.startswith("PIP_")},
        **spec["env"],
    }
    for index, command in enumerate(spec["commands"], start=spec["first"]):
        ended = _run(index, command, spec, env, owner)
        _say({"event": "command", "command": index, **ended})


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
    index: int, command: str, spec: dict[str, Any], env: dict[str, str], owner: pwd.struct_passwd
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
        user=owner.pw_uid,
        group=owner.pw_gid,
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
        except ValueError:
            return
        if isinstance(report, dict):
            self._left -= 1
            _say({**report, "command": self._command})


def _end_all(owner: pwd.struct_passwd) -> None:
    """Kill every process of the user, whatever session it fled to."""
    if (child := os.fork()) == 0:
        try:
            os.setgid(owner.pw_gid)
            os.setuid(owner.pw_uid)
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def _say(report: dict[str, object]) -> None:
    print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
