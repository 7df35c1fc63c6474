"""Stand in front of a test program on PATH: ask the watcher to run it with this process's files, and end as it ends.

    python3 -I -S shim.py NAME ARGUMENT...

NAME with a slash is the program itself. Otherwise it is looked up at every call, so a program that was just installed
is found. Below a program that is already watched, the program is run directly.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

PLACE = Path(__file__).parent
IMAGE_ENV = {name[1:]: value for name, value in os.environ.items() if name[0] == "+"} or dict(os.environ)
"""Environment for programs. Each name is prefixed with `+` for the runtime's interpreter, so that no variable affects
the interpreter itself; another interpreter gets the variables unchanged."""
WATCHED = "ASSAY_WATCHED"
LIMITS = (
    resource.RLIMIT_CORE,
    resource.RLIMIT_CPU,
    resource.RLIMIT_DATA,
    resource.RLIMIT_FSIZE,
    resource.RLIMIT_NOFILE,
    resource.RLIMIT_STACK,
)


def main(name: str, *arguments: str) -> int:
    """Return the exit code of the program; 127 if there is none, as in a shell."""
    own = str(PLACE / "bin")
    folders = [folder for folder in IMAGE_ENV.get("PATH", os.defpath).split(":") if folder != own]
    program = name if "/" in name else find(name, folders)
    if program is None or not Path(program).exists():
        print(f"{name}: command not found", file=sys.stderr)
        return 127
    env = {**reporting_env(IMAGE_ENV, by_name=True), "PATH": ":".join(folders), WATCHED: "1"}
    env.pop("BASH_ENV", None)
    if WATCHED in IMAGE_ENV:
        os.execve(program, [name, *arguments], env)  # noqa: S606 - the program that was called
    umask = os.umask(0)
    request = {
        "ask": "run",
        "program": program,
        "argv": [name, *arguments],
        "cwd": str(Path.cwd()),
        "env": env,
        "umask": umask,
        "groups": os.getgroups(),
        "limits": {str(kind): resource.getrlimit(kind) for kind in LIMITS},
    }
    return _ask(json.dumps(request).encode("utf-8", "surrogateescape"))


def reporting_env(given: Mapping[str, str], *, by_name: bool = False) -> dict[str, str]:
    """Return the variables with those that make test programs report, whatever a script has made of them.

    pytest finds the plugin on PYTHONPATH. With plugin discovery turned off it loads the plugin `by_name`, so the plugin
    must exist then. Without -v, `go test` reports packages, not tests; each go command takes the GOFLAGS that it knows.
    """
    changed = dict(given)
    wanted = [("PYTHONPATH", ":", str(PLACE / "plugin")), ("GOFLAGS", " ", "-v")]
    if by_name and given.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD"):
        wanted.append(("PYTEST_PLUGINS", ",", "assay_watch_pytest"))
    for name, between, word in wanted:
        value = given.get(name, "")
        if word not in value.split(between):
            changed[name] = f"{word}{between}{value}" if value else word
    return changed


def find(name: str, folders: list[str]) -> str | None:
    """Return the first program of that name in these folders."""
    found = (os.path.join(folder or ".", name) for folder in folders)  # noqa: PTH118 - `./name` must stay so
    return next((path for path in found if os.path.isfile(path) and os.access(path, os.X_OK)), None)  # noqa: PTH113


def _ask(request: bytes) -> int:
    with socket.socket(socket.AF_UNIX) as watcher:
        watcher.connect(str(PLACE / "socket"))
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, lambda given, _frame: watcher.sendall(bytes([given])))
        files = [fd for fd in (0, 1, 2) if _is_open(fd)]
        socket.send_fds(watcher, [len(request).to_bytes(8, "big") + bytes([*files, 255])], files)
        watcher.sendall(request)
        answer = watcher.recv(16)
    code = int(answer or b"137")
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
