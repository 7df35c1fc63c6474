"""Bundles: an agent is installed once, into a volume that every sandbox mounts read-only at one path.

A bundle is a stopped container, `assay-bundle-<name>-<digest>`, that owns a volume of the same name mounted at
`/opt/assay/<name>`. The installation is that container's own command: exit code 0 means complete, whichever process
started it, and anything else is removed and built again. A sandbox mounts it with `volumes_from=[<container>:ro]`.
The `python` bundle, the runtime, carries the interpreter and the supervisor and is part of every sandbox.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from docker.errors import APIError, NotFound

from runner.errors import ConfigError, EngineError
from runner.sandbox import base
from runner.sandbox.inside import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from docker import DockerClient
    from docker.models.containers import Container

    from runner.records import BundleRecipe

    Say = Callable[[str], None]

_SCRIPTS = Path(__file__).parent / "scripts"
_SUPERVISE = Path(__file__).with_name("supervise.py")
_CONFLICT = 409
_PARALLEL = 4
_POLL_SECONDS = 0.2
_START_SECONDS = 30.0
"""A container that its builder has not started by then never will be: the builder is dead."""


@dataclass(frozen=True)
class _Build:
    """One bundle to be: all that its container is made of."""

    name: str
    digest: str
    script: Path
    arguments: tuple[str, ...]
    inputs: tuple[tuple[str, Path], ...]
    """Name in the build folder, host file."""
    floats: bool = False
    """Whether there is a lock, but of another version."""

    @property
    def container(self) -> str:
        return f"assay-bundle-{self.name}-{self.digest[:12]}"


def ensure(client: DockerClient, recipes: Iterable[BundleRecipe], say: Say) -> dict[str, str]:
    """Make sure that the base image, the runtime and these bundles exist; name -> recipe digest, runtime included.

    Raises `EngineError` with the end of a failed installation's output.
    """
    base.ensure(client, say)
    runtime = _runtime()
    builds = list({build.container: build for build in map(_build, recipes)}.values())
    stop = Event()
    with ThreadPoolExecutor(max_workers=_PARALLEL) as pool:
        try:
            pool.submit(_complete, client, runtime, say, stop).result()
            list(pool.map(lambda build: _complete(client, build, say, stop), builds))
        except BaseException:  # also Ctrl-C: what was started here must not go on
            stop.set()
            raise
    return {build.name: build.digest for build in (runtime, *builds)}


def container_name(recipe: BundleRecipe) -> str:
    """Name of the container whose volume is this bundle; pure."""
    return _build(recipe).container


def runtime_container() -> str:
    """Name of the container whose volume is the `python` runtime; pure."""
    return _runtime().container


@cache
def _runtime() -> _Build:
    inputs = {"supervise.py": _SUPERVISE, "patchelf.lock": _SCRIPTS / "patchelf.lock"}
    return _identified("python", _SCRIPTS / "python.sh", (), inputs)


@cache
def _build(recipe: BundleRecipe) -> _Build:
    if recipe.kind == "pypi":
        if recipe.lock is None:
            raise ConfigError(
                f"bundle {recipe.name}: kind pypi needs `lock`, a requirements file with hashes"
            )
        inputs = {"requirements.lock": recipe.lock}
        return _identified(recipe.name, _SCRIPTS / "pypi.sh", (recipe.name,), inputs)
    arguments = (recipe.name, recipe.package, recipe.version, "yes" if recipe.node else "no")
    inputs = {name: _SCRIPTS / name for name in ("node.lock", "patchelf.lock", "ripgrep.lock")}
    if recipe.lock is None:
        return _identified(recipe.name, _SCRIPTS / "npm.sh", arguments, inputs)
    if pinned := _locks(recipe.lock, recipe):
        inputs["package-lock.json"] = recipe.lock
    return replace(_identified(recipe.name, _SCRIPTS / "npm.sh", arguments, inputs), floats=not pinned)


def _locks(lock: Path, recipe: BundleRecipe) -> bool:
    """Whether a `package-lock.json` is of this version. Raises `ConfigError`."""
    try:
        packages = json.loads(lock.read_text())["packages"]
        return bool(packages[f"node_modules/{recipe.package}"]["version"] == recipe.version)
    except (OSError, ValueError, LookupError, TypeError) as error:
        message = f"bundle {recipe.name}: {lock} is no package-lock.json of {recipe.package}: {error}"
        raise ConfigError(message) from error


def _identified(name: str, script: Path, arguments: tuple[str, ...], inputs: Mapping[str, Path]) -> _Build:
    """Return the build under the digest of everything that shapes it, the base image's recipe included."""
    contents = {file: path.read_text() for file, path in {"script": script, **inputs}.items()}
    recipe = json.dumps([base.tag(), name, arguments, contents], sort_keys=True)
    digest = hashlib.sha256(recipe.encode()).hexdigest()
    return _Build(name, digest, script, arguments, tuple(inputs.items()))


