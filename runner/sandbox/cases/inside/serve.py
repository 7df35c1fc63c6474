"""The supervisor's two programs, which the host starts: `prepare` once per container, then `serve` for each lane.

    prepare SETTING    makes the root ready and tries the requested isolation
    serve SETTING      reads a case per line on stdin and writes its result per line on stdout, until stdin ends

SETTING is the JSON of `Setting`. No descriptor of this process ever reaches a case.
"""

from __future__ import annotations

import gc
import json
import math
import os
import resource
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from typing import Any

from runner.sandbox.cases.inside import cgroup, changes, command, machine_root, seccomp, syscalls, user
from runner.sandbox.cases.inside.copies import Copies, Copy
from runner.sandbox.cases.inside.overlay import Overlay, Overlays

USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_THE_CONTAINERS = ("HOME", "HOSTNAME", "TERM")
"""Variables that the engine adds to the image's."""
MEGABYTE = 1 << 20
SLACK_SECONDS = 30
"""Seconds for everything in a case that has no deadline of its own, on a busy machine."""


@dataclass(frozen=True)
class Setting:
    """Settings that all cases of a container share; limits as in `runner.records.cases.CaseLimits`."""

    how: str
    files_root: str
    workdir: str
    env: dict[str, str]
    limits: dict[str, Any]
    lane: str = ""
    """Name of the lane, unique in its container."""


def main(arguments: list[str]) -> int:
    """Run one of the two programs. Return 1, after a sentence on stderr, if this container cannot do what is asked."""
    work, setting = arguments[0], Setting(**json.loads(arguments[1]))
    syscalls.default_signals(but=command.IGNORED)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        prepare(setting) if work == "prepare" else serve(setting)
    except (OSError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def prepare(setting: Setting) -> None:
    """Make the root ready, then run a first case. Raises `OSError` or `RuntimeError` where that cannot be done."""
    machine_root.prepare(setting.files_root, setting.workdir)
    if setting.how == "overlay":
        syscalls.own_mounts()
        machine_root.keep_names()
    else:
        machine_root.close()
    there = f"test -f {setting.files_root}/ready"
    request = {"files": {"ready": ""}, "prep": there, "env": {}, "start": None}
    first = {"command": f"{there} && echo ready", **request}
    with _stages(setting).fresh() as stage:
        found = handle(stage, setting, first)
    if found.get("stdout") != "ready\n":
        raise RuntimeError(f"a first case failed: {found['stderr'].strip()}")


def serve(setting: Setting) -> None:
    """Answer requests, one at a time, until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the host
    limits = setting.limits
    if setting.how == "overlay":
        syscalls.own_mounts()
        with suppress(OSError):  # the container's own limits still hold
            cgroup.join(
                machine_root.STAGE, setting.lane, limits["memory_mb"] + limits["disk_mb"], limits["pids"]
            )
    stages = _stages(setting)
    gc.freeze()  # objects that are never collected are never written to, so they stay shared with the children
    while _serve_one(stages, setting):
        pass


def _serve_one(stages: Overlays | Copies, setting: Setting) -> bool:
    """Answer one request; return False when there is none left.

    The machine is made before the host sends its case, and removed after the host has its answer.
    """
    with stages.fresh() as stage:
        signal.alarm(0)
        line = sys.stdin.buffer.readline()
        # Nothing here takes that long. If it does, the alarm ends this process, and the host notices.
        limits = setting.limits
        signal.alarm(math.ceil(2 * (limits["seconds"] + limits["diff_seconds"]) + SLACK_SECONDS))
        if line:
            print(json.dumps(handle(stage, setting, json.loads(line))), flush=True)
    return bool(line)


def _stages(setting: Setting) -> Overlays | Copies:
    """Return the maker of clean machines, and drop the privileges that nothing this process executes may have."""
    limits = setting.limits
    syscalls.drop_bounding_set()
    syscalls.no_new_privileges()
    caps = changes.Caps(limits["diff_entries"], limits["diff_seconds"], limits["text_bytes"])
    program, largest = seccomp.program(), limits["disk_mb"] * MEGABYTE

    def become() -> None:
        user.become(program, largest)

    if setting.how == "overlay":
        return Overlays(f"size={limits['disk_mb']}m,nr_inodes={limits['inodes']}", caps, become)
    return Copies(setting.files_root, caps, become)


def handle(stage: Overlay | Copy, setting: Setting, request: dict[str, Any]) -> dict[str, Any]:
    """Run one case on its own machine and return the fields of `runner.records.cases.CaseResult`."""
    env = _environment() | setting.env | request["env"]
    seconds, output_bytes = setting.limits["seconds"], setting.limits["output_bytes"]

    def order(script: str) -> command.Order:
        return command.Order(script, request["start"] or setting.workdir, env, seconds, output_bytes)

    if request["start"] == "/":
        stage.open_root()
    if wrong := _write(stage, setting.files_root, request["files"]):
        return {"exit_code": None, "ended": "prep", "how": stage.how, "stderr": wrong}
    if request["prep"]:
        ending = stage.prepare(order(request["prep"]))
        if ending.exit_code != 0:
            return {**_result(ending), "exit_code": None, "ended": "prep", "how": stage.how}
    ending = stage.run(order(request["command"]))
    found = stage.changes()
    result = _result(ending)
    result["truncated"] += sorted(found.truncated)
    return {**result, "changes": sorted(found.entries, key=itemgetter("path")), "how": stage.how}


@cache
def _environment() -> dict[str, str]:
    """Return the image's own variables with those of the case's user."""
    # `inside.PYTHON` says why the names begin with a `+`.
    given = {name[1:]: value for name, value in os.environ.items() if name[0] == "+"}
    own = {name: value for name, value in given.items() if name not in _THE_CONTAINERS}
    usual = {"PATH": USUAL_PATH, "LANG": "C.UTF-8"}
    return usual | own | {"HOME": user.HOME, "USER": user.NAME, "LOGNAME": user.NAME}


def _write(stage: Overlay | Copy, files_root: str, files: dict[str, str]) -> str:
    """Write the case's files as its user. Return why that failed, or an empty string."""
    root = stage.files + files_root
    os.makedirs(root, exist_ok=True)
    os.chown(root, user.UID, user.GID)
    os.chdir(root)  # the case's user may not be able to enter it by its path
    try:
        with user.acting():
            for name, text in files.items():
                if folder := os.path.dirname(name):
                    os.makedirs(folder, exist_ok=True)
                with open(name, "xb") as file:
                    file.write(text.encode())
    except OSError as error:
        return f"the case's files cannot be written: {error.strerror}\n"
    finally:
        os.chdir("/")
    return ""


def _result(ending: command.Ending) -> dict[str, Any]:
    streams = {"stdout": ending.stdout, "stderr": ending.stderr}
    return {
        "exit_code": ending.exit_code,
        "ended": ending.ended,
        **{name: stream.text for name, stream in streams.items()},
        **{f"{name}_bytes": stream.total for name, stream in streams.items()},
        **{f"{name}_digest": stream.digest for name, stream in streams.items()},
        "binary": [name for name, stream in streams.items() if stream.binary],
        "truncated": [name for name, stream in streams.items() if stream.cut],
        "seconds": ending.seconds,
        "cpu_seconds": ending.cpu_seconds,
    }
