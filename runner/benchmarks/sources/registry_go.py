"""Look up tools in Go: modules at the proxy that GOPROXY names, and source packages of Debian."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from email.parser import Parser
from pathlib import Path
from typing import Any

from runner.archives import unpack
from runner.benchmarks.sources import packages
from runner.benchmarks.sources.clients import file_digest
from runner.benchmarks.sources.go_modules import (
    download_module,
    imported,
    module_path,
    needs_libraries,
    owners,
    unpack_gocode,
)
from runner.benchmarks.sources.published_package import (
    Package,
    build_files,
    distinct,
    measures,
    people,
    readme,
)
from runner.errors import ConfigError, TaskError

NO_TOOLS = {"testdata", "vendor", "example", "examples", "_example", "_examples"}
"""Folders whose commands are not published."""
SPDX = {
    "Expat": "MIT",
    "BSD-2-clause": "BSD-2-Clause",
    "BSD-3-clause": "BSD-3-Clause",
    "zlib": "Zlib",
    "GPL-2": "GPL-2.0-only",
    "GPL-2+": "GPL-2.0-or-later",
    "GPL-3": "GPL-3.0-only",
    "GPL-3+": "GPL-3.0-or-later",
    "AGPL-3+": "AGPL-3.0-or-later",
    "LGPL-3+": "LGPL-3.0-or-later",
}
"""Names of licences in Debian -> SPDX identifiers, where the two differ."""


def look_up_module(module: str, version: str, golang: Path) -> Package:
    """Return a module with a command. A proxy says nothing else about it. Raises `TaskError` and `FetchError`."""
    with tempfile.TemporaryDirectory() as folder:
        found = download_module(module, version, golang, folder)
        code = Path(found["Dir"])
        return Package(
            source="go",
            package=module,
            version=version,
            digest=found["Sum"],
            commands=commands_of(code, module),
            build_files=build_files(code),
            readme=readme(code),
            **measures(code, "go"),
        )


def look_up_source(
    name: str, version: str, client: Callable[[str], Path], say: Callable[[str], None]
) -> Package:
    """Return a source package of Debian that is a Go module with a command.

    Its requirements are the libraries of Debian that its commands import; commands whose imports Debian lacks are left
    out. Raises `TaskError` for a source that is none, and `FetchError`.
    """
    from runner.sandbox.docker import debian_pool  # noqa: PLC0415 - the other registries need no engine

    packages.debian_name(name)
    packages.debian_version(version)
    with tempfile.TemporaryDirectory() as folder:
        found, code = Path(folder, "found"), Path(folder, "code")
        debian_pool.fetch_source(name, version, found, say)
        about = _stanza((found / "sources").read_text("utf-8"), Version=version)
        digest, file = _archive(about)
        unpack(found / file, code, without_top=True)
        commands = commands_of(code, module_path(code))
        commands, requires = _requirements(code, commands, found, client)
        return Package(
            source="debian",
            package=name,
            version=version,
            digest=digest,
            path=f"{about['Directory']}/{file}",
            requires=requires,
            commands=commands,
            build_files=build_files(code),
            readme=readme(code),
            **_described(about, found),
            **measures(code, "go"),
        )


def commands_of(source: Path, module: str) -> dict[str, str]:
    """Return the commands of a module by the names that Go gives to their binaries. Raises `TaskError` for none."""
    own = re.sub(r"/v\d+$", "", module).rpartition("/")[2]
    found: dict[str, str] = {}
    for file in sorted(source.rglob("*.go")):
        place = file.parent.relative_to(source)
        hidden = any(part.startswith((".", "_")) for part in place.parts)
        if hidden or NO_TOOLS & set(place.parts) or file.name.endswith("_test.go"):
            continue
        text = file.read_text("utf-8", "replace")
        ignored = re.search(r"^//(?:go:build| \+build)\s+ignore\b", text, re.MULTILINE)
        if re.search(r"^package\s+main\b", text, re.MULTILINE) and not ignored:
            found.setdefault(place.name or own, "" if place == Path() else place.as_posix())
    if not found:
        raise TaskError(f"{module} has no command, so it is not a command-line tool.")
    return found


def _requirements(
    code: Path, commands: Mapping[str, str], found: Path, client: Callable[[str], Path]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the commands whose imports are all there, and the lines that pin the libraries that they import.

    Raises `TaskError` if no command has all of its imports.
    """
    if not needs_libraries(code):
        return dict(commands), ()
    debs = sorted((found / "libraries").glob("*.deb"))
    usable: dict[str, str] = {}
    needed: set[Path] = set()
    faults: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        sources = unpack_gocode(debs, Path(folder))
        owner = owners(debs)
        for command, entry in commands.items():
            try:
                libraries = imported(code, entry, sources, client("go")).libraries
            except ConfigError as error:
                faults.append(str(error))
                continue
            usable[command] = entry
            for library in libraries.values():
                needed |= {owner[place] for place in _places(library.folder, sources) if place in owner}
    if not usable:
        raise TaskError(f"No command of the source can be built from Debian's libraries: {faults[0]}")
    return usable, tuple(_pin(deb, (found / "packages").read_text("utf-8")) for deb in sorted(needed))


