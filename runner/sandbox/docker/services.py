"""The further containers of one trial, such as a database, and the network that joins them with the agent's machine.

Compose starts them, in its order and with its health checks, from a file of ours: what `Service` allows, with limits,
labels and a network of the trial's own (ADR 26). They are removed by their labels, without Compose, as all containers.
"""

from __future__ import annotations

import fcntl
import json
import secrets
import socket
import struct
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Self

from runner.errors import EngineError, HealthError
from runner.sandbox.docker import compose, disk_usage, launch, reaper, stuck_containers
from runner.sandbox.docker.engine_faults import ENGINE_FAULTS, engine_faults
from runner.sandbox.inside import SERVED_RESOLVER
from runner.sandbox.limits import MEGABYTE, Limits

if TYPE_CHECKING:
    from docker import APIClient

    from runner.protocols import ImageProgress
    from runner.records import Image, Service, ServicesSpec
    from runner.sandbox.docker.images import Images

READY_SECONDS = 300
"""Longest wait for all services to run and be healthy."""
MARGIN_SECONDS = 60.0
"""Time that Compose gets beyond that before it is ended."""
NETWORK = "trial"
SEALED = {"com.docker.network.bridge.inhibit_ipv4": "true"}
"""Option of a network without a way out. Without it the network's own address is this machine's, and through it every
port of this machine that listens on all addresses is in reach."""
LABEL = "assay.services"
"""Label of everything that belongs to the services of one trial; its value names the trial's try."""
LOG = {"driver": "json-file", "options": {"max-size": "1m", "max-file": "1"}}
LOG_LINES = 40
"""Number of lines of each service's output that the error of a failed start quotes."""
ASK_ADDRESS = 0x8915
"""Linux's request for the address of an interface (SIOCGIFADDR)."""
AT_ONCE = 8
RESTARTS = "on-failure:5"
"""Restarts of a service. Some end until the database that they need answers."""


