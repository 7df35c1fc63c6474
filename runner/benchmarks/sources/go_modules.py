"""Make a Go module installable without a network: rename its command, and vendor what it imports.

Debian has libraries in Go as folders of source without the records of versions that Go asks for. So the module gets
a `go.mod` and a `vendor/modules.txt` of our own, in which every library is required in the version that lies there. In
the mode that Go had before modules, which Debian's own builds use too, `go list` tells what the command imports.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from runner.archives import unpack
from runner.benchmarks.sources import packages
from runner.benchmarks.sources.clients import GO, check_digest, run_client
from runner.errors import ConfigError, TaskError

GOCODE = "usr/share/gocode/src/"
"""Folder of Go's source in Debian's packages, by import path."""
ARCHITECTURES = ("amd64", "arm64")
"""Machines for which a command can be installed from what is vendored."""
FILES = ("GoFiles", "SFiles", "HFiles", "EmbedFiles")
"""Fields in the output of `go list` that list the files of a package that a build without C reads."""
_AR, _AR_HEADER = b"!<arch>\n", 60
_DIRECTIVE = r"^[ \t]*{}[ \t]+\"?([^\s\"]+)"
_EMBED = re.compile(r"^//go:embed[ \t]+(.+)$", re.MULTILINE)
_MAJOR = re.compile(r"(?:/|^gopkg\.in/.*\.)v(\d+)$")


class _Library(NamedTuple):
    """One vendored module."""

    path: str
    go: str
    """Version of the language, `1.N`; empty if the module's go.mod does not state it, or there is none."""
    packages: tuple[str, ...]

    @property
    def version(self) -> str:
        """Lowest version that is valid for the path: Debian's packages do not say which version they have."""
        major = _MAJOR.search(self.path)
        return f"v{major[1]}.0.0" if major else "v0.0.0"


def fetch_module(module: str, version: str, wanted: str, golang: Path, into: Path) -> None:
    """Fetch a module, with its requirements as its own `go.sum` pins them, from the proxy that GOPROXY names."""
    with tempfile.TemporaryDirectory() as folder:
        found = download_module(module, version, golang, folder)
        check_digest(found["Sum"], wanted, module)
        shutil.copytree(found["Dir"], into)
        _vendor_required(golang, into, folder)


def vendor_required(golang: Path, source: Path) -> None:
    """Vendor what a module requires, as its own `go.sum` pins it, unless all of that lies in it already.

    Raises `ConfigError` if it needs a folder of this machine, and `FetchError` if something cannot be fetched.
    """
    if needs_libraries(source):
        with tempfile.TemporaryDirectory() as folder:
            _vendor_required(golang, source, folder)


def _vendor_required(golang: Path, source: Path, cache: str) -> None:
    check_replacements(read_module(golang, source))
    run_client([str(golang / GO), "mod", "vendor"], str(source), _fetching(cache))


def read_module(golang: Path, source: Path) -> dict[str, Any]:
    """Return the content of the `go.mod` in a folder. Raises `FetchError` if Go cannot read it."""
    with tempfile.TemporaryDirectory() as cache:
        text = run_client([str(golang / GO), "mod", "edit", "-json"], str(source), _fetching(cache))
    module: dict[str, Any] = json.loads(text)
    return module


def download_module(module: str, version: str, golang: Path, into: str) -> dict[str, Any]:
    """Fetch a module alone into Go's cache in the folder `into`; return its `Dir` and its digest, `Sum`."""
    wanted = f"{packages.go_module(module)}@{packages.go_version(version)}"
    command = [str(golang / GO), "mod", "download", "-json", "--", wanted]
    found: dict[str, Any] = json.loads(run_client(command, into, _fetching(into)))
    return found


def _fetching(cache: str) -> dict[str, str]:
    # The task has the module's digest, and the module those of its requirements: no checksum database is needed.
    # Version control clients such as git are off, since they run what a repository names.
    off = {"GOSUMDB": "off", "GOWORK": "off", "GOTOOLCHAIN": "local", "GOVCS": "*:off"}
    return {"GOMODCACHE": cache, "GOFLAGS": "-modcacherw", **off}


def rename_command(tool: str, entry: str, source: Path) -> None:
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
        for name in _embedded(file):
            _copy(source / name, place / name)
        file.rename(place / file.name)


def needs_libraries(source: Path) -> bool:
    """Return whether a module requires other modules that are not in its folder."""
    if (source / "vendor" / "modules.txt").is_file() or not (source / "go.mod").is_file():
        return False
    return re.search(r"^[ \t]*require\b", (source / "go.mod").read_text("utf-8"), re.MULTILINE) is not None


