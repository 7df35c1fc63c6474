"""Fetch packages by version and digest, such as the reference tools of CLI-Tool-Bench and the wheels of its images.

uv, npm, go and apt fetch each of them once, into a cache; afterwards nothing needs a network. A reference is a folder
that installs under the name that the *task* gives to the tool:

    <cache>/sources/<identity>/          Task.solution, which `oracle` applies
    ├── solve.sh                         copies `source` into the workspace
    ├── borrowed.txt                     files of `source` that belong to requirements, if there are any
    └── source/                          workspace that installs the reference
    <cache>/images/<language>-<digest>/  build context: images/<language>, and the wheels that its lock names
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, Self

from pydantic import model_validator

from runner.archives import unpack
from runner.benchmarks.sources import borrowed, packages
from runner.benchmarks.sources.clients import (
    WHEELS,
    check_digest,
    debian_packages,
    debian_source,
    file_digest,
    install_wheels,
    npm_package,
)
from runner.benchmarks.sources.go_modules import (
    fetch_module,
    module_path,
    needs_libraries,
    rename_command,
    vendor,
    vendor_required,
)
from runner.benchmarks.sources.node_modules import give_name, place_packages
from runner.benchmarks.sources.python_projects import SRC, place_modules, write_project
from runner.benchmarks.sources.renaming import rename
from runner.benchmarks.sources.task_files import copy_tree, digest, short, tree_digest
from runner.errors import TaskError
from runner.records import Record

SOLVE = "#!/bin/bash\ncp -r /solution/source/. .\n"
CHECKOUT = "reference.tar"
"""Name of the file in a task's folder that holds the own files of a checkout."""


class Reference(Record):
    """Table `[reference]` of a task: the source of the human-written tool."""

    source: Literal["pypi", "npm", "go", "debian", "checkout", "archive", "folder"]
    """Kind of source. go: a module, from the proxy that GOPROXY names. debian: a source package that is a Go module
    in Go. checkout: a project's own files, in `CHECKOUT` in the task's folder. archive: a tar file, as `git archive`
    makes it. folder: a plain folder. The last two lie in the task's folder, too, and must install the tool under the
    task's name."""
    registry: Literal["", "pypi", "npm", "go"] = ""
    """checkout: registry of the packages that it requires. `requires` and `entry` are written as for that registry."""
    package: str
    """Name of the package. debian: path of its tar file, `pool/...`. archive, folder: name in the task's folder."""
    version: str = ""
    digest: str
    """pypi: `sha256:` of the wheel. npm: its integrity, `sha512-`. go: `h1:`, as in a `go.sum`. debian, checkout,
    archive: `sha256:` of the file. folder: `sha256:` of its tree."""
    license: str
    """SPDX identifier for what is fetched, or for the own files of a checkout. What is fetched is not in this
    repository."""
    requires: tuple[str, ...] = ()
    """Everything that the package requires, directly or indirectly. It becomes part of the source.

    pypi: `NAME==VERSION --hash=sha256:..`. npm: `PATH@VERSION sha512-..`, where PATH is the place in the package's
    folder, such as `node_modules/a/node_modules/@s/b` (`PATH=NAME@VERSION sha512-..` for an alias). debian: binary
    packages with source in Go, as `pool/../NAME_VERSION_all.deb --hash=sha256:..`. archive: the wheels that it holds,
    which may be none, as pypi.
    """
    entry: str = ""
    """pypi: `module:function`. npm: path of the script. go, debian: folder of the command; empty: the module's own."""
    renamed: tuple[str, ...] = ()
    """Paths or globs of the reference's own files in which the task's name replaces `names`. They are relative to the
    folder that installs the reference: Python modules lie in its `src/`."""
    names: tuple[str, ...] = ()
    """Published names of the tool, which the reference shows in its help pages and messages."""
    lines: int
    """Number of lines of code, without requirements. It decides the task's tier."""
    files: int | None = None
    """Number of files in the published package, without metadata and requirements; None if unknown."""
    depth: int | None = None
    """Number of folders above the deepest of those files; None if unknown."""

    @model_validator(mode="after")
    def _check_texts(self) -> Self:
        """Refuse texts that a package client would take for an option, or paths that leave the task's folder."""
        if (self.source == "checkout") != bool(self.registry):
            raise ValueError("`registry` is for a checkout, which needs one")
        check_package, check_version = packages.CHECKS.get(
            self.source, (packages.inner_path, packages.any_text)
        )
        check_package(self.package)
        check_version(self.version)
        kind = self.registry or self.source
        check_line, _ = packages.REQUIREMENTS.get(kind, packages.REQUIREMENTS["pypi"])
        packages.check_all(check_line, self.requires)
        packages.check_all(packages.inner_path, self.renamed)
        packages.check_all(packages.published_name, self.names)
        if bool(self.renamed) != bool(self.names):
            raise ValueError("`renamed` says where `names` are replaced: give both, or neither")
        entry = packages.python_entry if kind == "pypi" else packages.inner_path
        packages.check_all(entry, [self.entry] if self.entry else [])
        return self

    @property
    def packages(self) -> dict[str, tuple[str, ...]]:
        """Registry -> names of the tool's own package, without its requirements, which no task asks for.

        Of an archive, all wheels in it, as nothing tells which of them is the tool's own.
        """
        if self.source in ("archive", "folder"):
            _, name_of = packages.REQUIREMENTS["pypi"]
            return {"pypi": tuple(map(name_of, self.requires))} if self.requires else {}
        name = self.package if self.source != "debian" else self.package.rpartition("/")[0].rpartition("/")[2]
        return {self.registry or self.source: (name,)}

    @property
    def size(self) -> dict[str, float]:
        """Known measures of the reference, keyed by their columns in the trials table."""
        known = {
            "reference_lines": self.lines,
            "reference_files": self.files,
            "reference_depth": self.depth,
        }
        return {name: float(value) for name, value in known.items() if value is not None}


