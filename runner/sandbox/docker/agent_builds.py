"""Images built from Dockerfiles that an agent wrote: built under limits, removed with their context.

The engine's own builder runs each step in a container on the network of open sandboxes. A step can reach what listens
on this machine's address in that network or on all addresses, but not other containers. Three instructions are
dangerous:

* `ADD` of an address is refused, because the engine itself would fetch it, from this machine.
* `FROM` may name any image that this machine has or that anybody can pull. The user's credentials are not passed on.
* `FROM` an image with triggers (`ONBUILD`) ends the build, since a trigger may be such an `ADD`. The engine may have
  sent the request by then, but nobody sees the answer.

The layers of the steps stay as the builder's cache under a label (`CACHED`) until `job=clean job.all=true`, or until
there are too many. Images that `FROM` pulled stay until that job, which knows them by a second name (`PULLED`).
"""

from __future__ import annotations

import json
import re
import secrets
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Any, Self

from docker import APIClient
from docker.errors import APIError, NotFound
from requests import Response

from runner.errors import EngineError, SpoiledMachine
from runner.records import Build, BuildSpec, ErrorInfo, Image
from runner.sandbox import tar_streams
from runner.sandbox.command_output import Excess, stopper
from runner.sandbox.docker import disk_usage, engine, open_network, stuck_containers
from runner.sandbox.docker.engine_faults import ENGINE_FAULTS, engine_faults
from runner.sandbox.docker.images import arguments_of, events_of
from runner.sandbox.docker.reaper import owner_labels
from runner.sandbox.limits import MEGABYTE, Limits

REPOSITORY = "assay-rerun"
CACHED = ("assay.role", "rerun")
"""Label and value of every layer that an agent's Dockerfile made. `docker.purge` finds layers by this label."""
PULLED = "assay-rerun-from"
"""Repository of second names for images that agents' Dockerfiles pulled."""
CACHE_BYTES = 50 << 30
"""Limit on the total size of cached layers; beyond it, the oldest are removed. Each layer counts with all beneath it,
so the true total is lower."""
YOUNG_SECONDS = 3600.0
"""Age below which a layer is never removed: another build may depend on it."""
LOG_LINES, LINE = 200, 2000
"""Limits on the stored output of a build: lines, and characters per line."""
UNBOUND_SECONDS = 3.0
"""Longest time for which a step may run without a limit on its processes."""
LOOK_SECONDS = 0.1
GONE_SECONDS = 20.0
PERIOD_MICROSECONDS = 100_000
RUNNING = re.compile(r" ---> Running in ([0-9a-f]{12})\n")
MADE = re.compile(r" ---> ([0-9a-f]{12})\n")
FROM = re.compile(r"Step \d+/\d+ : FROM\b", re.IGNORECASE)
TRIGGERS = re.compile(r"# Executing \d+ build triggers?")
NEWER = re.compile(r"Status: Downloaded newer image for (\S+)")
STOPPED = {
    "deadline": "the build did not end within its limit of {seconds:g} s",
    "disk": "the build filled its disk of {disk} MiB",
    "files": "a step of the build made more than {files} files, or folders nested too deeply to count them",
    "cancelled": "the build was cancelled",
}


@contextmanager
def build_image(
    api: APIClient, spec: BuildSpec, limits: Limits, cancelled: Callable[[], bool]
) -> Iterator[Build]:
    """Build the image and yield the result. See `protocols.SandboxProvider.build`."""
    tag = f"{REPOSITORY}:{secrets.token_hex(8)}"
    try:
        with engine_faults(f"building {spec.name}"):
            build = _build(api, spec, limits.of_task(spec.environment), tag, cancelled)
        yield build
    finally:
        with engine_faults("removing an image"):
            with suppress(NotFound):
                api.remove_image(tag, force=True, noprune=True)
            _forget_oldest(api)


