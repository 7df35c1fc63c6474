"""Fetch the hidden tests of NL2Repo tasks: from the published image, a pinned archive, a git clone, or a folder.

Sources are fetched once into a cache and checked by digest. They are never part of an agent's sandbox:

    <cache>/upstream/<identity>/source/      as upstream publishes it
    <cache>/oracle/<identity>/               Task.solution: solve.sh, and the source without the hidden tests
    <cache>/suites/<digest>/                 what `runner.benchmarks.nl2repo.suite` describes
    <cache>/nl2repo_images/<digest>/         build context of the image in which a task is done and judged
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from runner.archives import unpack
from runner.benchmarks.nl2repo.suite import HIDDEN, SUITE, Suite, covered, packaging
from runner.benchmarks.sources import borrowed, packages
from runner.benchmarks.sources.checkouts import archive
from runner.benchmarks.sources.clients import check_digest, debian_source, file_digest, install_wheels
from runner.benchmarks.sources.references import SOLVE, new_folder
from runner.benchmarks.sources.registry_pypi import named
from runner.benchmarks.sources.sdists import install_modules, sdist_source
from runner.benchmarks.sources.task_files import copy_tree, digest, short, tree_digest
from runner.errors import ConfigError, TaskError
from runner.records import Record

VENDORED = frozenset(["_vendor", "_vendored", "vendor", "vendored"])
"""Names of folders in which libraries keep copies of others' code."""
PYTHON = "3.13"
"""Version of Python in `dataset.image`."""
DOCUMENTS = ("README*", "LICEN[CS]E*", "COPYING*", "CHANGE*", "HISTORY*", "NEWS*", "AUTHORS*", "PKG-INFO")
"""Names of files at the top of upstream's folder that packaging may read and that do not describe the code (section
3.1.3)."""


class Source(Record):
    """Content of a task's `source.yaml`."""

    kind: Literal["sdist", "debian", "git", "folder", "none"]
    """Kind of source. none: only `image` has the tests; without upstream code to check them, the task is flagged."""
    package: str = ""
    """sdist: name on the package index. debian: path of upstream's tar file in the pool, `pool/..`. git: name of the
    clone's folder in `dataset.checkouts`. folder: path from this file."""
    version: str = ""
    """git: the commit."""
    digest: str = ""
    """sdist, debian: `sha256:` of the file. git: `sha256:` of the commit's tar file. folder: `sha256:` of its tree."""
    count: Literal["published", "truth"] = "published"
    """Number of tests that a score is over. published: the authors' number, and upstream must pass as many here. truth:
    the tests that upstream passes here; the task is flagged if that is another number."""
    license: str = ""
    """SPDX expression for what is fetched, which is not part of this repository."""
    uploaded: str = Field(default="", pattern=r"(\d{4}-\d\d-\d\d)?")
    """Day of the release's upload, YYYY-MM-DD, if the package index says it."""
    image: str | None = None
    """The authors' image of the task, `NAME@sha256:..`, or `sha256:..` of a local one. Its working directory then
    provides packaging files and tests."""
    packages: tuple[str, ...] = ()
    """Requirements of library and tests, as `name==version --hash=..`. The agent's image has them, too."""
    sdists: tuple[str, ...] = ()
    """More such requirements, which have no wheel. Their modules are taken from their sdists; nothing is built."""
    withheld: tuple[str, ...] = ()
    """Top-level names that our own tools would install although the agent has to write them."""
    plugins: tuple[str, ...] = ()
    """Modules of pytest plugins among the packages."""
    env: dict[str, str] = {}
    command_seconds: float = Field(default=600.0, gt=0)
    python: str = Field(default=PYTHON, pattern=r"3\.\d+")
    """Version of Python in the task's image: the usual one, or one of `dataset.pythons`."""
    python_reason: str = ""
    """Reason for another version of Python than the usual one."""
    moved: dict[str, str] = {}
    """Path in the authors' layout -> path in the archive, for tests that the authors put elsewhere."""
    lines: int | None = None
    """Lines of upstream's code without tests, which give the tier (Table 2)."""
    category: str = "unknown"
    """One of the paper's nine categories (Table 1). The authors do not publish it; the choice is ours."""

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.kind == "none" and not self.image:
            raise ValueError("kind=none needs an image, or there are no tests at all")
        if self.image and not re.fullmatch(r"(\S+@)?sha256:[0-9a-f]{64}", self.image):
            raise ValueError(
                "image must be pinned by its digest, NAME@sha256:..: a tag may become another image"
            )
        if self.kind != "none" and not (self.package and self.digest):
            raise ValueError(f"kind={self.kind} needs a package and a digest")
        if (self.python != PYTHON) != bool(self.python_reason):
            raise ValueError(f"a python other than {PYTHON} needs a python_reason, and {PYTHON} has none")
        return self

    @model_validator(mode="after")
    def _names_are_safe(self) -> Self:
        if self.kind == "sdist":
            packages.python_name(self.package)
            packages.python_version(self.version)
        if self.kind == "debian":
            packages.debian_file(self.package)
        if self.kind == "git" and not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", self.version):
            raise ValueError("kind=git needs the whole id of a commit as its version")
        if self.kind == "git":
            packages.published_name(self.package)
        packages.check_all(packages.pin, [*self.packages, *self.sdists])
        packages.check_all(packages.python_module, [*self.withheld, *self.plugins])
        for path in (*self.moved, *self.moved.values()):
            if path.startswith("/") or not {*Path(path).parts}.isdisjoint([".."]) or not Path(path).parts:
                raise ValueError(f"moved: {path!r} is not a path inside the archive")
        return self

    @property
    def shaping(self) -> dict[str, object]:
        """Fields that can change a result, except those with their default value. `count` changes the suite's count."""
        beside = {"license", "lines", "category", "count", "uploaded", "python_reason"}
        return self.model_dump(mode="json", exclude=beside, exclude_defaults=True)


