"""Fetch projects to set up: an sdist, an npm package, a Debian source package, a tar or zip file, or a folder.

Projects are fetched once into a cache and checked by digest. Nothing of a project runs on this machine, and archives
are unpacked only inside their folder.

    <cache>/projects/<identity>/    build context of the image in which an agent works on it
    ├── Dockerfile
    └── project/                    the project as published
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
from runner.benchmarks.sources.checkouts import head, project_paths, tags
from runner.benchmarks.sources.clients import check_digest, debian_source, file_digest, npm_package
from runner.benchmarks.sources.references import fetch_context, new_folder
from runner.benchmarks.sources.sdists import sdist_source
from runner.benchmarks.sources.task_files import digest, short, tree_digest
from runner.errors import ConfigError, TaskError
from runner.records import Record


class Project(Record):
    """Content of a task's `task.yaml`."""

    source: Literal["sdist", "npm", "debian", "archive", "folder"]
    package: str
    """Name on the package index. debian: path of the tar file, `pool/...`. archive, folder: path relative to
    `task.yaml`."""
    version: str = ""
    digest: str
    """`sha256:` of the file or the folder's tree. npm: the integrity, `sha512-`."""
    license: str
    """SPDX expression for the fetched project, which is not part of this repository."""
    language: str
    """Main language, as in the trials table."""
    framework: str = "unknown"
    """Test framework, as in `Reading.framework`."""
    category: str = "unknown"
    """Kind of build: plain, native, autotools, cmake, modules, and others."""
    tier: str = "unknown"
    """Difficulty. easy: the language's usual command suffices. medium: the project must be built, or needs more than it
    documents. hard: it also needs a service, or its documentation is wrong."""
    what: str = ""
    """Remark for readers on what is special about the project."""
    build_seconds: float = Field(default=900.0, gt=0)
    """Time limit for the build of the image."""
    test_seconds: float = Field(default=1800.0, gt=0)
    """Time limit for one run of the script."""
    git: bool = False
    """True if the project keeps its `.git`: all of the folder is the project, which must be a clone of its own."""

    @model_validator(mode="after")
    def _names_are_safe(self) -> Self:
        package, version = packages.CHECKS.get(self.source, (packages.any_text, packages.any_text))
        package(self.package)
        version(self.version)
        if self.git and self.source != "folder":
            raise ValueError("git: true is for a folder, which is a clone of the project's repository")
        return self

    @property
    def identity(self) -> str:
        """Digest of the fetched content, independent of the location of a folder or file."""
        named = () if self.source in ("archive", "folder") else (self.package, self.version)
        return digest([self.source, *named, self.digest])


def context(project: Project, recipe: Path, cache: Path) -> Path:
    """Return the folder of a project's build context, existing or not. `recipe` is a folder with the Dockerfile."""
    identity = digest([project.identity, tree_digest(recipe)])
    return cache / "projects" / short(identity)


def fetch(
    project: Project, here: Path, recipe: Path, npm: Path, cache: Path, say: Callable[[str], None]
) -> Path:
    """Make a project's build context, unless it exists.

    `here` is the folder of `task.yaml`; `npm` is the folder of build contexts whose `javascript` brings npm. Raises
    `FetchError` when a client fails or the digest differs, and `ConfigError`.
    """
    target, package = context(project, recipe, cache), project.package
    with new_folder(target, f"project {here.name} {project.version}".rstrip(), say) as place:
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
                check_digest(digest_of(here / package, git=project.git), project.digest, package)
                _from_task(here / package, into, git=project.git)
            shutil.copyfile(recipe / DOCKERFILE, place / DOCKERFILE)
    return target


def digest_of(place: Path, *, git: bool = False) -> str:
    """Return the digest of a folder or file as in `task.yaml`; with `git`, that of its commit and tags as well.

    Raises `TaskError` when it cannot be read.
    """
    try:
        if place.is_dir():
            tree = tree_digest(place, project_paths(place))
            return digest([tree, head(place), *tags(place)]) if git else tree
        if place.exists() and not place.is_file():
            raise TaskError(f"{place} is neither a file nor a folder.")
        return file_digest(place)
    except OSError as error:
        raise TaskError(f"{error.filename or place} cannot be read ({error.strerror}).") from error


def size(place: Path, *, git: bool = False) -> int:
    """Return the bytes in a folder or an unpacked archive. Raises `TaskError` when a file is not an archive."""
    if place.is_dir():
        files = (path for part in _paths(place, git=git) for path in _files(place / part))
        return sum(path.lstat().st_size for path in files)
    try:
        return unpacked_size(place)
    except ConfigError as error:
        raise TaskError(str(error)) from error


def _paths(place: Path, *, git: bool) -> Sequence[str]:
    """Return the paths in a folder that belong to the project: with `git`, everything."""
    return (".",) if git else project_paths(place)


def _from_task(place: Path, into: Path, *, git: bool) -> None:
    if place.is_dir():
        for path in (path for part in _paths(place, git=git) for path in _files(place / part)):
            target = into / path.relative_to(place)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target, follow_symlinks=False)
        return
    unpack(place, into, without_top=True)


def _files(start: Path) -> Sequence[Path]:
    """Return the files and links at and below a path, without sockets, pipes and devices. Links are not followed."""
    if start.is_symlink() or not start.is_dir():
        return [start]
    found = sorted(path for path in start.rglob("*") if _is_there(path))
    return [path for path in found if path.is_symlink() or path.is_file()]


def _is_there(path: Path) -> bool:
    return path.is_symlink() or path.exists()
