"""Fetch sdists and wheels from the package index by digest, without running any of their code."""

from __future__ import annotations

import json
import shutil
import ssl
import sys
import tempfile
import tomllib
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import Any

from runner.archives import LIMITS, Limits, unpack
from runner.benchmarks.sources import packages
from runner.benchmarks.sources.clients import FETCH_SECONDS, check_digest, file_digest, run_client
from runner.errors import ConfigError, FetchError

PYTHONS = ("3.10", "3.13")
"""Oldest and newest version of Python for which an sdist is looked up."""


def sdist_digest(package: str, version: str) -> str:
    """Return the digest that the package index gives for an sdist. Raises `ConfigError` when it has none."""
    with tempfile.TemporaryDirectory() as folder:
        return str(_sdist(package, version, Path(folder))["hash"])


def sdist_source(package: str, version: str, wanted: str, into: Path) -> None:
    """Fetch the sdist with this digest, `sha256:..`, and unpack it. It is not built, and none of its code runs."""
    with tempfile.TemporaryDirectory() as folder:
        unpack_distribution(_sdist(package, version, Path(folder)), package, into, wanted)


def install_modules(pinned: str, into: Path) -> None:
    """Install the modules of an sdist, as its metadata names them, as plain folders. Nothing is built, and none runs.

    `pinned` is a line `name==version --hash=sha256:..`. Raises `FetchError` if its modules are not plain Python.
    """
    text, _, wanted = packages.pin(pinned).partition(" --hash=")
    name, _, version = text.partition("==")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "source")
        sdist_source(name, version, wanted, root)
        tops = sorted(
            {top for file in root.rglob("*.egg-info/top_level.txt") for top in file.read_text().split()}
        )
        found = [path for path in (_module(root, top) for top in tops) if path]
        if not found or not (root / "PKG-INFO").is_file():
            raise FetchError(f"{name} {version}: its sdist does not say which modules it has.")
        about = into / f"{name.replace('-', '_')}-{version}.dist-info"
        about.mkdir(parents=True)
        shutil.copyfile(root / "PKG-INFO", about / "METADATA")
        for path in found:
            if path.is_dir():
                shutil.copytree(path, into / path.name)
            else:
                shutil.copyfile(path, into / path.name)


def _module(root: Path, top: str) -> Path | None:
    """Return the package or module with a top-level name in an unpacked sdist."""
    packages.python_module(top)
    places = [base / name for base in (root, root / "src") for name in (top, f"{top}.py")]
    return next((place for place in places if place.exists()), None)


def unpack_distribution(
    found: dict[str, Any], package: str, into: Path, wanted: str = "", limits: Limits = LIMITS
) -> None:
    """Fetch an sdist or a wheel from its `url` and unpack it within limits, if it has its `hash` (or `wanted`)."""
    trusted = ssl.create_default_context()
    with tempfile.TemporaryDirectory() as folder:
        packed = Path(folder, "packed")
        try:
            with urllib.request.urlopen(found["url"], timeout=FETCH_SECONDS, context=trusted) as answer:  # noqa: S310 - the index's
                packed.write_bytes(answer.read(limits.size))
        except (OSError, HTTPException) as error:
            raise FetchError(f"{package}: the index does not deliver {found['url']}: {error}.") from error
        check_digest(file_digest(packed), wanted or found["hash"], package)
        unpack(packed, into, without_top=not found["url"].endswith(".whl"), limits=limits)


def _sdist(package: str, version: str, place: Path) -> dict[str, Any]:
    """Return the address (`url`) and digest (`hash`) of an sdist, which uv gets from the index."""
    sdist: dict[str, Any] | None = sdist_release(package, version, place).get("sdist")
    if not sdist:
        raise ConfigError(f"upstream {package} {version}: the package index has no sdist of it.")
    return sdist


def sdist_release(package: str, version: str, place: Path) -> dict[str, Any]:
    """Return the files of a version on the index, whether it supports old Pythons or only new ones.

    A version for `>=3.11` has no files for 3.10, and one for `<3.13` none for 3.13.
    """
    oldest, newest = PYTHONS
    try:
        return distributions(package, version, place, oldest)
    except FetchError as error:
        if "requires-python" not in str(error):
            raise
    return distributions(package, version, place, newest)


def distributions(package: str, version: str, place: Path, python: str) -> dict[str, Any]:
    """Return the files of a version on the index: `sdist` and `wheels`, each with `url` and `hash`. `place` is empty.

    `python` is the lowest version of Python that the package must support; uv itself may run on an earlier one.

    The settings state that the package has no requirements, or uv would build the sdist to find out. With `--no-build`
    would find no sdist at all.
    """
    return release(package, f"=={packages.python_version(version)}", place, python)


def release(
    package: str, specifier: str, place: Path, python: str = "3.10", *, oldest: bool = False, before: str = ""
) -> dict[str, Any]:
    """Return the newest version that a specifier such as `<2` allows, as `distributions` does; or the oldest one.

    `before` is a date: later uploads are left out. Raises `FetchError` if there is no such version.
    """
    from uv import find_uv_bin  # noqa: PLC0415 - needed only to fetch

    name, pin = packages.python_name(package), f"{package}{specifier}"
    (place / "pyproject.toml").write_text(
        f'[project]\nname = "asks-for-an-sdist"\nversion = "0"\nrequires-python = ">=3.10"\n'
        f"dependencies = [{json.dumps(packages.requirement(pin))}]\n"
        f"[tool.uv]\nenvironments = [\"python_version >= '{python}'\"]\n"
    )
    settings = place / "uv.toml"
    order = 'resolution = "lowest-direct"\n' if oldest else ""
    until = f"exclude-newer = {json.dumps(before)}\n" if before else ""
    settings.write_text(
        f"{order}{until}[[dependency-metadata]]\nname = {json.dumps(name)}\nrequires-dist = []\n"
    )
    run_client([find_uv_bin(), "lock", "--quiet", "--config-file", str(settings)], str(place))
    locked_packages = tomllib.loads((place / "uv.lock").read_text())["package"]
    return next((entry for entry in locked_packages if entry["name"] == name), {})


def lock_requirements(
    requirements: tuple[str, ...],
    *,
    python: str = "3.13",
    constraints: tuple[str, ...] = (),
    without: tuple[str, ...] = (),
) -> tuple[str, ...]:
    """Return requirements, with everything that they require, as `name==version --hash=..`. Raises `FetchError`.

    `constraints` are requirements that hold for what is required, and require nothing themselves. Packages in `without`
    are left out, whoever requires them.
    """
    from uv import find_uv_bin  # noqa: PLC0415 - as above

    if not requirements:
        return ()
    options = ("--quiet", "--no-config", "--generate-hashes", "--no-annotate", "--no-header")
    # Any Python resolves for another one. Unless uv is told which, it downloads that of `python` where there is none.
    platform = ("--python", sys.executable, "--python-version", python, "--only-binary", ":all:")
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder, "requirements.in")
        wanted.write_text("\n".join(map(packages.requirement, requirements)))
        limits = Path(folder, "constraints.in")
        limits.write_text("\n".join(map(packages.requirement, constraints)))
        limited = ("--constraint", str(limits)) if constraints else ()
        if without:
            dropped = Path(folder, "overrides.in")
            dropped.write_text(
                "\n".join(f"{packages.python_name(name)} ; python_version < '0'" for name in without)
            )
            limited = (*limited, "--override", str(dropped))
        command = [find_uv_bin(), "pip", "compile", *options, *platform, *limited, str(wanted)]
        text = run_client(command, folder)
    return tuple(packages.lines_of(text))
