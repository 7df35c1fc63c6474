"""The base image of our own tasks and of the bundle builds: Debian trixie, minimal, with Python 3.13 and git.

Its minimal Debian is pulled where a registry answers and bootstrapped from Debian packages where none does; the
rest is the same script either way.
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

from runner.errors import ImageError
from runner.records import Image
from runner.sandbox.docker import engine

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from docker import DockerClient
    from docker.models.containers import Container
    from docker.models.images import Image as DockerImage

    from runner.terminal.escaping import Say


SUITE = "trixie"
PULLED = f"debian:{SUITE}-slim"
PACKAGES = ("ca-certificates", "git", "python3")
"""Beside Debian's essential ones."""
SCRIPT = Path(__file__).parent / "scripts" / "base.sh"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
"""Of the package debian-archive-keyring."""
PULL_SECONDS = 20.0
"""A registry that cannot be reached must not hold up the start; a slow one loses to the Debian mirror."""
BUILD_SECONDS = 600.0

BUILD_DIR = "/tmp/assay-build"  # noqa: S108 - a path in build containers, which nothing else shares
"""Where a build finds its inputs. It removes them at its end: the host's CA and proxies stay in no image."""
_CA_VARIABLES = (
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "NPM_CONFIG_CAFILE",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_FILE",
)
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
def tag() -> str:
    """`assay-base:<12 hex>`, a digest of the recipe: pure, no engine asked."""
    recipe = "\n".join((SUITE, PULLED, *PACKAGES, SCRIPT.read_text()))
    return f"assay-base:{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"


def ensure(client: DockerClient, say: Say) -> Image:
    """Return the base image, built first if this machine lacks it.

    Raises `ImageError` with the end of the build's output.
    """
    started = time.monotonic()
    with engine.exclusive("base"):
        image = _local(client)
        if image is not None:
            return Image(id=str(image.id), reference=tag())
        origin = "pulled"
        minimal = _pull(client, say)
        if minimal is None:
            origin = "debootstrap"
            minimal = _bootstrap(client, say)
        image = _finish(client, minimal, origin, say)
    return Image(id=str(image.id), reference=tag(), origin="built", seconds=time.monotonic() - started)


def build_environment() -> tuple[dict[str, str], Path | None]:
    """How a build container reaches package registries as this host does.

    Returns the environment variables (proxies and indexes that are set here, and for the usual clients the place of
    the CA file in the container), and the host's CA file, to be copied to `BUILD_DIR/ca.crt`; None if it has none.
    """
    env = {name: os.environ[name] for name in _PASSED if os.environ.get(name)}
    certificates = Path(os.environ.get("SSL_CERT_FILE") or "/etc/ssl/certs/ca-certificates.crt")
    if not certificates.is_file():
        return env, None
    return env | dict.fromkeys(_CA_VARIABLES, f"{BUILD_DIR}/ca.crt"), certificates


def build_inputs(files: Mapping[str, Path]) -> bytes:
    """Return a tar for `put_archive` into `/`: these host files and the build environment, all in `BUILD_DIR`.

    The environment is a file, `env`, for the build to source: variables of the container itself would be committed
    with it.
    """
    variables, certificates = build_environment()
    env = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())
    contents = {name: path.read_bytes() for name, path in files.items()} | {"env": env.encode()}
    if certificates:
        contents["ca.crt"] = certificates.read_bytes()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in contents.items():
            info = tarfile.TarInfo(f"{BUILD_DIR.strip('/')}/{name}")
            info.size, info.mode = len(content), 0o755
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def build_command(script: str, *arguments: str) -> list[str]:
    """Return the command that runs one of the copied scripts in the build environment, with a time limit."""
    inner = f'. {BUILD_DIR}/env; exec sh {BUILD_DIR}/{script} "$@"'
    return ["timeout", f"{BUILD_SECONDS:g}", "sh", "-c", inner, script, *arguments]