def upstream(source: Source, cache: Path) -> Path:
    """Return the folder of upstream's source, whether or not it has been fetched. Pure."""
    moved = [source.moved] if source.moved else []
    identity = digest([source.kind, source.package, source.version, source.digest, *moved])
    return cache / "upstream" / short(identity)


def fetch_upstream(
    source: Source, here: Path, cache: Path, say: Callable[[str], None], checkouts: Path | None = None
) -> Path:
    """Fetch upstream's source unless it is cached; return its folder.

    `here` is the folder of `source.yaml`, and `checkouts` the user's folder of git clones. Raises `ConfigError` when a
    client fails, the clone is missing, or the digest differs.
    """
    target = upstream(source, cache)
    with new_folder(target, f"upstream {source.package} {source.version}".rstrip(), say) as place:
        if place and source.kind == "sdist":
            sdist_source(source.package, source.version, source.digest, place / "source")
        elif place and source.kind == "debian":
            debian_source(source.package, source.digest, place / "source", say)
        elif place and source.kind == "git":
            unpack_commit(_clone(source, checkouts), source.version, source.digest, place / "source")
        elif place:
            check_digest(tree_digest(here / source.package), source.digest, source.package)
            copy_tree(here / source.package, place / "source")
        if place:
            move_tests(source, place / "source")
    return target / "source"


def move_tests(source: Source, root: Path) -> None:
    """Move tests of an unpacked archive to where the authors put them. Raises `ConfigError` if they are not there."""
    for wanted, path in source.moved.items():
        origin, target = root / path, root / wanted
        inside = all(each.resolve().is_relative_to(root.resolve()) for each in (origin, target))
        if not inside or not origin.exists() or target.exists():
            raise ConfigError(f"moved: {path} of {source.package} {source.version} cannot become {wanted}.")
        target.parent.mkdir(parents=True, exist_ok=True)
        origin.rename(target)