def solution(reference: Reference, tool: str, cache: Path) -> Path:
    """Return the folder of a tool's reference, whether or not it has been fetched."""
    return cache / "sources" / short(identity(reference, tool))


def identity(reference: Reference, tool: str) -> str:
    """Return a digest of everything that shapes a reference's source."""
    # References that rename nothing keep the identity, and their tasks the keys, that they had before these fields.
    empty = {name for name in ("renamed", "names", "registry") if not getattr(reference, name)}
    shaping = reference.model_dump(mode="json", exclude={"lines", "files", "depth", "license", *empty})
    return digest([shaping, tool, SOLVE])


def context(images: Path, language: str, cache: Path) -> Path:
    """Return the build context of a language's image, whether or not it has been made."""
    return cache / "images" / f"{language}-{short(tree_digest(images / language))}"


def fetch_context(images: Path, language: str, cache: Path, say: Callable[[str], None]) -> Path:
    """Make the build context of a language's image. Raises `FetchError` with the message of a client that failed."""
    with new_folder(context(images, language, cache), f"the image of {language} tools", say) as place:
        if place:
            shutil.copytree(images / language, place, dirs_exist_ok=True)
            install_wheels(packages.lines_of((place / "wheels.lock").read_text()), place / WHEELS)
    return context(images, language, cache)


def fetch(
    reference: Reference,
    tool: str,
    task: Path,
    client: Callable[[str], Path],
    say: Callable[[str], None],
    cache: Path,
) -> None:
    """Fetch a reference's source if it is missing. `client` returns the build context that holds a language's client.

    Raises `FetchError` if a client fails or something has another digest, other `ConfigError` for an unsuitable
    package, and `TaskError` if a Go module already has something with the tool's name.
    """
    with new_folder(solution(reference, tool, cache), f"reference {reference.package}", say) as place:
        if place:
            source, others = place / "source", list[str]()
            if reference.source == "pypi":
                others = _from_pypi(reference, tool, source)
            elif reference.source == "npm":
                others = _from_npm(reference, tool, source, client("javascript"))
            elif reference.source == "go":
                others = _from_go(reference, source, client("go"))
                rename_command(tool, reference.entry, source)
            elif reference.source == "debian":
                others = _from_debian(reference, source, client, say)
                rename_command(tool, reference.entry, source)
            elif reference.source == "checkout":
                others = _from_checkout(reference, tool, task, source, client)
            else:
                _from_task(reference, task, source)
            rename(reference.names, tool, reference.renamed, source)
            borrowed.write(others, place / borrowed.FILE)
            (place / "solve.sh").write_text(SOLVE)


@contextmanager
def new_folder(target: Path, what: str, say: Callable[[str], None]) -> Iterator[Path | None]:
    """Yield an empty folder that becomes `target` at the end of the block, or None if `target` exists."""
    if target.is_dir():
        yield None
        return
    say(f"Fetching {what}")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".making-") as folder:
        place = Path(folder, "new")
        place.mkdir()
        yield place
        try:
            place.rename(target)
        except OSError:  # another process may have made it first
            if not target.is_dir():
                raise


def _from_pypi(reference: Reference, tool: str, into: Path) -> list[str]:
    """Make a project, under the tool's name, from the wheel's modules and those of its requirements.

    Like the other functions below, it returns the paths of files that belong to requirements.
    """
    code = into / SRC
    pinned = f"{reference.package}=={reference.version} --hash={reference.digest}"
    _install([pinned, *reference.requires], code)
    write_project(tool, reference.version, reference.entry, into)
    return _of_other_wheels(pinned, code, into) if reference.requires else []


def _of_other_wheels(own: str, code: Path, source: Path) -> list[str]:
    """Return the files below `code` that the wheel of this pin does not bring, when it is installed alone.

    A folder that both bring counts as the wheel's own. The lists of files in wheels are not used, since they may be
    false.
    """
    with tempfile.TemporaryDirectory() as folder:
        alone = Path(folder, "alone")
        install_wheels([own], alone)
        names = {path.name for path in code.iterdir()} - {path.name for path in alone.iterdir()}
        places = [(code / name).relative_to(source).as_posix() for name in names]
        return borrowed.others(source, places, borrowed.contents(alone))