def _complete(client: DockerClient, build: _Build, say: Say, stop: Event) -> None:
    """Return when the bundle is complete, built by us or by another process; raise when ours fails."""
    while not stop.is_set():
        theirs = _find(client, build)
        if theirs is not None:
            if _outcome(theirs, stop) == 0:
                return
            if not stop.is_set():
                _remove(client, theirs)
            continue
        started = time.monotonic()
        ours = _start(client, build, say)
        if ours is None:
            continue
        code = _outcome(ours, stop)
        if code == 0:
            say(f"Bundle {build.name} installed in {time.monotonic() - started:.0f} s")
            return
        output = "interrupted" if code is None else ours.logs().decode(errors="replace")[-4000:]
        _remove(client, ours)
        raise EngineError(f"bundle {build.name} could not be installed:\n{output}")


def _find(client: DockerClient, build: _Build) -> Container | None:
    try:
        return client.containers.get(build.container)
    except NotFound:
        return None


def _start(client: DockerClient, build: _Build, say: Say) -> Container | None:
    """Start the installation; None when another process has just done so."""
    place = f"{ROOT}/{build.name}"
    inputs = {**dict(build.inputs), build.script.name: build.script, "uv": _uv()}
    runtime = [] if build == _runtime() else [f"{runtime_container()}:ro"]
    try:
        container = client.containers.create(
            base.tag(),
            base.build_command(build.script.name, place, *build.arguments),
            name=build.container,
            network_mode="host",
            volumes={build.container: {"bind": place, "mode": "rw"}},
            volumes_from=runtime,
            labels={"assay.role": "bundle", "assay.digest": build.digest},
        )
        note = " (the lock is of another version: beneath it, what the registry has today)"
        say(f"Installing bundle {build.name}{note if build.floats else ''}")
        container.put_archive("/", base.build_inputs(inputs))
        container.start()
    except NotFound:
        return None
    except APIError as error:
        if error.status_code != _CONFLICT:
            raise EngineError(f"bundle {build.name}: the engine refused to install it: {error}") from error
        return None
    return container


def _outcome(container: Container, stop: Event) -> int | None:
    """Wait until the installation has ended and return its exit code; None when it was removed or is not wanted."""
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


def _remove(client: DockerClient, container: Container) -> None:
    """Remove container and volume; another process may be doing the same, or building anew already."""
    with suppress(APIError):
        container.remove(force=True)
    with suppress(APIError):
        client.volumes.get(str(container.name)).remove()


def _uv() -> Path:
    """Return the uv of this environment: one static binary, so it runs in the build container too."""
    beside = Path(sys.executable).with_name("uv")
    found = str(beside) if beside.is_file() else shutil.which("uv")
    if found is None:
        raise ConfigError("bundles are installed with uv, which this environment lacks: run `make setup`")
    return Path(found)
