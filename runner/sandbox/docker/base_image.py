"""The base image of our own tasks and of the bundle builds: minimal Debian trixie with Python 3.13 and git.

Tasks that need an earlier Python build on an image of an earlier suite of Debian, made in the same way. The minimal
Debian is pulled if a registry answers, and bootstrapped from Debian packages otherwise. One script completes it in both
cases.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shlex
import shutil
import tarfile
import tempfile
import threading
import time
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from docker.errors import DockerException, ImageNotFound

from runner import locks
from runner.errors import EngineError, ImageError
from runner.records import Image
from runner.sandbox import certificates
from runner.sandbox.docker import engine

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from docker import DockerClient
    from docker.models.containers import Container
    from docker.models.images import Image as DockerImage

    from runner.terminal.escaping import Say


SUITE = "trixie"
EARLIER = ("bookworm", "bullseye")
"""Suites with earlier versions of Python: 3.11 and 3.9."""
PULLED = f"debian:{SUITE}-slim"
PACKAGES = ("ca-certificates", "git", "python3")
"""Packages added to Debian's essential ones."""
MORE = {"bullseye": ("python3-distutils",)}
"""Suite -> packages added there only. pip imports distutils, which later Pythons of Debian do without."""
SCRIPT = Path(__file__).parent / "scripts" / "base.sh"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
"""Keyring of the package debian-archive-keyring."""
PULL_SECONDS = 20.0
"""Longest wait for a pull. An unreachable registry must not hold up the start; a slow one is replaced by the mirror."""
BUILD_SECONDS = 600.0
IN_USE = Path("/tmp", f"assay-in-use-{os.getuid()}.lock")  # noqa: S108 - not `tempfile`'s folder, which may differ
"""Lock that all of this user's processes share that use what remains between runs."""

BUILD_DIR = "/tmp/assay-build"  # noqa: S108 - a path in build containers, which nothing else shares
"""Folder of a build's inputs. The build removes it at its end, so the host's CA and proxies stay in no image."""
_PASSED = (
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "NPM_CONFIG_REGISTRY",
    "PIP_INDEX_URL",
    "UV_DEFAULT_INDEX",
    "UV_INDEX_URL",
)


@cache
def tag(suite: str = SUITE) -> str:
    """Return `assay-base:<12 hex>`, a digest of the recipe. Does not ask the engine."""
    recipe = "\n".join((suite, _pulled(suite), *_packages(suite), SCRIPT.read_text()))
    return f"assay-base:{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"


def _packages(suite: str) -> tuple[str, ...]:
    return (*PACKAGES, *MORE.get(suite, ()))


def ensure(client: DockerClient, say: Say, suite: str = SUITE) -> Image:
    """Return the base image of a suite, building it first if this machine lacks it.

    All who use bundles or images begin with this, so `purge` removes none until this process ends. Raises `ImageError`
    with the end of the build's output.
    """
    _keep(IN_USE)
    started = time.monotonic()
    if image := _local(client, suite):
        return Image(id=str(image.id), reference=tag(suite))
    name = "base" if suite == SUITE else f"base-{suite}"
    with engine.exclusive(name, lambda: say(f"Waiting for another command that makes {tag(suite)}")):
        if image := _local(client, suite):
            return Image(id=str(image.id), reference=tag(suite))
        origin = "pulled"
        minimal = _pull(client, say, suite)
        if minimal is None:
            origin = "debootstrap"
            minimal = _bootstrap(client, say, suite)
        image = _finish(client, minimal, (origin, suite), say)
    return Image(id=str(image.id), reference=tag(suite), origin="built", seconds=time.monotonic() - started)


def build_environment() -> tuple[dict[str, str], Path | None]:
    """Return what a build container needs to reach package registries as this host does.

    The first value is the environment: the proxies and indexes set here, and the CA file's path in the container for
    the usual clients. The second is the host's CA file, to be copied to `BUILD_DIR/ca.crt`, or None.
    """
    env = {name: os.environ[name] for name in _PASSED if os.environ.get(name)}
    authorities = certificates.host_file()
    if authorities is None:
        return env, None
    return env | certificates.variables(f"{BUILD_DIR}/ca.crt"), authorities


def build_inputs(files: Mapping[str, Path]) -> bytes:
    """Return a tar for `put_archive` into `/` that holds these host files and the build environment in `BUILD_DIR`.

    The environment is a file, `env`, which the build sources. Variables of the container itself would be committed with
    it.
    """
    variables, authorities = build_environment()
    env = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())
    contents = {name: path.read_bytes() for name, path in files.items()} | {"env": env.encode()}
    if authorities:
        contents["ca.crt"] = authorities.read_bytes()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in contents.items():
            info = tarfile.TarInfo(f"{BUILD_DIR.strip('/')}/{name}")
            info.size, info.mode = len(content), 0o755
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def build_command(script: str, *arguments: str) -> list[str]:
    """Return the command that runs a copied script in the build environment, with a time limit."""
    inner = f'. {BUILD_DIR}/env; exec sh {BUILD_DIR}/{script} "$@"'
    return ["timeout", f"{BUILD_SECONDS:g}", "sh", "-c", inner, script, *arguments]