def _places(folder: Path, sources: Path) -> Iterator[str]:
    """Yield the paths below `sources` that must exist for a folder: the folder itself, and links on the way to it."""
    for path in (folder, folder.resolve()):
        inner = path.relative_to(sources if path == folder else sources.resolve())
        yield from (place.as_posix() for place in (inner, *inner.parents))


def _pin(deb: Path, stanzas: str) -> str:
    """Return the line that pins a fetched library. Raises `TaskError` if apt's data on it differ from the file."""
    about = _stanza(stanzas, Package=deb.name.partition("_")[0])
    if file_digest(deb) != f"sha256:{about['SHA256']}":
        raise TaskError(f"{deb.name} is not the library that Debian's index names.")
    return f"{about['Filename']} --hash=sha256:{about['SHA256']}"


def _stanza(text: str, **wanted: str) -> dict[str, str]:
    """Return the first stanza of Debian's control data with these fields. Raises `TaskError` if there is none."""
    for stanza in re.split(r"\n\s*\n", text.strip()):
        fields = {key: str(value) for key, value in Parser().parsestr(stanza).items()}
        if wanted.items() <= fields.items():
            return fields
    raise TaskError(
        f"Debian has nothing with {', '.join(f'{key} {value}' for key, value in wanted.items())}."
    )


def _archive(about: Mapping[str, str]) -> tuple[str, str]:
    """Return digest and name of the tar file with the source as its authors published it."""
    listed = [line.split() for line in about["Checksums-Sha256"].splitlines() if line.strip()]
    archives = {name: digest for digest, _, name in listed if re.search(r"\.tar\.\w+$", name)}
    of_authors = [name for name in archives if ".orig.tar." in name] or [
        name for name in archives if ".debian.tar." not in name and ".orig-" not in name
    ]
    if len(of_authors) != 1:
        raise TaskError(f"{about['Package']} has no single archive of its authors' source.")
    return f"sha256:{archives[of_authors[0]]}", of_authors[0]


def _described(about: Mapping[str, str], found: Path) -> dict[str, Any]:
    """Return the fields of a package that Debian's own files in the source give."""
    folder = found / "debian-files"
    for packed in found.glob("*.debian.tar.*"):
        unpack(packed, folder)
    control = _text(folder / "debian" / "control")
    synopsis = re.search(r"^Description:[ \t]*(.+)$", control, re.MULTILINE)
    copyrights = _text(folder / "debian" / "copyright")
    head, own = _of_copyright(copyrights, "Format"), _of_copyright(copyrights, "Files", "*")
    holders = re.sub(r"(?:©|\([cC]\)|[Cc]opyright|\b\d{4}\b[-–, ]*)", "", own.get("Copyright", ""))
    contacts = head.get("Upstream-Contact", "")
    named = people(line.strip(" ,") for line in [*holders.splitlines(), *contacts.splitlines()])
    license_name = (own.get("License") or "").strip().partition("\n")[0]
    return {
        "license": SPDX.get(license_name, license_name),
        "description": synopsis[1].strip() if synopsis else "",
        "authors": named["authors"],
        "emails": named["emails"],
        "addresses": distinct([about.get("Homepage"), head.get("Source"), *named["addresses"]]),
    }


def _of_copyright(text: str, field: str, value: str = "") -> dict[str, str]:
    """Return the first stanza of a copyright file that has a field, and this value in it; empty if there is none."""
    for stanza in re.split(r"\n\s*\n", text.strip()):
        fields = {key: str(content) for key, content in Parser().parsestr(stanza).items()}
        if field in fields and (not value or value in fields[field].split()):
            return fields
    return {}


def _text(file: Path) -> str:
    return file.read_text("utf-8", "replace") if file.is_file() else ""