def _build(api: APIClient, spec: BuildSpec, limits: Limits, tag: str, cancelled: Callable[[], bool]) -> Build:
    began = time.monotonic()
    if address := remote_addition(spec.dockerfile):
        message = f"`{address}` is refused: an image fetches from the network with RUN, not with ADD."
        return Build(error=ErrorInfo(type="BuildFailed", message=message, phase="verify"))
    open_network.ensure(api)
    steps = _Steps(api, limits.pids)
    reason = stopper(spec.timeout_seconds, cancelled)
    with tar_streams.Packer() as pack, disk_usage.DiskWatch(lambda: steps.excess(limits)) as disk:
        for name, folder in spec.folders.items():
            pack.directory(name, 0o755)
            pack.folder(name, folder)
        pack.file("Dockerfile", marked(spec.dockerfile, owner_labels()), "root")
        response = api.post(
            engine.url(api, "/build"),
            params=_params(spec, limits, tag),
            data=pack.stream(),
            headers={"Content-Type": "application/tar"},
            stream=True,
            timeout=spec.timeout_seconds + GONE_SECONDS,
        )
        with response, _Guard(response, lambda: reason() or disk.excess) as guard:
            try:
                failed = steps.follow(events_of(response))
            except ENGINE_FAULTS:
                if not guard.reason:
                    raise
                failed = None
    steps.end()
    if guard.reason:
        failed = STOPPED[guard.reason].format(
            seconds=spec.timeout_seconds, disk=limits.disk_mb, files=limits.files
        )
    seconds, output = time.monotonic() - began, "\n".join(steps.log)
    if failed:
        error = ErrorInfo(type=guard.reason or "BuildFailed", message=f"The image: {failed}.", phase="verify")
        return Build(error=error, output=output, seconds=seconds)
    found = str(api.inspect_image(tag)["Id"])  # type: ignore[no-untyped-call]
    image = Image(id=found, reference=tag, origin="built", seconds=seconds)
    return Build(image=image, output=output, seconds=seconds)


def _params(spec: BuildSpec, limits: Limits, tag: str) -> dict[str, Any]:
    """Return the parameters of the build. The engine's builder cannot limit processes; `_Steps` limits each step's."""
    bytes_ = limits.disk_mb * MEGABYTE
    return {
        "t": tag,
        "rm": True,
        "forcerm": True,
        "memory": limits.memory_mb * MEGABYTE,
        "memswap": limits.memory_mb * MEGABYTE,
        "cpuperiod": PERIOD_MICROSECONDS,
        "cpuquota": int(limits.cpus * PERIOD_MICROSECONDS),
        "ulimits": json.dumps([{"Name": "fsize", "Soft": bytes_, "Hard": bytes_}]),
        "networkmode": open_network.NAME,
        "buildargs": json.dumps(arguments_of(spec.environment)),
    }


class _Steps:
    """A build in progress: the running container, the bytes written so far and the end of the output.

    A step can print what the builder prints. It gains nothing by that: it could only name its own containers.
    """

    def __init__(self, api: APIClient, pids: int) -> None:
        self._api, self._pids = api, pids
        self._running = ""
        self._top = 0
        """Size of the latest layer and all beneath it, in bytes."""
        self._layers = 0
        """Bytes of the layers made so far."""
        self._fetched: dict[str, int] = {}
        self._is_from = True
        self.log: deque[str] = deque(maxlen=LOG_LINES)

    def follow(self, events: Iterator[dict[str, Any]]) -> str | None:
        """Follow a build to its end and return what went wrong, or None."""
        for event in events:
            if "error" in event:
                return str(event["error"]).strip().rstrip(".")[-LINE:]
            text = str(event.get("stream", ""))
            if self._is_from and TRIGGERS.fullmatch(text):
                return "an image with triggers (ONBUILD) cannot be built upon"
            self._hear(text)
            if newer := NEWER.fullmatch(str(event.get("status", ""))):
                self._keep(newer[1])
            progress = event.get("progressDetail") or {}
            if event.get("status") == "Downloading":
                self._fetched[str(event.get("id"))] = int(progress.get("current") or 0)
        return None

    def excess(self, limits: Limits) -> Excess | None:
        """Return the limit that the build exceeds so far. Of pulled images, only the bytes are known."""
        running, before = self._running, self._layers + sum(self._fetched.values())
        if running:
            return disk_usage.measure_layer(self._api, running, limits, lambda: before).excess
        return "disk" if before > limits.disk_mb * MEGABYTE else None

    def end(self) -> None:
        """Wait until nothing of the build runs any more. The engine ends a step that nobody follows in its own time."""
        deadline = time.monotonic() + GONE_SECONDS
        while self._running and time.monotonic() < deadline:
            if stuck_containers.remove(self._api, self._running, GONE_SECONDS):
                return
            time.sleep(LOOK_SECONDS)
        if self._running:
            raise SpoiledMachine(f"Container {self._running} of a build cannot be removed.")

    def _hear(self, text: str) -> None:
        if found := RUNNING.fullmatch(text):
            self._start(found[1])
        elif found := MADE.fullmatch(text):
            self._add(found[1])
        elif FROM.match(text):
            self._is_from = True
        self.log.extend(line[:LINE] for line in text.splitlines() if line)

    def _start(self, container: str) -> None:
        """Limit the processes of a running step, which the builder cannot do. The step may have ended just now."""
        self._running = container
        url = engine.url(self._api, f"/containers/{container}/update")
        deadline = time.monotonic() + UNBOUND_SECONDS
        while True:
            answer = self._api.post(url, json={"PidsLimit": self._pids}, timeout=self._api.timeout)
            if answer.ok or not self._api.containers(filters={"id": container}):
                return
            if time.monotonic() > deadline:
                raise EngineError(f"A build's processes cannot be limited: {answer.text.strip()[-1000:]}")
            time.sleep(LOOK_SECONDS)

    def _keep(self, reference: str) -> None:
        """Give a newly pulled image a second name, so that cleaning up finds it."""
        with suppress(NotFound):
            found = str(self._api.inspect_image(reference)["Id"])  # type: ignore[no-untyped-call]
            self._api.tag(found, PULLED, found.removeprefix("sha256:")[:12])

    def _add(self, image: str) -> None:
        """Count a layer that was made or found in the cache."""
        with suppress(NotFound):
            size = int(self._api.inspect_image(image)["Size"])  # type: ignore[no-untyped-call]
            self._layers += 0 if self._is_from else max(size - self._top, 0)
            self._top, self._is_from = size, False