def _from_npm(reference: Reference, tool: str, into: Path, javascript: Path) -> list[str]:
    """Unpack a package and what it requires, and give its command the tool's name. No scripts run."""
    npm_package(reference.package, reference.version, reference.digest, javascript, into)
    return _complete_npm(reference, tool, into, javascript)


def _complete_npm(reference: Reference, tool: str, into: Path, javascript: Path) -> list[str]:
    """Add to a package what it requires, and give its command the tool's name."""
    own = borrowed.contents(into)
    placed = [packages.npm_placed(line) for line in reference.requires]
    place_packages(placed, javascript, into)
    give_name(tool, reference.entry, placed, into)
    # Another version of the package, under whatever alias, is its own code too.
    mine = [line.path for line in placed if line.name == reference.package]
    files = borrowed.others(into, [line.path for line in placed if line.path not in mine], own)
    return [file for file in files if not any(file.startswith(f"{path}/") for path in mine)]


def _from_go(reference: Reference, into: Path, golang: Path) -> list[str]:
    """Fetch a Go module, and vendor what it requires."""
    fetch_module(reference.package, reference.version, reference.digest, golang, into)
    own = borrowed.contents(into, ["vendor"])
    return borrowed.others(into, borrowed.vendored(into, reference.package), own)


def _from_debian(
    reference: Reference, into: Path, client: Callable[[str], Path], say: Callable[[str], None]
) -> list[str]:
    """Unpack a Go module, and vendor what it requires from Debian's packages. Debian's patches are not applied."""
    debian_source(reference.package, reference.digest, into, say)
    if not reference.requires and not needs_libraries(into):
        return []  # a `vendor` that the source brings itself counts as its own
    with tempfile.TemporaryDirectory() as folder:
        pinned = [packages.deb(line) for line in reference.requires]
        debs = debian_packages(pinned, Path(folder), say)
        return vendor_others(debs, reference.entry, into, client("go"))


def vendor_others(debs: Sequence[Path], entry: str, source: Path, golang: Path) -> list[str]:
    """Vendor what a Go module requires from packages of Debian, and return the paths of files that are not its own."""
    # Taken before: code of its own that is imported through a package's link is vendored, and removed from its place.
    own = borrowed.contents(source, ["vendor"])
    vendor(debs, entry, source, golang)
    return borrowed.others(source, borrowed.vendored(source, module_path(source)), own)


def _from_checkout(
    reference: Reference, tool: str, task: Path, into: Path, client: Callable[[str], Path]
) -> list[str]:
    """Make a checkout installable under the tool's name, with what it requires."""
    if reference.registry == "pypi":
        with tempfile.TemporaryDirectory() as folder:
            _from_task(reference, task, Path(folder, "own"))
            return _python_checkout(reference, tool, Path(folder, "own"), into)
    _from_task(reference, task, into)
    if reference.registry == "npm":
        return _complete_npm(reference, tool, into, client("javascript"))
    own = borrowed.contents(into, ["vendor"])
    vendor_required(client("go"), into)
    others = borrowed.others(into, borrowed.vendored(into, reference.package), own)
    rename_command(tool, reference.entry, into)
    return others


def _python_checkout(reference: Reference, tool: str, checkout: Path, into: Path) -> list[str]:
    """Make a project of a checkout's modules and its requirements. Where both have a file, the checkout's counts."""
    code = into / SRC
    code.mkdir(parents=True)
    _install(reference.requires, code)
    brought = {path.name for path in code.iterdir()}
    own = place_modules(checkout, reference.entry, code)
    write_project(tool, reference.version, reference.entry, into, ("*", "**/*"))
    places = [f"{SRC}/{name}" for name in brought.difference(own)]
    return borrowed.others(into, places, set().union(*(borrowed.contents(code / name) for name in own)))


def _install(pins: Sequence[str], code: Path) -> None:
    """Install wheels as plain folders of modules, without metadata and commands."""
    if pins:
        install_wheels(pins, code)
    for leftover in [*code.glob("*.dist-info"), code / "bin"]:
        shutil.rmtree(leftover, ignore_errors=True)
    (code / ".lock").unlink(missing_ok=True)


def _from_task(reference: Reference, task: Path, into: Path) -> None:
    name = CHECKOUT if reference.source == "checkout" else reference.package
    place = task / name
    if not place.resolve().is_relative_to(task.resolve()):
        raise TaskError(f"reference {name}: it is a link that leaves the task's folder.")
    if reference.source == "folder":
        check_digest(tree_digest(place), reference.digest, name)
        copy_tree(place, into)
        return
    if not place.is_file():
        raise TaskError(f"reference {name}: the task's folder has no such file.")
    check_digest(file_digest(place), reference.digest, name)
    unpack(place, into)
