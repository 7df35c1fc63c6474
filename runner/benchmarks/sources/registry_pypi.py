"""Look up a wheel at the Python package index. Nothing is built or installed."""

from __future__ import annotations

import configparser
import re
import tempfile
from email.utils import getaddresses
from pathlib import Path
from typing import Any

from packaging.metadata import parse_email
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from runner.benchmarks.sources import packages
from runner.benchmarks.sources.published_package import Package, build_files, distinct, measures
from runner.benchmarks.sources.sdists import distributions, lock_requirements, unpack_distribution
from runner.errors import TaskError

PYTHON = "3.13"
"""Version of Python in the image of Python tools."""
CLASSIFIED = {
    "MIT License": "MIT",
    "MIT No Attribution License (MIT-0)": "MIT-0",
    "ISC License (ISCL)": "ISC",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "The Unlicense (Unlicense)": "Unlicense",
    "zlib/libpng License": "Zlib",
}
"""Classifiers of licences that mean one SPDX identifier. Others, such as "BSD License", could mean several."""


def look_up(name: str, version: str) -> Package:
    """Return a package with a pure wheel. Raises `TaskError` if it has none, and `FetchError`."""
    with tempfile.TemporaryDirectory() as folder:
        asked, code, source = (Path(folder, part) for part in ("asked", "code", "source"))
        asked.mkdir()
        found = distributions(name, version, asked, PYTHON)
        wheel = next((wheel for wheel in found.get("wheels") or () if _is_pure(wheel["url"])), None)
        if wheel is None:
            raise TaskError(f"{name} {version} has no wheel for every machine, so it cannot be taken.")
        unpack_distribution(wheel, name, code)
        about = _about(code)
        commands = _commands(about / "entry_points.txt")
        if sdist := found.get("sdist"):
            unpack_distribution(sdist, name, source)
        own, pinned = packages.python_name(name), f"{name}=={version}"
        return Package(
            source="pypi",
            package=name,
            version=version,
            digest=wheel["hash"],
            requires=tuple(
                line for line in lock_requirements((pinned,)) if canonicalize_name(named(line)) != own
            ),
            commands=commands,
            build_files=build_files(source),
            **described(about / "METADATA"),
            **measures(code, "python"),
        )


def _about(code: Path) -> Path:
    """Return the folder in which a wheel describes itself. Raises `TaskError` if it does not."""
    found = sorted(file.parent for file in code.glob("*.dist-info/METADATA"))
    if not found:
        raise TaskError("The wheel has no METADATA, so nothing can be said of it.")
    return found[0]


def _is_pure(address: str) -> bool:
    """Return whether a wheel runs on any machine and on every Python 3."""
    try:
        tags = parse_wheel_filename(address.rpartition("/")[2])[3]
    except InvalidWheelFilename:
        return False
    return any((tag.interpreter, tag.abi, tag.platform) == ("py3", "none", "any") for tag in tags)


def named(line: str) -> str:
    """Return the name of the package that a line of a lock pins."""
    return re.split(r"[^\w.-]", line)[0]


def _commands(file: Path) -> dict[str, str]:
    """Return the console scripts of a wheel. Their extras, `[x]`, are dropped: all requirements are installed.

    Raises `TaskError` for a file that is not one.
    """
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    try:
        parser.read_string(file.read_text("utf-8") if file.is_file() else "")
    except (configparser.Error, UnicodeDecodeError) as error:
        raise TaskError(f"{file.name} of the wheel cannot be read: {error}.") from error
    scripts = dict(parser["console_scripts"]) if parser.has_section("console_scripts") else {}
    return {name: re.sub(r"\s+", "", value.partition("[")[0]) for name, value in scripts.items()}


def described(file: Path) -> dict[str, Any]:
    """Return the fields of a package that a wheel's METADATA gives."""
    about, _ = parse_email(file.read_bytes())
    mails = getaddresses([about.get("author_email") or "", about.get("maintainer_email") or ""])
    names = [about.get("author"), about.get("maintainer"), *(name for name, _ in mails)]
    urls = about.get("project_urls") or {}
    return {
        "license": license_of(about),
        "description": (about.get("summary") or "").strip(),
        "readme": about.get("description") or "",
        "authors": distinct(name for name in names if name != "UNKNOWN"),
        "emails": distinct(mail for _, mail in mails if "@" in mail),
        "addresses": distinct([about.get("home_page"), about.get("download_url"), *urls.values()]),
    }


def license_of(about: Any) -> str:
    """Return the licence as METADATA states it; empty if there is only its text, or nothing."""
    if expression := about.get("license_expression"):
        return str(expression)
    stated = [
        entry.rpartition(" :: ")[2] for entry in about.get("classifiers") or () if "License ::" in entry
    ]
    if len(stated) == 1 and stated[0] in CLASSIFIED:
        return CLASSIFIED[stated[0]]
    text = str(about.get("license") or "").strip()
    if text and "\n" not in text and text != "UNKNOWN":
        return text
    return stated[0] if len(stated) == 1 else ""
