"""Run the commands of a hidden suite one by one, as a user without rights, and pass on the reports of their tests.

    python3 launch.py SPEC.json

This program belongs to root and starts before any code of the candidate. It runs on the runtime's own interpreter
(`sandbox.inside.PYTHON`), tests run on the image's. The judge reads only this program's standard output, one JSON
object per line. The output of commands goes to standard error and means nothing. Reports arrive through a socket, one a
message. The kernel says which process sent a message; `_Reports` says whose are believed. Standard library only.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

LINE = 16_384
"""Longest message, in bytes. Our plugin sends no longer ones."""
REPORTS = 100_000
"""Largest number of reports of one command; further ones are dropped."""
PAUSE = 0.02
"""Seconds in which reports gather before they are read. A machine that dies loses at most the reports of this time."""
BURST = 500
"""Largest number of messages that are read at a time, so that a flood of them cannot hold up a time limit."""
EVENTS = ("test", "collection", "forged")
"""Events that a session may report. Only this program reports how a command ended."""
IMAGE_ENV = {name[1:]: value for name, value in os.environ.items() if name[0] == "+"}
"""Environment of the image. Each name is prefixed with `+` for the interpreter, so that no variable affects it."""
CHANNEL = "ASSAY_REPORT"
"""Variable with the number of the socket's descriptor for `session.py`, set only for commands that run tests. It is not
a secret: code in such a command finds the socket, and can write to it."""
CREDENTIALS = struct.Struct("3i")
"""Process, user and group of a message's sender, as the kernel adds them."""
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
    spec["session"] = str(place / "session.py")
    for index, command in enumerate(spec["commands"], start=spec["first"]):
        ended = _run(index, command, spec, env, owner)
        _write({"event": "command", "command": index, **ended})
        sys.stdout.flush()


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
    channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    channel.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    began = time.monotonic()
    deadline = began + float(spec["seconds"])
    judged = index in spec["judged"]
    shell = subprocess.Popen(
        ["/bin/bash", "-c", command],
        cwd=str(spec["workdir"]),
        env={**env, CHANNEL: str(theirs.fileno())} if judged else env,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr.fileno(),
        user=owner.uid,
        group=owner.gid,
        extra_groups=[],
        umask=0o022,
        start_new_session=True,
        pass_fds=(theirs.fileno(),) if judged else (),
    )
    theirs.close()
    reports = _Reports(channel, index, shell.pid, str(spec["session"]))
    ending = os.pidfd_open(shell.pid)
    while shell.poll() is None and (left := deadline - time.monotonic()) > 0:
        reports.wait(ending, left)
    late = shell.poll() is None
    _end_all(owner)
    shell.wait()
    while reports.read():
        pass
    os.close(ending)
    channel.close()
    return {"code": None if late else shell.returncode, "seconds": time.monotonic() - began}


class _Reports:
    """Reports from one command's socket.

    A session introduces itself before code of the candidate runs in its process: its first message names a word that it
    has drawn. From then on a message of this process counts if it has the word and the next number. Messages of
    other processes and without the word are dropped, and a number that is missing means that reports were suppressed.
    """

    def __init__(self, channel: socket.socket, command: int, shell: int, session: str) -> None:
        self._channel, self._command, self._shell = channel, command, shell
        self._session = session.encode()
        self._words: dict[int, bytes] = {}
        self._numbers: dict[int, int] = {}
        self._left = REPORTS
        self._alone = False

    def wait(self, ending: int, seconds: float) -> None:
        """Wait until reports arrive, the process of `ending` ends, or `seconds` are over, then pass on what came.

        Hundreds of fast tests can end in one second. If this program and the readers of its output woke for each, that
        would take about as long as the tests, so reports gather for a moment first.
        """
        awaited: list[socket.socket | int] = [ending] if self._alone else [ending, self._channel]
        if self._channel in select.select(awaited, [], [], seconds)[0]:
            select.select([ending], [], [], PAUSE)
            for _ in range(BURST):
                if not self.read():
                    break
        sys.stdout.flush()

    def read(self) -> bool:
        """Pass on the next report, if one is there; return whether there was a message."""
        if self._alone or not select.select([self._channel], [], [], 0.0)[0]:
            return False
        try:
            data, control, _, _ = self._channel.recvmsg(LINE + 1, socket.CMSG_SPACE(CREDENTIALS.size))
        except ConnectionResetError:  # an answer of ours was never read; messages may still be there
            return True
        if not control:  # an empty message has a sender: there is nobody left
            self._alone = True
            return False
        self._read(data, CREDENTIALS.unpack(control[0][2])[0])
        return True

    def _read(self, data: bytes, sender: int) -> None:
        word, _, rest = data.partition(b" ")
        number, _, text = rest.partition(b" ")
        if sender not in self._words:
            self._introduce(sender, word)
        elif word == self._words[sender]:
            self._numbers[sender] += 1
            if number != str(self._numbers[sender]).encode():
                self._pass_on({"event": "forged", "message": "reports were suppressed"})
            elif len(data) <= LINE:
                self._pass_on(_parsed(text))

    def _introduce(self, sender: int, word: bytes) -> None:
        """Answer a process's first message, and remember its word if it is a session that the command started."""
        known = word != b"" and self._is_session(sender)
        if known:
            self._words[sender], self._numbers[sender] = word, 0
        with suppress(OSError):
            self._channel.send(b"1" if known else b"0", socket.MSG_DONTWAIT)

    def _is_session(self, process: int) -> bool:
        """Return whether a process runs our session, and neither a session nor a process without parents started it.

        A fork of a session has the session's command line: its ancestors tell them apart.
        """
        try:
            arguments = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
            if arguments[1:4] != [b"-I", b"-S", self._session]:
                return False
            while process != self._shell:
                stat_line = Path(f"/proc/{process}/stat").read_bytes()
                process = int(stat_line.rpartition(b")")[2].split()[1])
                if process <= 1 or process in self._words:
                    return False
        except (OSError, ValueError, IndexError):
            return False
        return True

    def _pass_on(self, report: object) -> None:
        if self._left and isinstance(report, dict) and report.get("event") in EVENTS:
            self._left -= 1
            _write({**report, "command": self._command})


def _parsed(text: bytes) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


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
    print(json.dumps(text))


if __name__ == "__main__":
    main(sys.argv[1])
