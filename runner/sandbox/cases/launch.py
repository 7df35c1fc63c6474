"""The arguments with which a side's container is created: pure functions of the side and its isolation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from docker import APIClient
from docker.types import LogConfig, Mount

from runner.records.cases import FILES_ROOT, CaseSide, How
from runner.sandbox.cases import inside
from runner.sandbox.cases.inside.cgroup import OWN_MB, OWN_PIDS
from runner.sandbox.cases.inside.machine_root import OURS, STAGE, folders
from runner.sandbox.docker import bundles
from runner.sandbox.docker.launch import HOSTNAME, unique_name
from runner.sandbox.docker.reaper import owner_labels
from runner.sandbox.inside import IDLE, PYTHON
from runner.sandbox.limits import MEGABYTE

CODE = f"{OURS}/cases"
"""Folder for the supervisor's package, an empty mount: Python would import a candidate's files there first."""
_MAIN = (
    f"import sys; sys.path.append({CODE!r}); from {inside.__name__} import serve; "
    "sys.exit(serve.main(sys.argv[1:]))"
)
COPYING = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETPCAP", "SETUID")
"""Capabilities of a supervisor that restores files: a part of the engine's defaults."""
MOUNTING = (*COPYING, "FSETID", "NET_ADMIN", "SYS_ADMIN", "SYS_CHROOT")
"""Capabilities of a supervisor that makes machines. SYS_ADMIN is for mounts and namespaces, NET_ADMIN for the loopback
of a new network. The others are for files: an overlay works with the capabilities of whoever mounted it. See
docs/adr/0005."""
_SPARE_MB, _SPARE_PIDS = 64, 16
"""Memory in MiB and processes for the container, in addition to those for its lanes."""


def arguments(api: APIClient, side: CaseSide, how: How) -> dict[str, Any]:
    """Return the arguments with which the engine creates the container."""
    limits, lanes = side.limits, lanes_of_one(side, how)
    size = f"size={limits.disk_mb}m,nr_inodes={limits.inodes}"
    writable = [] if how == "overlay" else list(folders(FILES_ROOT))
    memory = (limits.memory_mb + limits.disk_mb * (1 + len(writable)) + OWN_MB) * lanes + _SPARE_MB
    host = api.create_host_config(
        init=True,
        network_mode="none",
        cgroupns="private",
        nano_cpus=int(lanes * 1e9),
        mem_limit=memory * MEGABYTE,
        memswap_limit=memory * MEGABYTE,
        pids_limit=(limits.pids + OWN_PIDS) * lanes + _SPARE_PIDS,
        shm_size=limits.disk_mb * MEGABYTE,
        security_opt=["no-new-privileges"],
        cap_drop=["ALL"],
        cap_add=list(MOUNTING if how == "overlay" else COPYING),
        log_config=LogConfig(type="none"),
        tmpfs=dict.fromkeys((STAGE, CODE), "size=1m") | {folder.path: f"exec,{size}" for folder in writable},
        mounts=[
            Mount(
                f"{CODE}/{inside.__name__.replace('.', '/')}",
                str(Path(inside.__file__).parent),
                type="bind",
                read_only=True,
            ),
        ],
        volumes_from=[f"{bundles.runtime_container()}:ro"],
    )
    return {
        "image": side.image.id,
        "name": unique_name(f"cases-{side.name}"),
        "entrypoint": list(IDLE),
        "healthcheck": {"test": ["NONE"]},
        "hostname": side.hostname or HOSTNAME,
        "user": "0",
        "working_dir": "/",
        "labels": owner_labels(),
        "host_config": host,
        "use_config_proxy": False,
    }


def lanes_of_one(side: CaseSide, how: How) -> int:
    """Return the number of lanes in one container. Copies share their root with nobody, so they have one."""
    return side.lanes if how == "overlay" else 1


def command(work: Literal["prepare", "serve"], side: CaseSide, how: How, lane: int = 0) -> list[str]:
    """Return the supervisor's command line; see `inside.serve`."""
    setting = {
        "how": how,
        "files_root": FILES_ROOT,
        "workdir": side.workdir,
        "env": side.env,
        "limits": side.limits.model_dump(),
        "lane": f"lane-{lane}",
    }
    return [PYTHON, "-c", _MAIN, work, json.dumps(setting)]
