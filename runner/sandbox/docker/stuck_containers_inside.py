"""Free a container that holds up the engine; see `runner.sandbox.docker.stuck_containers`.

    python3 stuck_inside.py end CONTAINER LAYERS GROUPS    kill its processes, and the engine's own that read its files
    python3 stuck_inside.py flatten FOLDER                 move deeply nested folders to its top

`LAYERS` is the engine's folder that names, per container, the mount that is its file system. `GROUPS` is where control
groups are mounted. Runs on the engine's machine as root, or in a container that sees that machine's processes and these
folders. Standard library only.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

ARCHIVERS = (b"docker-tar", b"docker-untar")
"""Names of the engine's own processes that pack and unpack, chrooted into the container."""
PLACES = ("freezer/docker/{}", "freezer/*/docker/{}", "docker/{}", "system.slice/docker-{}.scope")
"""Paths of a container's freezable control group, in versions 1 and 2 and with both of the engine's drivers."""
DEEPEST = 12
"""Number of nested folders below which paths stay within the system's limit, even with the longest names."""


def end(container: str, layers: Path, groups: Path) -> int:
    """Kill all these processes, frozen ones too, and return their number. Raises `PermissionError` without
    the rights.
    """
    mount = b""
    with suppress(OSError):
        mount = (layers / container / "mount-id").read_bytes()
    ended = 0
    for process in Path("/proc").iterdir():
        if process.name.isdecimal() and _concerns(process, container, mount):
            with suppress(ProcessLookupError):
                os.kill(int(process.name), signal.SIGKILL)
                ended += 1
    for file, free in (("freezer.state", "THAWED"), ("cgroup.freeze", "0")):
        for frozen in (path for place in PLACES for path in groups.glob(f"{place.format(container)}/{file}")):
            frozen.write_text(free)
    return ended


def flatten(top: Path) -> None:
    """Move folders that lie too deep to the top, one after another. Loses nothing and follows no link."""
    waiting, moved = [str(top)], 0
    while waiting:
        place = waiting.pop()
        for folder, folders, _ in os.walk(place):
            if folder.count("/") - place.count("/") < DEEPEST:
                continue
            for name in folders:
                moved += 1
                waiting.append(f"{top}/.flattened-{moved}")
                Path(folder, name).rename(waiting[-1])
            folders.clear()


def _concerns(process: Path, container: str, mount: bytes) -> bool:
    try:
        if container in (process / "cgroup").read_text():
            return True
        program, *arguments = (process / "cmdline").read_bytes().split(b"\0")
    except OSError:  # it has ended
        return False
    return bool(mount) and program in ARCHIVERS and any(mount in argument for argument in arguments)


if __name__ == "__main__":
    if sys.argv[1] == "end":
        end(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
    else:
        flatten(Path(sys.argv[2]))