class DockerServices:
    """The services of one trial while its context is open. See `protocols.Services`."""

    def __init__(
        self, api: APIClient, images: Images, spec: ServicesSpec, limits: Limits, progress: ImageProgress
    ) -> None:
        self.images: dict[str, Image] = {}
        self._progress = progress
        self._api = api
        self._known = images
        self._spec = spec
        self._limits = limits
        # Also the name of the network's interface, which has 15 characters at most.
        self._project = f"assay{secrets.token_hex(5)}"
        self._closed = Event()

    @property
    def network(self) -> str:
        """Name of the trial's network."""
        return self._project

    @property
    def ended(self) -> tuple[str, ...]:
        """Names of the services that do not run any more, or failed. One that ended well was to end."""
        with engine_faults("looking at a task's services"):
            states = {name: self._api.inspect_container(found)["State"] for name, found in self._containers()}
        return tuple(
            sorted(name for name, state in states.items() if not state["Running"] and state["ExitCode"] != 0)
        )

    def __enter__(self) -> Self:
        with ExitStack() as failed, engine_faults("starting a task's services"):
            failed.callback(self._remove)  # also after Ctrl-C: a context that was never entered is never left
            for each in self._spec.services:
                self.images[each.name] = self._known.find(each.environment, self._progress)
            self._make_network()
            self._start()
            failed.pop_all()
        Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        """Remove everything. A failure voids no trial: the reaper tries again."""
        self._closed.set()
        self._remove()

    def _labels(self) -> dict[str, str]:
        return {**self._spec.labels, **reaper.owner_labels(), LABEL: self._project}

    def _make_network(self) -> None:
        """Make the network, sealed unless the sandbox's is open. Its interface can be named in firewall rules."""
        is_sealed = self._spec.network == "none"
        interface = {"com.docker.network.bridge.name": self._project}
        self._api.create_network(
            self._project,
            driver="bridge",
            internal=is_sealed,
            options={**interface, **(SEALED if is_sealed else {})},
            labels=self._labels(),
        )
        if is_sealed and _has_address(self._project):
            raise EngineError(
                "The engine does not obey inhibit_ipv4: the services of a sealed task would reach this machine. "
                "Use Docker Engine 20.10 or later."
            )

    def _start(self) -> None:
        """Let Compose start the services and wait for their health checks. Raises `HealthError`."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "compose.json")
            file.write_text(json.dumps(self._model()))
            place = ["-p", self._project, "--project-directory", folder, "-f", str(file)]
            wait = ["up", "--detach", "--wait", "--wait-timeout", str(READY_SECONDS), "--no-build"]
            done = compose.run([*place, *wait], Path(folder), READY_SECONDS + MARGIN_SECONDS)
        if done.returncode:
            reason = " ".join(done.stdout.split("\n")[-5:]).strip()
            raise HealthError(f"The services of {self._spec.name} did not start: {reason}\n{self._output()}")

    def _model(self) -> dict[str, Any]:
        """Return the file for Compose."""
        labels = {name: value.replace("$", "$$") for name, value in self._labels().items()}
        services = {
            each.name: self._service(each, self.images[each.name], labels) for each in self._spec.services
        }
        named = {
            mount["source"]: each
            for each in self._spec.services
            for mount in each.settings.get("volumes", ())
            if mount["type"] == "volume"
        }
        volumes = {name: self._volume(name, owner, labels) for name, owner in named.items()}
        networks = {NETWORK: {"external": True, "name": self._project}}
        return {"services": services, "volumes": volumes, "networks": networks}

    def _service(self, service: Service, image: Image, labels: dict[str, str]) -> dict[str, Any]:
        """Return one service with our image, limits, labels and network in the place of its own."""
        limits, settings = self._limits.of_task(service.environment), dict(service.settings)
        memory = f"{limits.memory_mb}m"
        size = limits.disk_mb * MEGABYTE
        fsize = {"fsize": {"soft": size, "hard": size}}
        is_sealed = self._spec.network == "none"
        aliases = [service.name, *settings.pop("aliases", ())]
        return {
            **settings,
            "ulimits": {**settings.get("ulimits", {}), **fsize},
            "cap_drop": sorted({*launch.NO_TASK_NEEDS, *settings.get("cap_drop", ())}),
            "image": image.id,
            "pull_policy": "never",
            "labels": labels,
            "cpus": limits.cpus,
            "mem_limit": memory,
            "memswap_limit": memory,
            "pids_limit": limits.pids,
            "security_opt": ["no-new-privileges"],
            "logging": LOG,
            "restart": RESTARTS,
            "networks": {NETWORK: {"aliases": aliases}},
            **({"dns": [SERVED_RESOLVER]} if is_sealed else {}),
        }

    def _volume(self, name: str, owner: Service, labels: dict[str, str]) -> dict[str, Any]:
        """Return a named volume: memory of the containers that fill it, so that it ends with them and has a limit."""
        size = self._limits.of_task(owner.environment).memory_mb
        options = {"type": "tmpfs", "device": "tmpfs", "o": f"size={size}m"}
        return {"name": f"{self._project}_{name}", "labels": labels, "driver_opts": options}

    def _containers(self) -> list[tuple[str, str]]:
        """Return name and id of each service's container."""
        found = self._api.containers(all=True, filters={"label": f"{LABEL}={self._project}"})
        return [(each["Labels"].get("com.docker.compose.service", ""), each["Id"]) for each in found]

    def _output(self) -> str:
        """Return the end of what each service printed."""
        texts = []
        with suppress(*ENGINE_FAULTS):
            for name, container in self._containers():
                printed = self._api.logs(container, tail=LOG_LINES).decode(errors="replace")
                texts.append(f"{name}: {printed.strip()}" if printed.strip() else f"{name} printed nothing.")
        return "\n".join(texts)

    def _watch(self) -> None:
        """Kill a service that fills its disk, for as long as the context is open."""
        pause = disk_usage.LOOK_SECONDS
        while not self._closed.wait(pause):
            began = time.monotonic()
            with suppress(*ENGINE_FAULTS):
                services = {each.name: each for each in self._spec.services}
                for name, container in self._containers():
                    limits = self._limits.of_task(services[name].environment)
                    elsewhere = partial(self._volume_bytes, container)
                    if disk_usage.measure_layer(self._api, container, limits, elsewhere).excess:
                        stuck_containers.kill(self._api, container)
            pause = max(disk_usage.LOOK_SECONDS, disk_usage.LOOK_SHARE * (time.monotonic() - began))

    def _volume_bytes(self, container: str) -> int:
        mounts = self._api.inspect_container(container)["Mounts"]
        names = [mount["Name"] for mount in mounts if mount["Type"] == "volume"]
        return disk_usage.volume_bytes(self._api, names)

    def _remove(self) -> None:
        with suppress(*ENGINE_FAULTS):
            containers = [container for _, container in self._containers()]
            with ThreadPoolExecutor(AT_ONCE) as pool:
                list(pool.map(lambda container: stuck_containers.remove(self._api, container), containers))
            reaper.remove_networks_and_volumes(self._api, lambda labels: labels.get(LABEL) == self._project)


def _has_address(interface: str) -> bool:
    """Return whether an interface of this machine has an address. One of an engine elsewhere is not seen."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            fcntl.ioctl(asking, ASK_ADDRESS, struct.pack("256s", interface.encode()))
        except OSError:
            return False
    return True
