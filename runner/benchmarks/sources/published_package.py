"""The properties of a package, from its registry and its own files. Unknown properties are empty."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from runner.benchmarks.sources.sizes import NOT_THE_TOOL, files_of, languages, size
from runner.records import Record

Registry = Literal["pypi", "npm", "go", "debian"]
BUILD_FILES = ("pyproject.toml", "setup.py", "setup.cfg", "package.json", "go.mod")
_PERSON = re.compile(r"\s*(?P<name>[^<(]*?)\s*(?:<(?P<email>[^>]*)>)?\s*(?:\((?P<address>[^)]*)\))?\s*")


class Package(Record):
    """One version of a published package, or a checkout of one."""

    source: Registry | Literal["checkout"]
    registry: Literal["", "pypi", "npm", "go"] = ""
    """See `Reference.registry`."""
    package: str
    """Name in the registry. debian: name of the source package. checkout: name that the checkout itself declares."""
    version: str
    digest: str
    """See `Reference.digest`."""
    path: str = ""
    """debian: path of the tar file, `pool/..`."""
    license: str = ""
    """Licence as declared. Names that have a single SPDX identifier are replaced by it."""
    description: str = ""
    """Description of the package in one line."""
    readme: str = ""
    authors: tuple[str, ...] = ()
    """Names of authors and maintainers."""
    emails: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    """Web addresses of the package: home page, repository and the like."""
    requires: tuple[str, ...] = ()
    """See `Reference.requires`."""
    commands: dict[str, str]
    """Published name of a command -> its entry, as `Reference.entry`."""
    build_files: tuple[str, ...] = ()
    """Files of `BUILD_FILES` at the top of the source, which for pypi is the sdist."""
    lines: int
    """Lines of code as a reference counts them, without requirements."""
    files: int | None = None
    depth: int | None = None
    languages: dict[str, float] = {}
    """Language -> its share of the lines of code, the largest first."""


def measures(folder: Path, language: str) -> dict[str, Any]:
    """Return `lines`, `files`, `depth` and `languages` of a package's own files.

    `dist/` counts where all of the code lies there, as it does in many packages of npm.
    """

    def is_about(path: PurePosixPath) -> bool:
        return path.parts[0].endswith((".dist-info", ".data"))

    for left_out in (NOT_THE_TOOL, NOT_THE_TOOL - {"dist"}):
        found = size(files_of(folder, is_about), language, left_out)
        if found["lines"]:
            break
    return {**found, "languages": languages(files_of(folder, is_about), left_out)}


def build_files(folder: Path) -> tuple[str, ...]:
    """Return the build files at the top of a source."""
    return tuple(name for name in BUILD_FILES if (folder / name).is_file())


def readme(folder: Path) -> str:
    """Return the text of the README at the top of a source; empty if there is none."""
    found = sorted(path for path in folder.glob("[Rr][Ee][Aa][Dd][Mm][Ee]*") if path.is_file())
    return found[0].read_text("utf-8", "replace") if found else ""


def people(texts: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return `authors`, `emails` and `addresses` of people written as `Name <email> (address)`."""
    found = [match for text in texts if (match := _PERSON.fullmatch(text))]
    named = [match["name"] for match in found]
    return {
        "authors": distinct(name for name in named if "://" not in name),
        "emails": distinct(match["email"] for match in found),
        "addresses": distinct(
            [*(match["address"] for match in found), *(name for name in named if "://" in name)]
        ),
    }


def distinct(texts: Iterable[str | None]) -> tuple[str, ...]:
    """Return the texts that are not empty, each once, in their order."""
    return tuple(dict.fromkeys(text.strip() for text in texts if text and text.strip()))
