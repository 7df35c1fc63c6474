"""Parse names, versions and requirements from a task's files, and rebuild them for package clients.

Package clients accept options, addresses and paths in place of a name: a line `--no-binary x`, or `x @ file:///..`, in
a list of requirements runs a `setup.py` on this machine. So clients only get text that is built from parsed parts.
Functions return that text, or raise `ValueError` with a clause for a message of pydantic's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import PurePosixPath
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidName, canonicalize_name
from packaging.version import InvalidVersion, Version

_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_NPM = re.compile(r"(@[A-Za-z0-9][A-Za-z0-9._~-]*/)?[A-Za-z0-9][A-Za-z0-9._~-]*", re.ASCII)
_SEMANTIC = r"\d{1,9}\.\d{1,9}\.\d{1,9}(-[0-9A-Za-z.-]+)?"
_NPM_VERSION = re.compile(rf"{_SEMANTIC}(\+[0-9A-Za-z.-]+)?", re.ASCII)
_GO = re.compile(r"[a-z0-9][a-z0-9-]*(\.[a-z0-9][a-z0-9-]*)+(/[A-Za-z0-9_~][A-Za-z0-9._~-]*)*", re.ASCII)
_GO_VERSION = re.compile(rf"v{_SEMANTIC}(\+incompatible)?", re.ASCII)
_POOL = re.compile(r"pool(/[a-z0-9][A-Za-z0-9.+~-]*){3}/[A-Za-z0-9][A-Za-z0-9.+~_-]*", re.ASCII)
_MARKER = re.compile(r"[ -\[\]-~]*")
"""Printable ASCII without backslashes, since a marker's parser turns escapes in literals into line ends."""
_DEBIAN = re.compile(r"[a-z0-9][a-z0-9+.-]+", re.ASCII)
_DEBIAN_VERSION = re.compile(r"[0-9][A-Za-z0-9.+~:-]*", re.ASCII)
_DEB = re.compile(rf"(?P<path>{_POOL.pattern}\.deb) --hash=(?P<digest>{_HASH.pattern})", re.ASCII)
_PLACE = re.compile(
    rf"(?P<path>node_modules/{_NPM.pattern}(/node_modules/{_NPM.pattern})*)(=(?P<name>{_NPM.pattern}))?"
    rf"@(?P<version>{_NPM_VERSION.pattern}) (?P<integrity>sha512-[A-Za-z0-9+/]{{86}}==)",
    re.ASCII,
)
_NAMES = re.compile(r"\.?[^\W_](?:[\w .+@-]*\w)?")
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


def python_name(text: str) -> str:
    """Return the normalised name of a package on a Python index."""
    try:
        return canonicalize_name(text, validate=True)
    except InvalidName:
        raise ValueError(f"{text[:200]!r} is not the name of a Python package") from None


def python_version(text: str) -> str:
    """Return a version as PEP 440 writes it."""
    try:
        return str(Version(text))
    except InvalidVersion:
        raise ValueError(f"{text[:200]!r} is not a version of a Python package") from None


def pin(line: str) -> str:
    """Return a line `NAME==VERSION[; MARKER] --hash=sha256:HEX ...` of a lock, rebuilt from its parts."""
    text, *hashes = re.split(r"\s+--hash[=\s]", line.strip())
    pinned = exact(text)
    if not hashes or not all(map(_HASH.fullmatch, hashes)):
        raise ValueError(f"{line[:200]!r} needs --hash=sha256:.., once or several times, and nothing else")
    return " ".join([pinned, *(f"--hash={value}" for value in hashes)])


def exact(text: str) -> str:
    """Return a requirement `NAME==VERSION[; MARKER]`, rebuilt from its parts."""
    parsed = _parse(text)
    pins = list(parsed.specifier)
    if parsed.extras or len(pins) != 1 or pins[0].operator != "==" or pins[0].version.endswith(".*"):
        raise ValueError(f"{text[:200]!r} does not pin one version as NAME==VERSION")
    marker = f" ; {parsed.marker}" if parsed.marker else ""
    return f"{python_name(parsed.name)}=={python_version(pins[0].version)}{marker}"


def requirement(text: str) -> str:
    """Return a requirement such as `NAME[EXTRA]>=VERSION; MARKER`, rebuilt from its parts. Addresses are refused."""
    parsed = _parse(text)
    extras = f"[{','.join(sorted(map(python_name, parsed.extras)))}]" if parsed.extras else ""
    marker = f" ; {parsed.marker}" if parsed.marker else ""
    return f"{python_name(parsed.name)}{extras}{parsed.specifier}{marker}"


def lines_of(lock: str) -> list[str]:
    """Return the lines of a lock without comments. Continued lines are joined."""
    joined = re.sub(r"\s*\\\n\s*", " ", lock)
    return [line for line in map(str.strip, joined.splitlines()) if line and not line.startswith("#")]


