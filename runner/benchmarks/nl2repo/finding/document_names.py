"""Read which package, and which versions of it, a task's document names."""

from __future__ import annotations

import re
from collections import Counter

from packaging.version import InvalidVersion, Version

_VERSION = r"v?(\d+(?:\.\d+)+[\w.+]*)"
_SETUP = re.compile(r"(?:\bsetup\s*\(|^\s*\[project\]|^\s*\[tool\.poetry\]|^\s*\[metadata\])", re.MULTILINE)
_FIELD = r"^\s*{}\s*=\s*[\"']?([\w.+-]+)[\"']?\s*,?\s*$"
_INSTALLED = re.compile(r"\bpip3?\s+install\s+(?:-U\s+|--upgrade\s+)?[\"']?([A-Za-z][\w.-]*)")
_DUNDER = re.compile(rf"__version__\s*(?::\s*\w+\s*)?=\s*[\"']{_VERSION}[\"']")
_PACKAGE = re.compile(r"(?<![\w/.-])([A-Za-z]\w+)/__init__\.py")
_NO_LIBRARIES = frozenset({"tests", "test", "src", "docs", "examples", "lib"})
_SETUP_LINES = 12
"""Number of lines after the beginning of a setup text in which its name and version are expected."""


def package_name(task: str, document: str) -> str:
    """Return the name under which a document installs its library; the task's name if it does not say.

    Documents name requirements in the same way, so only names that resemble the task's are taken.
    """
    declared = [name for text in _setup_texts(document) for name in _fields(text, "name")]
    for name in (*declared, *_INSTALLED.findall(document)):
        if _core(name) == _core(task):
            return str(name)
    return task


def module_names(document: str) -> list[str]:
    """Return the names of the packages whose `__init__.py` a document mentions, the most frequent first."""
    found = Counter(name for name in _PACKAGE.findall(document) if name.lower() not in _NO_LIBRARIES)
    return [name for name, _ in found.most_common()]


def other_names(task: str, document: str) -> list[str]:
    """Return further names under which a library may be published, if the first holds no tests.

    They are guesses, and such a package may be another library: its code is to be compared with the document.
    """
    named = [name.replace("_", "-") for name in module_names(document)[:2]]
    return [*named, f"python-{task}"]


def versions(package: str, document: str) -> list[str]:
    """Return the versions that a document gives its library, the most explicit statements first."""
    dunder = _DUNDER.findall(document)
    setup = [version for text in _setup_texts(document) for version in _fields(text, "version")]
    pinned = re.findall(
        rf"(?<![\w-]){re.escape(package)}\s*(?:==|@|\bversion\b|\bv)\s*[\"']?{_VERSION}",
        document,
        re.IGNORECASE,
    )
    return list(dict.fromkeys(text for text in map(_normal, (*dunder, *setup, *pinned)) if text))


def _setup_texts(document: str) -> list[str]:
    found = (document[match.start() :] for match in _SETUP.finditer(document))
    return ["\n".join(text.splitlines()[:_SETUP_LINES]) for text in found]


def _fields(text: str, name: str) -> list[str]:
    return re.findall(_FIELD.format(name), text, re.MULTILINE)


def _core(name: str) -> str:
    """Return a name without separators, and without a `python` or `py` that only says what it is written in."""
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    return re.sub(r"^python|^py(?=..)|python$|py$", "", plain) or plain


def _normal(text: str) -> str:
    try:
        return str(Version(text.rstrip(".")))
    except InvalidVersion:
        return ""
