"""Fetch packages by version and digest, such as the reference tools of CLI-Tool-Bench and the wheels of its images.

uv, npm, go and apt fetch each of them once, into a cache; afterwards nothing needs a network. A reference is a folder
that installs under the name that the *task* gives to the tool:

    <cache>/sources/<identity>/          Task.solution, which `oracle` applies
    ├── solve.sh                         copies `source` into the workspace
    └── source/                          workspace that installs the reference
    <cache>/images/<language>-<digest>/  build context: images/<language>, and the wheels that its lock names
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import model_validator

from runner.archives import unpack
from runner.benchmarks.sources import packages
from runner.benchmarks.sources.clients import (
    GO,
    WHEELS,
    check_digest,
    debian_source,
    file_digest,
    install_wheels,
    npm_package,
    run_client,
)
from runner.benchmarks.sources.task_files import copy_tree, digest, short, tree_digest
from runner.errors import ConfigError, TaskError
from runner.records import Record

SOLVE = "#!/bin/bash\ncp -r /solution/source/. .\n"


class Reference(Record):
    """Table `[reference]` of a task: where the human-written tool comes from."""

    source: Literal["pypi", "npm", "go", "debian", "archive", "folder"]
    """Kind of source. go: a module, from the proxy that GOPROXY names. debian: a source package that is a Go module
    without requirements. archive: a tar file, as `git archive` makes it. folder: a plain folder. The last two lie in
    the task's folder, and must install the tool under the task's name."""
    package: str
    """Name of the package. debian: path of its tar file, `pool/...`. archive, folder: name in the task's folder."""
    version: str = ""
    digest: str
    """pypi: `sha256:` of the wheel. npm: its integrity, `sha512-`. go: `h1:`, as in a `go.sum`. debian, archive:
    `sha256:` of the file. folder: `sha256:` of its tree."""
    license: str
    """SPDX identifier for what is fetched. None of it is in this repository."""
    requires: tuple[str, ...] = ()
    """pypi: requirements, as `name==version --hash=sha256:..`. They become part of the source."""
    entry: str = ""
    """pypi: `module:function`. npm: path of the script. go, debian: folder of the command; empty: the module's own."""
    lines: int
    """Lines of code, without requirements. They decide the task's tier."""
    files: int | None = None
    """Number of files in the published package, without metadata and requirements; None if nobody has counted."""
    depth: int | None = None
    """Number of folders above the deepest of those files; None if nobody has counted."""

    @model_validator(mode="after")
    def _check_texts(self) -> Self:
        """Refuse texts that a package client would take for an option, or paths that leave the task's folder."""
        check_package, check_version = packages.CHECKS.get(
            self.source, (packages.inner_path, packages.any_text)
        )
        check_package(self.package)
        check_version(self.version)
        packages.check_all(packages.pin, self.requires)
        entry = packages.python_entry if self.source == "pypi" else packages.inner_path
        packages.check_all(entry, [self.entry] if self.entry else [])
        return self

    @property
    def packages(self) -> dict[str, tuple[str, ...]]:
        """Names of the packages that make up the reference, by registry; empty for a folder or an archive."""
        if self.source in ("archive", "folder"):
            return {}
        name = self.package if self.source != "debian" else self.package.rpartition("/")[0].rpartition("/")[2]
        return {self.source: (name, *(re.split(r"[^\w.-]", text)[0] for text in self.requires))}

    @property
    def size(self) -> dict[str, float]:
        """Known measures of the reference, by their columns in the trials table."""
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
    return digest(
        [reference.model_dump(mode="json", exclude={"lines", "files", "depth", "license"}), tool, SOLVE]
    )


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
    """Fetch a reference's source if it is missing. `client` returns the context of a language, which holds its client.

    Raises `FetchError` if a client fails or something has another digest, other `ConfigError` for an unsuitable
    package, and `TaskError` if a Go module already has something with the tool's name.
    """
    with new_folder(solution(reference, tool, cache), f"reference {reference.package}", say) as place:
        if place:
            source = place / "source"
            if reference.source == "pypi":
                _from_pypi(reference, tool, source)
            elif reference.source == "npm":
                _from_npm(reference, tool, source, client("javascript"))
            elif reference.source == "go":
                _from_go(reference, source, client("go"))
                _rename_command(tool, reference.entry, source)
            elif reference.source == "debian":
                debian_source(reference.package, reference.digest, source, say)
                _rename_command(tool, reference.entry, source)
            else:
                _from_task(reference, task, source)
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