@contextmanager
def ended(
    client: DockerClient, image: str, script: Path, arguments: Sequence[str], failed: str
) -> Iterator[Container]:
    """The container of a script that has run in the build environment; it is there as long as the context.

    Raises `ImageError`, what `failed` says and the end of the output, when the script fails.
    """
    container = client.containers.create(
        image, build_command(script.name, *arguments), network_mode="host", labels={"assay.role": "build"}
    )
    try:
        container.put_archive("/", build_inputs({script.name: script}))
        container.start()
        if container.wait(timeout=BUILD_SECONDS + 60)["StatusCode"]:
            raise ImageError(f"{failed}:\n{container.logs().decode(errors='replace')[-4000:]}")
        yield container
    finally:
        container.remove(force=True)


def _local(client: DockerClient) -> DockerImage | None:
    try:
        return client.images.get(tag())
    except ImageNotFound:
        return None


def _pull(client: DockerClient, say: Say) -> str | None:
    """Pull the minimal Debian; None when no registry gives it in time.

    The engine takes no time limit on a pull, so one that takes too long is left to end by itself.
    """
    failure: list[DockerException] = []

    def pull() -> None:
        try:
            client.images.pull(PULLED)
        except DockerException as error:
            failure.append(error)

    puller = threading.Thread(target=pull, daemon=True)
    puller.start()
    puller.join(PULL_SECONDS)
    if not puller.is_alive() and not failure:
        return PULLED
    say(f"{PULLED} cannot be pulled: {failure[0] if failure else f'not within {PULL_SECONDS:g} s'}")
    return None


def bootstrap_command(root: Path, *mirror: str) -> tuple[str, ...]:
    """Return the command that makes a minimal Debian; it ends in an error unless the archive's signature is Debian's.

    Without these options debootstrap only warns when this machine lacks the keyring, and installs what comes.
    """
    checked = ("--force-check-gpg", f"--keyring={KEYRING}")
    return ("debootstrap", "--variant=minbase", *checked, SUITE, str(root), *mirror)


def _bootstrap(client: DockerClient, say: Say) -> str:
    """Make the minimal Debian from Debian packages; returns the id of the imported image."""
    if os.geteuid() != 0:
        raise ImageError(f"{PULLED} cannot be pulled, and building it from Debian packages needs root")
    if shutil.which("debootstrap") is None or not KEYRING.is_file():
        engine.install(("debootstrap", "debian-archive-keyring"), say)
    say(f"Bootstrapping Debian {SUITE} from its packages")
    with tempfile.TemporaryDirectory(prefix="assay-base-") as folder:
        root, tar = Path(folder, "root"), Path(folder, "root.tar")
        _run(bootstrap_command(root))
        # debootstrap copies this machine's name and resolver into the new system.
        hidden = [
            f"--exclude=./{path}" for path in ("etc/hostname", "etc/resolv.conf", "var/cache/apt/archives/*")
        ]
        _run(("tar", "--numeric-owner", *hidden, "-C", str(root), "-cf", str(tar), "."))
        answer = client.api.import_image(src=str(tar))
    return str(json.loads(answer)["status"])


def _run(command: tuple[str, ...]) -> None:
    done = engine.output_of(command, BUILD_SECONDS)
    if done.returncode:
        raise ImageError(f"`{' '.join(command)}` failed for the base image:\n{done.stdout[-2000:]}")


def _finish(client: DockerClient, minimal: str, origin: str, say: Say) -> DockerImage:
    """Complete the minimal Debian in a container and commit that."""
    say(f"Building {tag()}: {', '.join(PACKAGES)} on a {origin} Debian {SUITE}")
    with ended(client, minimal, SCRIPT, PACKAGES, "the base image could not be built") as container:
        repository, version = tag().split(":")
        labels = {"assay.role": "base", "assay.origin": origin}
        return container.commit(repository, version, conf={"Cmd": ["bash"], "Labels": labels})