def _matching(pattern: re.Pattern[str], what: str) -> Callable[[str], str]:
    """Return a function that returns texts of this pattern and raises `ValueError` for all others."""

    def check(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError(f"{text[:200]!r} is not {what}")
        return text

    return check


npm_name = _matching(_NPM, "the name of an npm package")
npm_version = _matching(_NPM_VERSION, "an exact version of an npm package")
go_module = _matching(_GO, "the path of a Go module")
go_version = _matching(_GO_VERSION, "an exact version of a Go module, v1.2.3")
debian_file = _matching(_POOL, "the path of a file in Debian's pool, pool/main/..")
published_name = _matching(_NAMES, "a name of letters, digits, spaces and `.+@_-`")
debian_name = _matching(_DEBIAN, "the name of a source package of Debian")
debian_version = _matching(_DEBIAN_VERSION, "a version of a package of Debian")
python_module = _matching(_MODULE, "the name of a Python module")


def python_entry(text: str) -> str:
    """Return the `MODULE:FUNCTION` of a command."""
    module, colon, function = text.partition(":")
    if not colon or not _MODULE.fullmatch(module) or not _MODULE.fullmatch(function):
        raise ValueError(f"{text[:200]!r} is not a MODULE:FUNCTION")
    return text


def inner_path(text: str) -> str:
    """Return a relative path without `..`."""
    path = PurePosixPath(text)
    if path.is_absolute() or not path.parts or ".." in path.parts or not text.isprintable():
        raise ValueError(f"{text[:200]!r} is not a relative path without `..`")
    return text


def any_text(text: str) -> str:
    """Return the text unchecked: no package client gets it."""
    return text


class Placed(NamedTuple):
    """An npm package that lies in a folder of another one."""

    path: str
    """Path of the folder, relative to the other package, such as `node_modules/a/node_modules/@s/b`."""
    name: str
    """Name of the package. Only for an alias does it differ from the folder's name."""
    version: str
    integrity: str


class Deb(NamedTuple):
    """A binary package of Debian."""

    path: str
    """Path below the mirror, `pool/..`."""
    digest: str

    @property
    def name(self) -> str:
        """Name of the package."""
        return self.path.rpartition("/")[2].partition("_")[0]


def npm_placed(line: str) -> Placed:
    """Return the parts of a line `PATH@VERSION sha512-..`, or `PATH=NAME@VERSION sha512-..` for an alias."""
    found = _PLACE.fullmatch(line)
    if not found:
        raise ValueError(f"{line[:200]!r} is not a line `node_modules/NAME@VERSION sha512-..`")
    name = found["name"] or found["path"].rpartition("node_modules/")[2]
    return Placed(found["path"], name, found["version"], found["integrity"])


def deb(line: str) -> Deb:
    """Return the parts of a line `pool/../NAME_VERSION_all.deb --hash=sha256:HEX`."""
    found = _DEB.fullmatch(line)
    if not found:
        raise ValueError(f"{line[:200]!r} is not a line `pool/../NAME_VERSION_all.deb --hash=sha256:..`")
    return Deb(found["path"], found["digest"])


CHECKS: dict[str, tuple[Callable[[str], str], Callable[[str], str]]] = {
    "pypi": (python_name, python_version),
    "sdist": (python_name, python_version),
    "npm": (npm_name, npm_version),
    "go": (go_module, go_version),
    "debian": (debian_file, any_text),
    "debian-source": (debian_name, debian_version),
}
"""Kind of source -> functions that check the name and the version of its package."""


REQUIREMENTS: dict[str, tuple[Callable[[str], object], Callable[[str], str]]] = {
    "pypi": (pin, lambda line: re.split(r"[^\w.-]", line)[0]),
    "npm": (npm_placed, lambda line: npm_placed(line).name),
    "debian": (deb, lambda line: deb(line).name),
}
"""Kind of source -> function that checks a line of its requirements, and one that returns the line's package."""


def check_all(check: Callable[[str], object], texts: Iterable[str]) -> None:
    """Raise `ValueError` for the first text that one of the functions above does not accept."""
    for text in texts:
        check(text)


def _parse(text: str) -> Requirement:
    try:
        parsed = Requirement(text)
    except InvalidRequirement:
        raise ValueError(f"{text[:200]!r} is not a requirement of a Python package") from None
    if parsed.url:
        raise ValueError(f"{text[:200]!r} names an address, and only packages of the index are taken")
    if parsed.marker and not _MARKER.fullmatch(str(parsed.marker)):
        raise ValueError(f"{text[:200]!r} is not a requirement: its marker is not one line of plain text")
    return parsed