@contextmanager
def run_script(
    client: DockerClient, image: str, script: Path, arguments: Sequence[str], failure: str
) -> Iterator[Container]:
    """Run a script of ours in a container of `image` on the host's network, and yield the stopped container.

    Leaving the context removes it. Raises `ImageError` with `failure` and the end of the output when the script fails.
    """
    container = client.containers.create(
        image, build_command(script.name, *arguments), network_mode="host", labels={"assay.role": "build"}
    )
    try:
        container.put_archive("/", build_inputs({script.name: script}))
        container.start()
        if container.wait(timeout=BUILD_SECONDS + 60)["StatusCode"]:
            raise ImageError(f"{failure}:\n{container.logs().decode(errors='replace')[-4000:]}")
        yield container
    finally:
        container.remove(force=True)


@cache
def _keep(lock: Path) -> None:
    """Share a lock until this process ends."""
    locks.share(lock)


def _pulled(suite: str) -> str:
    """Return the reference under which a registry has the minimal Debian of a suite."""
    return PULLED.replace(SUITE, suite)


def _local(client: DockerClient, suite: str) -> DockerImage | None:
    try:
        return client.images.get(tag(suite))
    except ImageNotFound:
        return None


def _pull(client: DockerClient, say: Say, suite: str = SUITE) -> str | None:
    """Pull the minimal Debian and return its reference; None if no registry delivers it in time.

    The engine has no time limit for pulls, so a pull that takes too long is left to end by itself.
    """
    failure: list[DockerException] = []
    wanted = _pulled(suite)

    def pull() -> None:
        try:
            client.images.pull(wanted)
        except DockerException as error:
            failure.append(error)

    puller = threading.Thread(target=pull, daemon=True)
    puller.start()
    puller.join(PULL_SECONDS)
    if not puller.is_alive() and not failure:
        return wanted
    say(f"{wanted} cannot be pulled: {failure[0] if failure else f'not within {PULL_SECONDS:g} s'}")
    return None


def bootstrap_command(root: Path, *mirror: str, suite: str = SUITE) -> tuple[str, ...]:
    """Return the command that bootstraps a minimal Debian. It fails unless Debian signed the archive.

    By default debootstrap only warns when this machine lacks the keyring, and installs unverified packages.
    """
    checked = ("--force-check-gpg", f"--keyring={KEYRING}")
    return ("debootstrap", "--variant=minbase", *checked, suite, str(root), *mirror)


def _bootstrap(client: DockerClient, say: Say, suite: str) -> str:
    """Make the minimal Debian from Debian packages and return the id of the imported image."""
    if os.geteuid() != 0:
        raise ImageError(
            f"{_pulled(suite)} cannot be pulled, and building it from Debian packages needs root"
        )
    if shutil.which("debootstrap") is None or not KEYRING.is_file():
        engine.install(("debootstrap", "debian-archive-keyring"), say)
    say(f"Bootstrapping Debian {suite} from its packages")
    with tempfile.TemporaryDirectory(prefix="assay-base-") as folder:
        root, tar = Path(folder, "root"), Path(folder, "root.tar")
        _run(bootstrap_command(root, suite=suite))
        # debootstrap copies this machine's host name and resolver into the new system.
        hidden = [
            f"--exclude=./{path}" for path in ("etc/hostname", "etc/resolv.conf", "var/cache/apt/archives/*")
        ]
        _run(("tar", "--numeric-owner", *hidden, "-C", str(root), "-cf", str(tar), "."))
        answer = client.api.import_image(src=str(tar))
    return str(json.loads(answer)["status"])


def _run(command: tuple[str, ...]) -> None:
    try:
        done = engine.output_of(command, BUILD_SECONDS)
    except EngineError as error:  # too slow, which is not the engine's fault
        raise ImageError(str(error)) from error
    if done.returncode:
        raise ImageError(f"`{' '.join(command)}` failed for the base image:\n{done.stdout[-2000:]}")


def _finish(client: DockerClient, minimal: str, made: tuple[str, str], say: Say) -> DockerImage:
    """Complete the minimal Debian in a container, and commit the container as the base image.

    `made` says how the minimal Debian was had, and its suite.
    """
    origin, suite = made
    packages = _packages(suite)
    say(f"Building {tag(suite)}: {', '.join(packages)} on a {origin} Debian {suite}")
    with run_script(client, minimal, SCRIPT, packages, "the base image could not be built") as container:
        repository, version = tag(suite).split(":")
        labels = {"assay.role": "base", "assay.origin": origin}
        return container.commit(repository, version, conf={"Cmd": ["bash"], "Labels": labels})