def _from_pypi(reference: Reference, tool: str, into: Path) -> None:
    """Make a project, under the tool's name, from the wheel's modules and those of its requirements."""
    code = into / "src"
    pinned = f"{reference.package}=={reference.version} --hash={reference.digest}"
    install_wheels([pinned, *reference.requires], code)
    for leftover in [*code.glob("*.dist-info"), code / "bin"]:
        shutil.rmtree(leftover, ignore_errors=True)
    (code / ".lock").unlink(missing_ok=True)
    modules = [path.stem for path in sorted(code.glob("*.py"))]
    folders = sorted({".".join(path.parent.relative_to(code).parts) for path in code.rglob("*/*.py")})
    (into / "pyproject.toml").write_text(
        f"""[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = {json.dumps(tool)}
version = {json.dumps(reference.version)}

[project.scripts]
{tool} = {json.dumps(reference.entry)}

[tool.setuptools]
package-dir = {{ "" = "src" }}
py-modules = {json.dumps(modules)}
packages = {json.dumps(folders)}

[tool.setuptools.package-data]
"*" = ["*"]
"""
    )


def _from_npm(reference: Reference, tool: str, into: Path, javascript: Path) -> None:
    """Unpack a package without dependencies, and give its command the tool's name. Its scripts are dropped."""
    npm_package(reference.package, reference.version, reference.digest, javascript, into)
    about = _package_json(into)
    if about.get("dependencies"):
        raise ConfigError(
            f"reference {reference.package}: it needs other packages, which npm sources cannot here."
        )
    keys = ("version", "type", "main", "module", "exports", "license")
    described = {
        "name": tool,
        **{key: about[key] for key in keys if key in about},
        "bin": {tool: reference.entry},
    }
    (into / "package.json").write_text(json.dumps(described, indent=2))


def _package_json(package: Path) -> dict[str, Any]:
    try:
        about = json.loads((package / "package.json").read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"The npm package has no package.json that can be read: {error}.") from error
    if not isinstance(about, dict):
        raise ConfigError("The npm package's package.json is not an object.")
    return about


def _from_go(reference: Reference, into: Path, golang: Path) -> None:
    """Fetch a module, with its requirements as its own `go.sum` pins them."""
    go = str(golang / GO)
    with tempfile.TemporaryDirectory() as folder:
        # The task has the module's digest, and the module those of its requirements: no checksum database is needed.
        # Version control clients such as git are off, since they run what a repository names.
        off = {"GOSUMDB": "off", "GOWORK": "off", "GOTOOLCHAIN": "local", "GOVCS": "*:off"}
        env = {"GOMODCACHE": folder, "GOFLAGS": "-modcacherw", **off}
        wanted = f"{packages.go_module(reference.package)}@{packages.go_version(reference.version)}"
        module = json.loads(run_client([go, "mod", "download", "-json", "--", wanted], folder, env))
        check_digest(module["Sum"], reference.digest, reference.package)
        shutil.copytree(module["Dir"], into)
        _check_replacements(json.loads(run_client([go, "mod", "edit", "-json"], str(into), env)))
        run_client([go, "mod", "vendor"], str(into), env)


def _check_replacements(module: dict[str, Any]) -> None:
    """Raise `ConfigError` for a module that would vendor folders of this machine."""
    for replacement in module.get("Replace") or ():
        if not replacement["New"].get("Version"):
            raise ConfigError(
                f"The module replaces {replacement['Old']['Path']} by a folder, which it cannot here."
            )


def _rename_command(tool: str, entry: str, source: Path) -> None:
    """Rename the folder of a Go command to the tool's name, which its binary then has. No package can import a command.

    Raises `TaskError` if the module has another folder of that name.
    """
    place = (source / entry).with_name(tool) if entry else source / tool
    if place.exists() and place != source / entry:
        raise TaskError(
            f"The module has a {tool} of its own beside its command: give the task's tool another name."
        )
    if entry:
        (source / entry).rename(place)
        return
    place.mkdir()
    for file in source.glob("*.go"):
        file.rename(place / file.name)


def _from_task(reference: Reference, task: Path, into: Path) -> None:
    place = task / reference.package
    if not place.resolve().is_relative_to(task.resolve()):
        raise TaskError(f"reference {reference.package}: it is a link that leaves the task's folder.")
    if reference.source == "folder":
        check_digest(tree_digest(place), reference.digest, reference.package)
        copy_tree(place, into)
        return
    check_digest(file_digest(place), reference.digest, reference.package)
    unpack(place, into)
