"""Look packages up at their registries with the registries' own clients, and turn them into references.

Nothing of a package runs on this machine: no sdist is built, and no script is run.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import get_args

from pydantic import ValidationError

from runner.benchmarks.sources import packages, registry_go, registry_npm, registry_pypi
from runner.benchmarks.sources.published_package import Package, Registry
from runner.benchmarks.sources.references import Reference
from runner.errors import ConfigError, FetchError, TaskError
from runner.records.base import first_fault


def look_up(
    source: Registry, name: str, version: str, client: Callable[[str], Path], say: Callable[[str], None]
) -> Package:
    """Return one version of a package from its registry, with everything that it requires.

    `client` returns the context of a language's image, which holds its package client (`references.fetch_context`).
    For debian, `name` and `version` are those of a source package. Raises `TaskError` for a package that cannot be a
    reference, and `FetchError` if a client fails.
    """
    if source not in get_args(Registry):
        raise TaskError(f"{source!r} is not a registry; the registries are {', '.join(get_args(Registry))}.")
    check_name, check_version = packages.CHECKS["debian-source" if source == "debian" else source]
    try:
        check_name(name)
        check_version(version)
    except ValueError as error:
        raise TaskError(f"{error}.") from error
    try:
        return _looked_up(source, name, version, client, say)
    except (TaskError, FetchError):
        raise
    except (
        ConfigError,
        ValueError,
        LookupError,
        OSError,
    ) as error:  # what a stranger's files may bring about
        raise TaskError(f"{name} {version} cannot be read: {type(error).__name__}: {error}") from error


def _looked_up(
    source: Registry, name: str, version: str, client: Callable[[str], Path], say: Callable[[str], None]
) -> Package:
    if source == "pypi":
        return registry_pypi.look_up(name, version)
    if source == "npm":
        return registry_npm.look_up(name, version, client("javascript"))
    if source == "go":
        return registry_go.look_up_module(name, version, client("go"))
    return registry_go.look_up_source(name, version, client, say)


def reference(package: Package, command: str, tool: str) -> Reference:
    """Return the reference for a task that calls a package's command `tool`.

    Raises `TaskError` if the package has no such command, or one that cannot be taken, or if the task would keep its
    published name.
    """
    if command not in package.commands:
        known = ", ".join(sorted(package.commands))
        raise TaskError(f"{package.package} has no command {command!r}. It has {known}.")
    if tool in (command, package.package):
        raise TaskError(f"{tool!r} is the published name: give the task's tool another one.")
    try:
        return Reference(
            source=package.source,
            registry=package.registry,
            package=package.path or package.package,
            version=package.version,
            digest=package.digest,
            license=package.license or "NOASSERTION",  # the SPDX word for an unknown licence
            requires=package.requires,
            entry=package.commands[command],
            lines=package.lines,
            files=package.files,
            depth=package.depth,
        )
    except ValidationError as error:
        raise TaskError(f"{package.package} cannot be taken: {first_fault(error, 'it')}.") from error
