"""Where projects to set up come from: an sdist, an npm package, a Debian source package, a tar or zip file, a folder.

Fetched once into a cache and checked by digest. Nothing of a project runs on this machine, and nothing of an archive is
unpacked outside its place.

    <cache>/projects/<identity>/    build context of the image in which an agent works on it
    ├── Dockerfile
    └── project/                    the project, as it is published
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from runner.archives import unpack, unpacked_size
from runner.benchmarks.project_setup.deliverables import DOCKERFILE, PROJECT
from runner.benchmarks.sources import packages
from runner.benchmarks.sources.checkouts import listed
from runner.benchmarks.sources.references import (
    debian_source,
    fetch_context,
    file_digest,
    made,
    npm_package,
    same,
)
from runner.benchmarks.sources.task_files import digest, tree_digest
from runner.benchmarks.sources.upstream import sdist_source
from runner.errors import ConfigError, TaskError
from runner.records import Record


class Project(Record):
    """`task.yaml` of a task."""

    source: Literal["sdist", "npm", "debian", "archive", "folder"]
    package: str
    """Its name on the index. debian: the path of its tar file, `pool/...`. archive, folder: its path from the file that
    says this."""
    version: str = ""
    digest: str
    """`sha256:` of the file; of a folder's tree. npm: its integrity, `sha512-`."""
    license: str
    """SPDX. Of what is fetched; nothing of it is in this repository."""
    language: str
    """The main one, as the trials table has it."""
    framework: str = "unknown"
    """What its tests are written for, as `Reading.framework` has it."""
    category: str = "unknown"
    """How it is built: plain, native, autotools, cmake, modules, ..."""
    tier: str = "unknown"
    """easy: its language's usual command is all. medium: it must be built, or more is needed than it says. hard: also a
    service, or its documentation is wrong."""
    what: str = ""
    """What is special about it, for people."""
    build_seconds: float = Field(default=900.0, gt=0)
    """That the build of an image may take."""
    test_seconds: float = Field(default=1800.0, gt=0)
    """That one run of the script may take."""

    @model_validator(mode="after")
    def _is_no_option(self) -> Self:
        package, version = packages.CHECKS.get(self.source, (packages.any_text, packages.any_text))
        package(self.package)
        version(self.version)
        return self

    @property
    def identity(self) -> str:
        """Digest of what is fetched; where a folder or a file lies is no part of it."""
        named = () if self.source in ("archive", "folder") else (self.package, self.version)
        return digest([self.source, *named, self.digest])


def context(project: Project, recipe: Path, cache: Path) -> Path:
    """Build context of a project's image, once it is fetched; pure. `recipe` is a folder with the Dockerfile."""
    identity = digest([project.identity, tree_digest(recipe)])
    return cache / "projects" / identity.removeprefix("sha256:")[:24]


def fetch(
    project: Project, here: Path, recipe: Path, npm: Path, cache: Path, say: Callable[[str], None]
) -> Path:
    """Make a project's build context, unless it is there. `here` is the folder of its `task.yaml`, `npm` that of the
    build contexts whose `javascript` brings npm.

    Raises `ConfigError` with what a failed client said, or when something else came than the digest says.
    """
    target, package = context(project, recipe, cache), project.package
    with made(target, f"project {here.name} {project.version}".rstrip(), say) as place:
        if place:
            into = place / PROJECT
            if project.source == "sdist":
                sdist_source(package, project.version, project.digest, into)
            elif project.source == "npm":
                client = fetch_context(npm, "javascript", cache, say)
                npm_package(package, project.version, project.digest, client, into)
            elif project.source == "debian":
                debian_source(package, project.digest, into, say)
            else:
                same(digest_of(here / package), project.digest, package)
                _from_here(here / package, into)
            shutil.copyfile(recipe / DOCKERFILE, place / DOCKERFILE)
    return target


def digest_of(place: Path) -> str:
    """Digest of a folder or of a file as `task.yaml` wants it. Raises `TaskError` when it cannot be read."""
    try:
        if place.is_dir():
            return tree_digest(place, kept(place))
        if place.exists() and not place.is_file():
            raise TaskError(f"{place} is neither a file nor a folder.")
        return file_digest(place)
    except OSError as error:
        raise TaskError(f"{error.filename or place} cannot be read ({error.strerror}).") from error


def size(place: Path) -> int:
    """Bytes of what a folder or an archive holds. Raises `TaskError` when the file is no archive."""
    if place.is_dir():
        files = (path for part in kept(place) for path in _files(place / part))
        return sum(path.lstat().st_size for path in files)
    try:
        return unpacked_size(place)
    except ConfigError as error:
        raise TaskError(str(error)) from error


def kept(folder: Path) -> Sequence[str]:
    """Paths in a folder that are the project: all; of a git checkout neither what git ignores nor `.git`: they may hold
    secrets, environments and gigabytes.
    """
    if not (folder / ".git").exists():
        return (".",)
    found = listed(folder)
    inside = [f"{inner}/{name}" for inner in found.checkouts for name in kept(folder / inner)]
    return sorted({*found.files, *inside})


def _from_here(place: Path, into: Path) -> None:
    if place.is_dir():
        for path in (path for part in kept(place) for path in _files(place / part)):
            target = into / path.relative_to(place)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target, follow_symlinks=False)
        return
    unpack(place, into, without_top=True)


def _files(start: Path) -> Sequence[Path]:
    """Files and links at and below a path: no sockets, pipes and devices; links are not followed."""
    if start.is_symlink() or not start.is_dir():
        return [start]
    found = sorted(path for path in start.rglob("*") if _is_there(path))
    return [path for path in found if path.is_symlink() or path.is_file()]


def _is_there(path: Path) -> bool:
    return path.is_symlink() or path.exists()
