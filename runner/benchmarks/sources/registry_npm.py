"""Look up a package at npm's registry. None of its scripts run."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from runner.benchmarks.sources import packages
from runner.benchmarks.sources.clients import NODE, NPM, npm_package, run_client
from runner.benchmarks.sources.node_modules import package_json
from runner.benchmarks.sources.published_package import (
    Package,
    build_files,
    distinct,
    measures,
    people,
    readme,
)
from runner.errors import TaskError

RESOLVED = (
    "name",
    "version",
    "dependencies",
    "optionalDependencies",
    "peerDependencies",
    "peerDependenciesMeta",
)
"""Fields of a package.json from which npm makes a lock."""
SCRIPTS = ("preinstall", "install", "postinstall")
"""Scripts that npm runs at an installation."""


def look_up(name: str, version: str, javascript: Path) -> Package:
    """Return a package that needs no scripts and no machine code.

    Raises `TaskError` for others, and `FetchError`.
    """
    npm = [str(javascript / NODE), str(javascript / NPM)]
    with tempfile.TemporaryDirectory() as folder:
        wanted = f"{packages.npm_name(name)}@{packages.npm_version(version)}"
        answer = _viewed(run_client([*npm, "view", "--json", "--", wanted], folder), wanted)
        code, integrity = Path(folder, "code"), answer["dist"]["integrity"]
        npm_package(name, version, integrity, javascript, code)
        about = package_json(code)
        check_scripts(about, code)
        commands = commands_of(name, about.get("bin"))
        locked = Path(folder, "locked")
        locked.mkdir()
        return Package(
            source="npm",
            package=name,
            version=version,
            digest=integrity,
            requires=required_by(about, npm, locked),
            commands=commands,
            build_files=build_files(code),
            readme=readme(code),
            **described_by(about, answer.get("maintainers") or ()),
            **measures(code, "javascript"),
        )


def _viewed(text: str, wanted: str) -> dict[str, Any]:
    """Return the registry's data on a version. Raises `TaskError` if there are none, or there is no SHA-512 digest."""
    answer = json.loads(text or "null")
    if not isinstance(answer, dict):
        raise TaskError(f"The registry has no {wanted}.")
    integrity = (answer.get("dist") or {}).get("integrity")
    if not isinstance(integrity, str) or not integrity.startswith("sha512-"):
        raise TaskError(f"The registry gives no SHA-512 digest of {wanted}, so it cannot be taken.")
    return answer


def check_scripts(about: Mapping[str, Any], code: Path) -> None:
    """Raise `TaskError` for a package that npm builds, or that runs something of its own, when it is installed."""
    scripts = about.get("scripts")
    run = [name for name in SCRIPTS if isinstance(scripts, dict) and name in scripts]
    if run or (code / "binding.gyp").is_file():
        what = f"a script at its installation ({run[0]})" if run else "a compiler at its installation"
        raise TaskError(f"{about.get('name')} needs {what}, and none runs here.")


def commands_of(name: str, declared: Any) -> dict[str, str]:
    """Return the commands that the field `bin` declares: a path, or paths by name."""
    if isinstance(declared, str):
        declared = {name.rpartition("/")[2]: declared}
    named = declared if isinstance(declared, dict) else {}
    return {key: str(PurePosixPath(path)) for key, path in named.items() if isinstance(path, str)}


def required_by(about: Mapping[str, Any], npm: list[str], folder: Path) -> tuple[str, ...]:
    """Return the lines of `Reference.requires` that npm resolves for a package. A lock in `folder` is respected."""
    described = {key: about[key] for key in RESOLVED if key in about}
    (folder / "package.json").write_text(json.dumps(described))
    run_client([*npm, "install", "--package-lock-only", "--ignore-scripts", "--no-audit"], str(folder))
    lock = folder / "package-lock.json"
    entries = json.loads(lock.read_text("utf-8"))["packages"] if lock.is_file() else {}
    return tuple(_lines(entries))


def _lines(entries: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for path, entry in entries.items():
        if not path or entry.get("inBundle"):
            continue  # the package itself, and what lies in the archive of another one
        there = _runs_on_linux(entry)
        if entry.get("optional") and (not there or entry.get("hasInstallScript")):
            continue
        if not there or entry.get("hasInstallScript") or "os" in entry or "cpu" in entry:
            raise TaskError(
                f"{path} has machine code or a script at its installation, so it cannot be taken."
            )
        alias = f"={entry['name']}" if "name" in entry else ""
        line = f"{path}{alias}@{entry.get('version')} {entry.get('integrity')}"
        try:
            packages.npm_placed(line)
        except ValueError as error:
            raise TaskError(
                f"{path} is not a package of the registry with a sha512 digest: {error}."
            ) from error
        yield line


def _runs_on_linux(entry: Mapping[str, Any]) -> bool:
    """Return whether a locked package may be installed on Linux on one of the usual machines."""

    def allows(kind: str, *wanted: str) -> bool:
        named = entry.get(kind) or []
        if any(name.startswith("!") for name in named):
            return not all(f"!{name}" in named for name in wanted)
        return not named or bool({*wanted, "any"} & set(named))

    return allows("os", "linux") and allows("cpu", "x64", "arm64")


def described_by(about: Mapping[str, Any], maintainers: Any) -> dict[str, Any]:
    """Return those fields of a package that its package.json and the registry provide."""
    listed = [about.get("author"), *_list(about.get("contributors")), *_list(about.get("maintainers"))]
    found = people(_person(entry) for entry in [*listed, *_list(maintainers)] if entry)
    repository, bugs = about.get("repository"), about.get("bugs")
    own = [about.get("homepage"), _field(repository, "url").removeprefix("git+"), _field(bugs, "url")]
    emails = [*found["emails"], _field(bugs, "email") if isinstance(bugs, dict) else ""]
    licenses = [about.get("license"), *_list(about.get("licenses"))]
    return {
        "license": next((text for entry in licenses if (text := _field(entry, "type"))), ""),
        "description": _field(about.get("description"), ""),
        "authors": found["authors"],
        "emails": distinct(emails),
        "addresses": distinct([*(text for text in own if isinstance(text, str)), *found["addresses"]]),
    }


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _field(value: Any, key: str) -> str:
    """Return a value that is a text, or an object whose field `key` is one; empty for anything else."""
    found = value.get(key) if isinstance(value, dict) else value
    return found.strip() if isinstance(found, str) else ""


def _person(entry: Any) -> str:
    if not isinstance(entry, dict):
        return str(entry)
    email, url = (f" {left}{entry[key]}{right}" if entry.get(key) else "" for key, left, right in _PARTS)
    return f"{entry.get('name') or ''}{email}{url}"


_PARTS = (("email", "<", ">"), ("url", "(", ")"))
"""Fields of a person, and the brackets in which a text has them."""
