"""Read what a checkout says about itself, as `registries` asks a registry. Nothing of it is built or run."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from packaging.utils import canonicalize_name

from runner.archives import unpack
from runner.benchmarks.sources import packages, registry_go, registry_npm
from runner.benchmarks.sources.clients import NODE, NPM, file_digest
from runner.benchmarks.sources.go_modules import check_replacements, module_path, read_module
from runner.benchmarks.sources.node_modules import package_json
from runner.benchmarks.sources.published_package import Package, build_files, measures, readme
from runner.benchmarks.sources.python_declared import Declared, read_declared
from runner.benchmarks.sources.python_projects import place_modules
from runner.benchmarks.sources.registry_pypi import named
from runner.benchmarks.sources.sdists import lock_requirements
from runner.errors import ConfigError, FetchError, TaskError

Language = Literal["python", "javascript", "go"]
BUILD_FILES: dict[Language, str] = {
    "python": "pyproject.toml with [project], or setup.cfg",
    "javascript": "package.json",
    "go": "go.mod",
}
"""Language -> the build files by which it is known, in words."""


def languages_of(checkout: Path) -> list[Language]:
    """Return the languages whose build files lie at the top of a checkout. Raises `TaskError` if there are none."""
    found: list[Language] = []
    if read_declared(checkout) is not None:
        found.append("python")
    if (checkout / "package.json").is_file():
        found.append("javascript")
    if (checkout / "go.mod").is_file():
        found.append("go")
    if not found and (checkout / "setup.py").is_file():
        raise TaskError(
            "its setup.py is a program, which is not run here. Write its name, version, dependencies and commands "
            "into the [project] table of a pyproject.toml."
        )
    if not found:
        known = "; ".join(BUILD_FILES.values())
        raise TaskError(f"it has no build file at its top ({known}). Name the folder that has one.")
    return found


def look_up(
    packed: Path, language: Language, version: str, entry: str, client: Callable[[str], Path]
) -> Package:
    """Return the package that the packed files of a checkout declare, with everything that it requires.

    `version` and `entry` are the version and the command's entry point as people state them; both may be empty.
    `client` is that of `registries.look_up`. Raises `TaskError` for a checkout that cannot be a reference, and
    `FetchError` if a client fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        own, scratch = Path(folder, "own"), Path(folder, "scratch")
        scratch.mkdir()
        try:
            unpack(packed, own)
            if language == "python":
                found = _python(own, entry, scratch)
            elif language == "javascript":
                found = _javascript(own, entry, scratch, client("javascript"))
            else:
                found = _go(own, client("go"))
            said = _version(found.get("version", ""), version, language)
        except ValueError as error:  # a requirement, a name or a path that no client is given
            raise TaskError(f"{error}.") from error
        except (FetchError, TaskError):
            raise
        except ConfigError as error:
            raise TaskError(str(error)) from error
        about = {"readme": readme(own), **found, "version": said}
        return Package(source="checkout", digest=file_digest(packed), build_files=build_files(own), **about)


def _python(own: Path, entry: str, scratch: Path) -> dict[str, Any]:
    declared = read_declared(own) or Declared()
    if not declared.name:
        raise TaskError(
            "it does not declare its name: add `name` to [project], or to [metadata] in setup.cfg."
        )
    name = packages.python_name(declared.name)
    for started in _entries(
        declared.commands, entry, "[project.scripts], or as console_scripts in setup.cfg"
    ):
        place_modules(own, packages.python_entry(started), scratch)
    pinned = lock_requirements(tuple(declared.dependencies))
    return {
        "registry": "pypi",
        "package": name,
        "version": declared.version,
        "commands": declared.commands,
        "requires": tuple(line for line in pinned if canonicalize_name(named(line)) != name),
        **declared.described,
        **measures(scratch, "python"),
    }


def _javascript(own: Path, entry: str, scratch: Path, javascript: Path) -> dict[str, Any]:
    about = package_json(own)
    if not about.get("name"):
        raise TaskError("it does not declare its name: add `name` to package.json.")
    name = packages.npm_name(str(about["name"]))
    registry_npm.check_scripts(about, own)
    commands = registry_npm.commands_of(name, about.get("bin"))
    for started in _entries(commands, entry, "the field `bin` of package.json"):
        if not (own / packages.inner_path(started)).is_file():
            raise TaskError(
                f"its command starts {started}, which is not there. If a build makes it, build it, and name a copy "
                "that holds it and is not a git checkout."
            )
    if (own / "package-lock.json").is_file():
        shutil.copyfile(own / "package-lock.json", scratch / "package-lock.json")
    npm = [str(javascript / NODE), str(javascript / NPM)]
    return {
        "registry": "npm",
        "package": name,
        "version": str(about.get("version") or ""),
        "commands": commands,
        "requires": registry_npm.required_by(about, npm, scratch),
        **registry_npm.described_by(about, ()),
        **measures(own, "javascript"),
    }


def _go(own: Path, golang: Path) -> dict[str, Any]:
    module = module_path(own)
    check_replacements(read_module(golang, own))
    return {
        "registry": "go",
        "package": packages.inner_path(module),
        "commands": registry_go.commands_of(own, module),
        "addresses": (f"https://{module}",) if "." in module.partition("/")[0] else (),
        **measures(own, "go"),
    }


def _entries(commands: Mapping[str, str], entry: str, where: str) -> list[str]:
    """Return the entry points of declared commands, and the stated one. Raises `TaskError` if there is none."""
    found = [*commands.values(), *([entry] if entry else [])]
    if not found:
        raise TaskError(
            f"it declares no command: name one in {where}, or set `command` and `entry` in the recipe."
        )
    return found


def _version(found: str, said: str, language: Language) -> str:
    """Return the version of a checkout. Raises `TaskError` if it is stated nowhere, or differently in two places."""
    check = {"python": packages.python_version, "javascript": packages.npm_version}.get(
        language, packages.any_text
    )
    versions = {check(text) for text in (found, said) if text}
    if not versions:
        raise TaskError("version: the checkout does not state its version. Add `version` to the recipe.")
    if len(versions) > 1:
        raise TaskError(f"version: the checkout says {found} and the recipe {said}. Correct the recipe.")
    return versions.pop()
