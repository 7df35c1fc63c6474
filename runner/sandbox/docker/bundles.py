"""Bundles: an agent is installed once, into a volume that every sandbox mounts read-only at the same path.

A bundle is a stopped container, `assay-bundle-<name>-<digest>`, that owns a volume of the same name mounted at
`/opt/assay/<name>`. The installation is that container's own command. Exit code 0 means that it is complete, whichever
process started it; after any other code it is removed and built again. A sandbox mounts it with
`volumes_from=[<container>:ro]`. Every sandbox also has the `python` bundle, the runtime, with the interpreter and the
supervisor.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from docker.errors import APIError, NotFound

from runner.errors import BundleError, ConfigError, EngineError
from runner.records import InstalledBundle
from runner.sandbox import supervise, tar_streams
from runner.sandbox.docker import base_image
from runner.sandbox.docker.engine_faults import BUNDLE_PREFIX, CONFLICT
from runner.sandbox.docker.lock_files import checked_lock
from runner.sandbox.inside import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from docker import DockerClient
    from docker.models.containers import Container

    from runner.records import BundleRecipe
    from runner.terminal.escaping import Say


_SCRIPTS = Path(__file__).parent / "scripts"
_CONTENT = Path(__file__).with_name("content.py")
_SUPERVISE = Path(supervise.__file__)
CONTENT_FILE = "/var/lib/assay-content"
"""File in the installation's container with the digest of the content. It lies outside the mounted volume."""
_PARALLEL = 4
_POLL_SECONDS = 0.2
_START_SECONDS = 30.0
"""Age at which a container that was never started counts as abandoned: its builder is dead."""


@dataclass(frozen=True)
class _Build:
    """Everything that one bundle's container is made from."""

    name: str
    digest: str
    script: Path
    arguments: tuple[str, ...]
    inputs: tuple[tuple[str, Path], ...]
    """Pairs of a name in the build folder and a host file."""

    @property
    def container(self) -> str:
        return f"{BUNDLE_PREFIX}{self.name}-{self.digest[:12]}"


def ensure(client: DockerClient, recipes: Iterable[BundleRecipe], say: Say) -> dict[str, InstalledBundle]:
    """Make sure that the base image, the runtime and these bundles exist. Return all by name, the runtime included.

    Raises `BundleError` with the end of a failed installation's output.
    """
    base_image.ensure(client, say)
    runtime = _runtime()
    builds = list({build.container: build for build in map(_build, recipes)}.values())
    stop = Event()
    with ThreadPoolExecutor(max_workers=_PARALLEL) as pool:
        try:
            contents = [pool.submit(_complete, client, runtime, say, stop).result()]
            contents += pool.map(lambda build: _complete(client, build, say, stop), builds)
        finally:
            stop.set()  # after an error or Ctrl-C, the builds started here must not go on
    installed = zip((runtime, *builds), contents, strict=True)
    return {build.name: InstalledBundle(recipe=build.digest, content=content) for build, content in installed}


def container_name(recipe: BundleRecipe) -> str:
    """Return the name of the container that owns this bundle's volume. Does not ask the engine."""
    return _build(recipe).container


def runtime_container() -> str:
    """Return the name of the container that owns the `python` runtime's volume. Does not ask the engine."""
    return _runtime().container


@cache
def _runtime() -> _Build:
    inputs = {name: _SCRIPTS / name for name in ("closed.c", "patchelf.lock")}
    inputs["supervise.py"] = _SUPERVISE
    return _identified("python", _SCRIPTS / "python.sh", (), inputs)


@cache
def _build(recipe: BundleRecipe) -> _Build:
    lock = checked_lock(recipe)
    if recipe.kind == "pypi":
        inputs = {"requirements.lock": lock}
        return _identified(recipe.name, _SCRIPTS / "pypi.sh", (recipe.name,), inputs)
    arguments = (recipe.name, recipe.package, recipe.version, "yes" if recipe.node else "no")
    inputs = {name: _SCRIPTS / name for name in ("node.lock", "patchelf.lock", "ripgrep.lock")}
    inputs["package-lock.json"] = lock
    return _identified(recipe.name, _SCRIPTS / "npm.sh", arguments, inputs)


