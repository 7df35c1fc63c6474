"""The arguments with which a container is created, and its first files: functions of spec, limits and image."""

from __future__ import annotations

import re
import secrets
from pathlib import Path
from typing import Any

from docker import APIClient
from docker.types import DriverConfig, LogConfig, Mount, Ulimit

from runner.records import SandboxSpec
from runner.sandbox.docker import bundles, open_network
from runner.sandbox.docker.images import ImageConfig
from runner.sandbox.docker.reaper import owner_labels
from runner.sandbox.inside import (
    AGENT_DIR,
    GATEWAY_DIR,
    IDLE,
    NOT_PRELOADED,
    PRELOADED,
    RESOLVER,
    SERVED_RESOLVER,
)
from runner.sandbox.limits import MEGABYTE, Limits
from runner.sandbox.tar_streams import Packer, numeric

AGENT_DIR_OPTIONS = "size=512m,mode=1777,nosuid,nodev"
"""Options of the agent's tmpfs. Its content counts as the container's memory."""
NO_TASK_NEEDS = ("AUDIT_WRITE", "MKNOD", "NET_RAW", "SETFCAP")
"""Default capabilities of the engine that root loses. Package managers, `su` and servers work without them."""

HOSTNAME = "sandbox"
"""Host name of every container: a command must not be able to tell which one it is in."""
MAIN = "main"
"""Name by which a trial's services reach its sandbox, as in Harbor."""
OPEN = {"network_mode": open_network.NAME}
"""Network of an open sandbox. It must exist: see `open_network.ensure`."""
SEALED = {"network_mode": "none", "sysctls": {"net.ipv4.ip_unprivileged_port_start": "0"}}
"""Options of a sealed sandbox: its only network is its own loopback, where an unprivileged supervisor answers lookups
on port 53."""
NAMES = {
    "/etc/hosts": f"127.0.0.1 localhost {HOSTNAME}\n::1 localhost ip6-localhost ip6-loopback\n",
    "/etc/resolv.conf": f"nameserver {RESOLVER}\noptions timeout:1\n",
}
"""Files with the host names that a sealed sandbox knows. The engine writes such files only for a network that it makes,
which takes longer than the rest of a container's start (ADR 7). The sandbox's own name is found without a lookup."""

EMPTY_PRELOADED = Mount(PRELOADED, str(Path(__file__).with_name("nothing")), type="bind", read_only=True)
"""Mount over the list of preloaded libraries, which an agent may have written into its image. Programs of ours would
ignore that list, but the judged ones would not."""


def arguments(api: APIClient, spec: SandboxSpec, limits: Limits, home: ImageConfig) -> dict[str, Any]:
    """Return the arguments with which the engine creates the container.

    Root keeps the engine's default capabilities without `NO_TASK_NEEDS`. Under any other user nobody in the container
    has a capability, unless the image's ENTRYPOINT runs as root. Nothing of this process's environment goes in.
    """
    is_root = is_roots(spec.user or home.user) or _has_roots_entrypoint(spec, home)
    host = api.create_host_config(
        init=True,
        **_network(spec),
        nano_cpus=int(limits.cpus * 1e9),
        mem_limit=limits.memory_mb * MEGABYTE,
        memswap_limit=limits.memory_mb * MEGABYTE,
        pids_limit=limits.pids,
        ulimits=[Ulimit(name="fsize", soft=limits.disk_mb * MEGABYTE, hard=limits.disk_mb * MEGABYTE)],
        security_opt=["no-new-privileges"],
        cap_drop=list(NO_TASK_NEEDS) if is_root else ["ALL"],
        # Processes can write to the log of the container's first process, which the engine would store without limit.
        log_config=LogConfig(type="none"),
        mounts=_mounts(spec, home),
        volumes_from=_bundles(spec),
    )
    return {
        "image": spec.image.id,
        "name": unique_name(spec.name),
        "hostname": HOSTNAME,
        # an explicit entrypoint makes the engine drop the image's own, which is run later if the task asks for it
        "entrypoint": list(IDLE) if spec.runtime else ["sleep", "infinity"],
        "healthcheck": {"test": ["NONE"]},
        "user": engine_user(spec.user),
        "working_dir": spec.environment.workdir,
        "environment": {**spec.environment.env, **(NOT_PRELOADED if spec.runtime else {})},
        "labels": {**spec.labels, **owner_labels()},
        "host_config": host,
        "networking_config": _as_main(api, spec.services) if spec.services else None,
        "network_disabled": is_alone(spec),  # with `none` alone the engine still makes an empty network
        "use_config_proxy": spec.network == "open",  # a proxy's address can contain a password
    }