def unpack_commit(clone: Path, commit: str, wanted: str, into: Path) -> str:
    """Unpack a commit of a clone, and return the digest of its tar file. No filter or hook of the clone runs.

    Raises `ConfigError` if git fails, or if the digest is not the wanted one; an empty one is not compared.
    """
    with tempfile.TemporaryDirectory() as folder:
        packed = Path(folder, "commit.tar")
        try:
            archive(clone, commit, packed)
        except TaskError as error:
            raise ConfigError(str(error)) from error
        found = file_digest(packed)
        check_digest(found, wanted or found, f"commit {commit} of {clone.name}")
        unpack(packed, into)
    return found


def _clone(source: Source, checkouts: Path | None) -> Path:
    clone = (checkouts or Path()) / source.package
    if checkouts is None or not clone.is_dir():
        raise ConfigError(
            f"Commit {source.version[:12]} of {source.package} is needed: clone it into a folder, and name that folder "
            "with dataset.checkouts=DIR."
        )
    return clone


def write_oracle(source: Path, deleted: tuple[str, ...], into: Path) -> None:
    """Write the solution that `oracle` applies, upstream's source without the hidden tests, and a list of what in it is
    others' code (`Answer.borrowed`).
    """
    shutil.copytree(source, into / "source", symlinks=True)
    for path in _files(into / "source"):
        if covered(path, deleted):
            (into / "source" / path).unlink()
    (into / "solve.sh").write_text(SOLVE)
    borrowed.write(vendored(into / "source"), into / borrowed.FILE)


def vendored(source: Path) -> list[str]:
    """Return the files of upstream's source that are copies of others' code, by the names of their folders."""
    return [path for path in _files(source) if VENDORED.intersection(Path(path).parts[:-1])]


def write_suite(suite: Suite, source: Path | None, into: Path) -> None:
    """Write the suite for the verifier. Without a source, its files are in the image."""
    (into / SUITE).write_text(suite.model_dump_json(indent=1))
    (into / HIDDEN).mkdir()
    if source is None:
        return
    for path in hidden(_files(source), suite.deleted):
        target = into / HIDDEN / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / path, target)


def tests_of(source: Path, deleted: tuple[str, ...]) -> dict[str, Path]:
    """Return relative path -> file of upstream's tests."""
    return {path: source / path for path in _files(source) if covered(path, deleted)}


def hidden(paths: Iterable[str], deleted: tuple[str, ...]) -> list[str]:
    """Return the paths that are laid over a workspace: tests, packaging files, and files that packaging reads."""
    return [
        path
        for path in paths
        if covered(path, deleted)
        or packaging(path)
        or ("/" not in path and any(fnmatchcase(path, glob) for glob in DOCUMENTS))
    ]


def _files(folder: Path) -> list[str]:
    return [
        path.relative_to(folder).as_posix()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    ]


def _install_plugins(source: Source, images: Path, into: Path) -> None:
    """Install plugins, with all that they require, beside the judge's pytest, which imports nothing from elsewhere."""
    pinned = source.packages
    judge = {named(line) for line in packages.lines_of((images / "judge.lock").read_text())}
    with tempfile.TemporaryDirectory() as folder:
        lines = [line for line in pinned if named(line) not in judge]
        install_wheels(lines, Path(folder), source.python)
        for path in Path(folder).iterdir():
            target = into / "judge" / path.name
            if path.is_dir() and not target.exists():
                shutil.copytree(path, target, symlinks=True)
            elif not target.exists():
                shutil.copy(path, target)


def write_context(images: Path, source: Source, workspace: dict[str, Path], into: Path) -> None:
    """Write the build context of a task's image: our files, locked packages, the source's packages, the workspace."""
    shutil.copytree(images, into, dirs_exist_ok=True)
    for name in ("judge", "tools"):
        lines = packages.lines_of((images / f"{name}.lock").read_text())
        install_wheels(lines, into / name, source.python)
    for name in map(packages.python_module, source.withheld):
        for path in (into / "tools").glob(f"{name}*"):
            shutil.rmtree(path)
    (into / "packages").mkdir()
    if source.packages:
        install_wheels(source.packages, into / "packages", source.python)
    for line in source.sdists:
        install_modules(line, into / "packages")
    if source.plugins:
        _install_plugins(source, images, into)
    for name, origin in workspace.items():
        target = into / "workspace" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(origin, target)