def _identified(name: str, script: Path, arguments: tuple[str, ...], inputs: Mapping[str, Path]) -> _Build:
    """Return the build, identified by a digest of everything that shapes it, the base image's recipe included."""
    inputs = {**inputs, _CONTENT.name: _CONTENT}
    contents = {file: path.read_text() for file, path in {"script": script, **inputs}.items()}
    recipe = json.dumps([base_image.tag(), name, arguments, contents], sort_keys=True)
    digest = hashlib.sha256(recipe.encode()).hexdigest()
    return _Build(name, digest, script, arguments, tuple(inputs.items()))


def _complete(client: DockerClient, build: _Build, say: Say, stop: Event) -> str:
    """Return the content's digest once the bundle is complete, whether this process or another one builds it.

    Raises `BundleError` when our installation fails or is interrupted.
    """
    while not stop.is_set():
        theirs = _find(client, build)
        if theirs is not None:
            if theirs.status in ("created", "running"):
                say(f"Waiting for another command that installs bundle {build.name}")
            if _outcome(theirs, stop) == 0 and (content := _content(theirs)):
                return content
            if not stop.is_set():
                _remove(client, theirs)
            continue
        started = time.monotonic()
        ours = _start(client, build, say)
        if ours is None:
            continue
        code = _outcome(ours, stop)
        if code == 0 and (content := _content(ours)):
            say(f"Bundle {build.name} installed in {time.monotonic() - started:.0f} s")
            return content
        output = "interrupted" if stop.is_set() and code is None else _printed(ours)
        if output is None:
            continue
        _remove(client, ours)
        raise BundleError(f"bundle {build.name} could not be installed:\n{output}")
    raise BundleError(f"bundle {build.name}: interrupted")


def _content(container: Container) -> str:
    """Return the digest that the installation's last step wrote beside the volume; empty if there is none."""
    try:
        stream, _ = container.get_archive(CONTENT_FILE)
    except NotFound:
        return ""
    return (tar_streams.read_file(stream) or b"").decode().strip()


def _find(client: DockerClient, build: _Build) -> Container | None:
    try:
        return client.containers.get(build.container)
    except NotFound:
        return None


def _start(client: DockerClient, build: _Build, say: Say) -> Container | None:
    """Start the installation; return None when another process has just done so."""
    place = f"{ROOT}/{build.name}"
    inputs = {**dict(build.inputs), build.script.name: build.script, "uv": _uv()}
    runtime = [] if build == _runtime() else [f"{runtime_container()}:ro"]
    try:
        container = client.containers.create(
            base_image.tag(),
            base_image.build_command(build.script.name, place, *build.arguments),
            name=build.container,
            network_mode="host",
            volumes={build.container: {"bind": place, "mode": "rw"}},
            volumes_from=runtime,
            labels={"assay.role": "bundle", "assay.digest": build.digest},
        )
        say(f"Installing bundle {build.name}")
        container.put_archive("/", base_image.build_inputs(inputs))
        container.start()
    except NotFound:
        return None
    except APIError as error:
        if error.status_code != CONFLICT:
            raise EngineError(f"bundle {build.name}: the engine refused to install it: {error}") from error
        return None
    return container


def _outcome(container: Container, stop: Event) -> int | None:
    """Wait for the installation to end and return its exit code; None if it was removed or `stop` is set."""
    unstarted = time.monotonic() + _START_SECONDS
    while True:
        try:
            container.reload()
        except NotFound:
            return None
        if container.status == "exited":
            return int(container.attrs["State"]["ExitCode"])
        if container.status == "dead" or (container.status == "created" and time.monotonic() > unstarted):
            return 1
        if stop.wait(_POLL_SECONDS):
            return None


def _printed(container: Container) -> str | None:
    """Return the end of what a failed installation printed; None if another process, which also saw that it failed, has
    removed it to install anew.
    """
    try:
        return container.logs().decode(errors="replace")[-4000:]
    except NotFound:
        return None
    except APIError as error:
        if error.status_code != CONFLICT:  # a conflict: it is being removed
            raise
        return None


def _remove(client: DockerClient, container: Container) -> None:
    """Remove container and volume. Another process may be doing so too, or may already be rebuilding them."""
    with suppress(APIError):
        container.remove(force=True)
    with suppress(APIError):
        client.volumes.get(str(container.name)).remove()


def _uv() -> Path:
    """Return the uv of this environment, a static binary that also runs in the build container."""
    beside = Path(sys.executable).with_name("uv")
    found = str(beside) if beside.is_file() else shutil.which("uv")
    if found is None:
        raise ConfigError("bundles are installed with uv, which this environment lacks: run `make setup`")
    return Path(found)