def vendor(debs: Sequence[Path], entry: str, source: Path, golang: Path) -> None:
    """Fill `vendor/` with everything that the command in the folder `entry` imports, from these Debian packages.

    Go files of the module that the command does not import are removed, since `go install ./...` would build them too.
    Raises `ConfigError` if something is missing, or cannot be built without C.
    """
    shutil.rmtree(source / "vendor", ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        sources = unpack_gocode(debs, Path(folder))
        imports = imported(source, entry, sources, golang)
        own = {path.relative_to(imports.home) for path in imports.own}
        for file in list(source.rglob("*.go")):
            if file.parent.relative_to(source) not in own and "testdata" not in file.parts:
                file.unlink()
        for path, package in imports.libraries.items():
            for name in package.files:
                _copy(package.folder / name, source / "vendor" / path / name)
        _write_modules(source, list(_libraries(imports.libraries, sources)))


class Package(NamedTuple):
    """Folder of a package, and names of the files in it that a build reads."""

    folder: Path
    files: tuple[str, ...]


class Imports(NamedTuple):
    """The packages of which a command is made."""

    home: Path
    """Copy of the module among the sources of libraries."""
    own: tuple[Path, ...]
    """Folders of the module's own packages, the command's first."""
    libraries: dict[str, Package]
    """Other packages, without those of Go itself, by the paths that import them."""


def imported(source: Path, entry: str, sources: Path, golang: Path) -> Imports:
    """Return the imports of a module's command. `sources` has libraries by import path, and gets a copy of the module.

    Raises `ConfigError` for an import that is missing or cannot be built.
    """
    module = module_path(source)
    home = sources / packages.inner_path(module)
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(source, home, symlinks=True, ignore=shutil.ignore_patterns("vendor"))
    known: dict[str, dict[str, Any]] = {}
    names: dict[str, set[str]] = {}
    for architecture in ARCHITECTURES:
        for found in _list_packages(home / entry, sources.parent, architecture, golang):
            if fault := found.get("Error") or (not found.get("Dir") and {"Err": "it is not there"}):
                raise ConfigError(f"{found['ImportPath']} cannot be vendored: {fault['Err'].strip()[:500]}.")
            if found.get("Standard"):
                continue
            files = {name for kind in FILES for name in found.get(kind) or ()}
            about = known.setdefault(found["ImportPath"], {"folder": Path(found["Dir"]), "files": set()})
            about["files"] |= files
            for written, meant in _imports(found):
                names.setdefault(meant, set()).add(written)
    own = [about["folder"] for about in known.values() if about["folder"].is_relative_to(home)]
    libraries = {
        written: Package(about["folder"], tuple(sorted(about["files"])))
        for meant, about in sorted(known.items())
        if not about["folder"].is_relative_to(home)
        for written in sorted(names.get(meant, ()))
    }
    return Imports(home, tuple(sorted(own, key=lambda path: path != home / entry)), libraries)


def module_path(source: Path) -> str:
    """Return the path of the module in a folder. Raises `ConfigError` if its go.mod does not say it."""
    path = _directive(source / "go.mod", "module")
    if not path:
        raise ConfigError("The source has no go.mod with its module's path, so Go cannot install it.")
    return path


def unpack_gocode(debs: Sequence[Path], into: Path) -> Path:
    """Unpack the Go source of Debian's packages into one tree, and return its folder. Raises `ConfigError`."""
    whole = into / "whole.tar"
    with tarfile.open(whole, "w") as all_of_them:
        for package in debs:
            with _gocode(package) as (members, found):
                for member in found:
                    all_of_them.addfile(member, members.extractfile(member) if member.isreg() else None)
    unpack(whole, into / "tree")
    (into / "tree" / GOCODE).mkdir(parents=True, exist_ok=True)
    return into / "tree" / GOCODE


def owners(debs: Sequence[Path]) -> dict[str, Path]:
    """Return path in the tree of `unpack_gocode` -> package with the link, or with the folder's files, at this path."""
    found = {}
    for package in debs:
        with _gocode(package) as (_, members):
            for member in members:
                place = PurePosixPath(member.name.removeprefix("./").removeprefix(GOCODE))
                if not member.isdir():
                    found[(place if member.issym() else place.parent).as_posix()] = package
    return found


@contextmanager
def _gocode(package: Path) -> Iterator[tuple[tarfile.TarFile, list[tarfile.TarInfo]]]:
    """Open a Debian package; yield its content, and the members of it that are Go source."""
    with tarfile.open(fileobj=io.BytesIO(_data_of(package))) as members:
        yield members, [member for member in members if member.name.removeprefix("./").startswith(GOCODE)]


def _data_of(package: Path) -> bytes:
    """Return the tar file with the content of a Debian package, which is an `ar` archive."""
    content = package.read_bytes()
    at = len(_AR)
    while content.startswith(_AR) and at + _AR_HEADER <= len(content):
        name, size = content[at : at + 16].decode("ascii", "replace"), content[at + 48 : at + 58].strip()
        at += _AR_HEADER
        if name.startswith("data.tar") and not name.startswith("data.tar.zst") and size.isdigit():
            return content[at : at + int(size)]
        at += int(size) + int(size) % 2 if size.isdigit() else len(content)
    raise ConfigError(f"{package.name} is not a Debian package with content packed by gzip or xz.")


def _list_packages(command: Path, gopath: Path, architecture: str, golang: Path) -> Iterator[dict[str, Any]]:
    """Yield the output of `go list` about a command and everything that it imports. Nothing is built."""
    with tempfile.TemporaryDirectory() as cache:
        target = {"GOOS": "linux", "GOARCH": architecture, "CGO_ENABLED": "0"}
        own = {"GOPATH": str(gopath), "GOCACHE": cache, "GOFLAGS": "", "GOENV": "off", "GOTOOLCHAIN": "local"}
        fields = ("ImportPath", "Dir", "Standard", "Imports", "ImportMap", "Error", *FILES)
        wanted = ["list", "-e", "-deps", f"-json={','.join(fields)}", "."]
        settings = {**target, **own, "GO111MODULE": "off"}
        text = run_client([str(golang / GO), *wanted], str(command), settings).strip()
    decoder = json.JSONDecoder()
    while text:
        found, end = decoder.raw_decode(text)
        yield found
        text = text[end:].strip()


def _imports(package: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each import of a package as it is written, and as it is meant.

    They differ for a folder without the `/v2` that its go.mod has.
    """
    written = {meant: text for text, meant in (package.get("ImportMap") or {}).items()}
    for meant in package.get("Imports") or ():
        yield written.get(meant, meant), meant


def _libraries(found: dict[str, Package], sources: Path) -> Iterator[_Library]:
    """Yield the modules of vendored packages. Without a go.mod, the topmost folder with Go files is one."""
    modules: dict[tuple[str, str], list[str]] = {}
    for path, package in found.items():
        above = [package.folder, *package.folder.parents]
        above = above[: above.index(sources)]
        described = [folder for folder in above if (folder / "go.mod").is_file()][:1]
        root = [*described, *(folder for folder in reversed(above) if [*folder.glob("*.go")])][0]
        inner = package.folder.relative_to(root).as_posix()
        name = path.removesuffix(f"/{inner}")
        modules.setdefault((name, _directive(root / "go.mod", "go")), []).append(path)
    for (name, go), inside in sorted(modules.items()):
        yield _Library(name, go, tuple(sorted(inside)))


def _write_modules(source: Path, libraries: Sequence[_Library]) -> None:
    """Write `go.mod` and `vendor/modules.txt`. Go compares the two, and asks for nothing else."""
    own = source / "go.mod"
    go = _directive(own, "go") or "1.16"  # as Go takes a go.mod that does not say it
    old = [int(part) for part in re.findall(r"\d+", go)[:2]] < [1, 14]
    lines = [
        f"module {module_path(source)}",
        "",
        f"go {'1.14' if old else go}",
        "",
    ]  # before that, no vendoring
    lines += [f"require {library.path} {library.version}" for library in libraries]
    own.write_text("\n".join(lines) + "\n")
    (source / "go.sum").unlink(missing_ok=True)
    if libraries:
        text = "".join(map(_described, libraries))
        (source / "vendor" / "modules.txt").write_text(text)


def _described(library: _Library) -> str:
    """Return the lines of `modules.txt` for a module."""
    language = f"; go {library.go}" if library.go else ""
    head = f"# {library.path} {library.version}\n## explicit{language}\n"
    return head + "".join(f"{path}\n" for path in library.packages)


def _directive(file: Path, name: str) -> str:
    """Return the value of a line such as `go 1.21` of a go.mod; empty if there is none."""
    text = file.read_text("utf-8", "replace") if file.is_file() else ""
    found = re.search(_DIRECTIVE.format(name), text, re.MULTILINE)
    return found[1] if found else ""


def _embedded(file: Path) -> Iterator[Path]:
    """Yield the files and folders that a Go file embeds, relative to its folder."""
    for line in _EMBED.findall(file.read_text("utf-8", "replace")):
        for pattern in re.findall(r"\"[^\"]*\"|`[^`]*`|\S+", line):
            inner = pattern.strip('"`').removeprefix("all:")
            for path in file.parent.glob(packages.inner_path(inner)):
                yield path.relative_to(file.parent)


def _copy(what: Path, where: Path) -> None:
    where.parent.mkdir(parents=True, exist_ok=True)
    if what.is_dir():
        shutil.copytree(what, where, dirs_exist_ok=True)
    else:
        shutil.copyfile(what, where)


def check_replacements(module: dict[str, Any]) -> None:
    """Raise `ConfigError` for a module that would vendor folders of this machine."""
    for replacement in module.get("Replace") or ():
        if not replacement["New"].get("Version"):
            raise ConfigError(
                f"The module replaces {replacement['Old']['Path']} by a folder, which it cannot here."
            )