def add_first_files(pack: Packer, spec: SandboxSpec) -> None:
    """Add what a sandbox has before its first command.

    These are its fresh directories, which are closed to all but root, its open ones, and the files with the host names
    of a sealed sandbox.
    """
    for path in spec.fresh_dirs:
        pack.directory(path, 0o700)
    for path in spec.open_dirs:
        pack.directory(path, 0o777)
    for path, text in (NAMES if is_alone(spec) else {}).items():
        pack.file(path, text, "root")


def is_alone(spec: SandboxSpec) -> bool:
    """Return whether the sandbox has no network but its own loopback. Then the kernel counts attempts to leave it; in a
    network of services a route leads to nowhere.
    """
    return spec.network != "open" and spec.services is None


def is_open(spec: SandboxSpec) -> bool:
    """Return whether the sandbox is in the network that all open sandboxes share."""
    return spec.network == "open" and spec.services is None


def _network(spec: SandboxSpec) -> dict[str, Any]:
    if spec.services is None:
        return OPEN if is_open(spec) else SEALED
    sealed = {"sysctls": SEALED["sysctls"], "dns": [SERVED_RESOLVER]}
    return {"network_mode": spec.services, **({} if spec.network == "open" else sealed)}


def _as_main(api: APIClient, network: str) -> Any:
    """Return the setting by which the services reach the sandbox as `main`."""
    return api.create_networking_config({network: api.create_endpoint_config(aliases=[MAIN])})  # type: ignore[arg-type]


def unique_name(readable: str) -> str:
    """Return a name for a container that no other container has."""
    return f"assay-{re.sub(r'[^a-zA-Z0-9_.-]', '-', readable)[:60]}-{secrets.token_hex(4)}"


def engine_user(user: str | None) -> str:
    """Return the user for the engine: root by number, since an agent may have removed its name."""
    return "0" if user == "root" else user or ""


def is_roots(user: str) -> bool:
    """Return whether this user is root. Names other than `root` count as other users."""
    owner = numeric(user)
    return owner is not None and owner.uid == 0


def _has_roots_entrypoint(spec: SandboxSpec, home: ImageConfig) -> bool:
    """Return whether the image's ENTRYPOINT runs as root. Such scripts change owners, and drop rights for servers."""
    if home.entrypoint is None or not spec.entrypoint:
        return False
    return is_roots(spec.entrypoint_user or home.entrypoint.user)


def _mounts(spec: SandboxSpec, home: ImageConfig) -> list[Mount]:
    # no_copy: without it, a new volume starts with what the image, and so perhaps an agent, has at its path.
    mounts = [Mount(path, None, type="volume", no_copy=True) for path in spec.fresh_dirs]
    own = {path: name for path, name in home.volumes.items() if name and path not in spec.fresh_dirs}
    mounts += [Mount(path, name, type="volume") for path, name in own.items()]
    if spec.gateway_dir:
        mounts.append(Mount(GATEWAY_DIR, str(spec.gateway_dir), type="bind", read_only=True))
    if spec.runtime:
        mounts.append(EMPTY_PRELOADED)
    if _runs_ours(spec):
        # A volume instead of a plain `tmpfs`, because the engine can copy files into it.
        options = {"type": "tmpfs", "device": "tmpfs", "o": AGENT_DIR_OPTIONS}
        driver = DriverConfig("local", options)
        mounts.append(Mount(AGENT_DIR, None, type="volume", no_copy=True, driver_config=driver))
    return mounts


def _bundles(spec: SandboxSpec) -> list[str]:
    if not _runs_ours(spec):
        return []
    # The runtime comes last: each bundle brings the runtime that it was built with, and the last one is mounted.
    names = (*map(bundles.container_name, spec.bundles), bundles.runtime_container())
    return [f"{name}:ro" for name in dict.fromkeys(names)]


def _runs_ours(spec: SandboxSpec) -> bool:
    """Return whether a program of ours runs in the sandbox, which needs the `python` runtime and the agent's folder.

    Other sandboxes of verifiers have neither: fewer mounts mean fewer paths that an agent can have spoiled.
    """
    return spec.runtime or spec.gateway_dir is not None or bool(spec.bundles)