class _Guard:
    """A thread that breaks off a stream as soon as there is a reason, even if the stream is silent."""

    def __init__(self, response: Response, look: Callable[[], str | None]) -> None:
        self._response, self._look = response, look
        self._over = Event()
        self.reason: str | None = None
        """Reason for breaking off the stream; None if it was not broken off."""

    def __enter__(self) -> Self:
        self._thread = Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            if reason := self._look():
                self.reason = reason
                # Closing the response from this thread would leave the reader blocked.
                with suppress(OSError), socket.socket(fileno=socket.dup(self._response.raw.fileno())) as line:
                    line.shutdown(socket.SHUT_RDWR)
                return


def _forget_oldest(api: APIClient) -> None:
    """Remove the oldest cached layers while their total exceeds the limit."""
    layers = api.images(filters={"label": "=".join(CACHED), "dangling": True})
    total = sum(image["Size"] for image in layers)
    for image in sorted(layers, key=lambda image: int(image["Created"])):
        if total <= CACHE_BYTES or time.time() - image["Created"] < YOUNG_SECONDS:
            return
        with suppress(APIError):  # another build depends on it
            api.remove_image(image["Id"], force=True)
        total -= image["Size"]


def remote_addition(dockerfile: str) -> str:
    """Return the first `ADD` of anything but a plain path of the context; empty if there is none.

    The file is read both as the builder reads it and line by line, since builders disagree on what continues a line.
    """
    lines = [line.strip("\ufeff\r") for line in dockerfile.split("\n")]
    whole = "\n".join(line for line in lines if line.strip() and not line.lstrip().startswith("#"))
    joined = [re.sub(rf"{re.escape(escape)}[ \t]*\n", "", whole).split("\n") for escape in "\\`"]
    for line in (*lines, *joined[0], *joined[1]):
        found = re.match(r"\s*(?:ONBUILD\s+)?ADD\s+(.*)", line, re.IGNORECASE | re.DOTALL)
        if found and re.search(r"[:$\\`]", found[1]):
            return line.strip()[:200]
    return ""


def marked(dockerfile: str, owner: Mapping[str, str]) -> str:
    """Return the Dockerfile with the label `CACHED` on every layer, and with the owner's labels on the image, in one
    step.
    """
    lines = dockerfile.split("\n")
    label = f'LABEL {CACHED[0]}="{CACHED[1]}"'
    escape = "`" if re.match(r"(\s*#.*\n)*\s*#\s*escape\s*=\s*`", dockerfile, re.IGNORECASE) else "\\"
    marked_lines: list[str] = []
    in_from = in_other = False
    for line in lines:
        marked_lines.append(line)
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        continues = line.rstrip("\r \t").endswith(escape)
        if not in_other and not in_from:
            in_from = bool(re.match(r"\ufeff?\s*FROM\s", line, re.IGNORECASE))
            in_other = not in_from
        if not continues:
            if in_from:
                marked_lines.append(label)
            in_from = in_other = False
    labels = " ".join(f'{name}="{value}"' for name, value in owner.items())
    return "\n".join((*marked_lines, f"LABEL {labels}", ""))
