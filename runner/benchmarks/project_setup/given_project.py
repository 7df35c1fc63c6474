"""Make a task from any project: a folder, a tar or zip file, a git address, or `NAME==VERSION` on the package index."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import yaml

from runner.benchmarks.project_setup import projects
from runner.benchmarks.project_setup.dataset import TASK
from runner.benchmarks.project_setup.projects import Project
from runner.benchmarks.sources import checkouts
from runner.benchmarks.sources.sdists import sdist_digest
from runner.errors import ConfigError
from runner.files import write_atomically

_PINNED = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)==(?P<version>[\w.+!-]+)")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SUFFIX = re.compile(r"(\.tar(\.\w+)?|\.t[gbx]z2?|\.zip)$")
ADDRESS = re.compile(r"(?:https?|git|file)://\S+")
"""Address of a git repository."""
_PASSWORD = re.compile(r"\w+://[^/]*@")
_UNKNOWN_LICENSE = "NOASSERTION"
"""SPDX term for a license that nobody has looked up."""


def named(given: str) -> str:
    """Return a name for the project that is also a valid file name."""
    pinned = _PINNED.fullmatch(given)
    if ADDRESS.fullmatch(given):
        name = given.rstrip("/").rpartition("/")[2].removesuffix(".git")
    else:
        name = f"{pinned['name']}-{pinned['version']}" if pinned else _place(given).resolve().name
    return re.sub(r"[^\w.+-]+", "-", _SUFFIX.sub("", name)).strip(".-") or "project"


def checked_out(given: str, commit: str, into: Path, *, git: bool = False) -> str:
    """Clone a project that is given by its address into a folder, unless it is there; return the folder.

    Any other project is returned as it is given. `git` says whether its `.git` is for the agent too. Raises
    `ConfigError`.
    """
    if not ADDRESS.fullmatch(given):
        if commit or git:
            name = "job.commit" if commit else "job.keep_git"
            raise ConfigError(
                f"{name} is for a project that is given by the address of its git repository. A checkout here has one, "
                "too: project=file:///PATH/TO/IT."
            )
        return given
    if git and _PASSWORD.match(given):
        raise ConfigError(
            "job.keep_git shows the agent the address, and this one has a password or token in it: leave it out."
        )
    if not (into / ".git").exists() or (_COMMIT.fullmatch(commit) and checkouts.head(into) != commit):
        shutil.rmtree(into, ignore_errors=True)
        into.parent.mkdir(parents=True, exist_ok=True)
        checkouts.clone(given, commit, into)
    return str(into)


def described(given: str, max_bytes: float, *, git: bool = False) -> Project:
    """Return the project with the digest of its present content, and with its `.git` if `git`.

    Raises `ConfigError` when it does not exist, is empty, is not an archive or is larger than `max_bytes`.
    """
    if pinned := _PINNED.fullmatch(given):
        name, version = pinned["name"], pinned["version"]
        return _project("sdist", name, sdist_digest(name, version), version)
    place = _place(given)
    if not place.exists():
        hint = "clone it first" if "://" in given else "name a folder, a tar or zip file, or NAME==VERSION"
        raise ConfigError(f"job.project: {given} does not exist: {hint}.")
    size = projects.size(place, git=git)
    if not size:
        raise ConfigError(f"job.project: {place} is empty.")
    if size > max_bytes:
        excess = f"{size / 1e6:.0f} MB, and job.max_mb is {max_bytes / 1e6:g}"
        raise ConfigError(
            f"job.project: {place} holds {excess}. Leave out build results, or raise job.max_mb."
        )
    source, found = "folder" if place.is_dir() else "archive", projects.digest_of(place, git=git)
    return _project(source, str(place), found).model_copy(update={"git": git})


def write_task(project: Project, folder: Path) -> None:
    """Write the task of a project, without a truth, to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    content = yaml.safe_dump(project.model_dump(mode="json", exclude_defaults=True), sort_keys=False)
    write_atomically(folder / TASK, content.encode())


def _project(source: str, package: str, digest: str, version: str = "") -> Project:
    fetched = {"source": source, "package": package, "version": version, "digest": digest}
    return Project.model_validate({**fetched, "license": _UNKNOWN_LICENSE, "language": "unknown"})


def _place(given: str) -> Path:
    return Path(given).expanduser().absolute()
