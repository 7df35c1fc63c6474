"""Read the declarations of a Python project in `pyproject.toml` or `setup.cfg`, without running any of its code."""

from __future__ import annotations

import configparser
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from runner.benchmarks.sources.published_package import distinct
from runner.benchmarks.sources.registry_pypi import license_of
from runner.errors import TaskError
from runner.records.base import first_fault


class Declared(BaseModel):
    """A `[project]` table, or the equivalent part of `setup.cfg`. Other keys do not matter here."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    name: str = ""
    version: str = ""
    description: str = ""
    license: str | dict[str, str] = ""
    classifiers: tuple[str, ...] = ()
    authors: tuple[dict[str, str], ...] = ()
    maintainers: tuple[dict[str, str], ...] = ()
    urls: dict[str, str] = {}
    dependencies: tuple[str, ...] = ()
    scripts: dict[str, str] = {}
    dynamic: tuple[str, ...] = ()
    """Names of the fields whose values only a build can determine."""

    @property
    def commands(self) -> dict[str, str]:
        """Command -> its `MODULE:FUNCTION`. Extras, `[x]`, are dropped: all requirements are installed."""
        return {name: re.sub(r"\s+", "", text.partition("[")[0]) for name, text in self.scripts.items()}

    @property
    def described(self) -> dict[str, Any]:
        """The fields of a package that describe it."""
        people = (*self.authors, *self.maintainers)
        is_text = isinstance(self.license, dict)
        stated = self.license.get("text", "") if isinstance(self.license, dict) else self.license
        about = {"classifiers": self.classifiers, "license" if is_text else "license_expression": stated}
        return {
            "license": license_of(about),
            "description": self.description.strip(),
            "authors": distinct(person.get("name") for person in people),
            "emails": distinct(person.get("email") for person in people),
            "addresses": distinct(self.urls.values()),
        }


def read_declared(checkout: Path) -> Declared | None:
    """Return the declarations of a checkout; None if it is not a Python project, or has them only in a `setup.py`.

    Raises `TaskError` if a file cannot be read, or if only a build can tell what the project requires.
    """
    try:
        fields = _pyproject(checkout / "pyproject.toml") or _setup_cfg(checkout / "setup.cfg")
        found = Declared.model_validate(fields) if fields is not None else None
    except ValidationError as error:
        raise TaskError(f"its [project] table: {first_fault(error)}.") from error
    except (ValueError, configparser.Error) as error:
        raise TaskError(f"its pyproject.toml or setup.cfg cannot be read: {error}.") from error
    if found and "dependencies" in found.dynamic:
        raise TaskError(
            "only a build can tell what it requires (dynamic dependencies). List it as `dependencies` in [project]."
        )
    return found


def _pyproject(file: Path) -> Any:
    return tomllib.loads(file.read_text("utf-8")).get("project") if file.is_file() else None


def _setup_cfg(file: Path) -> dict[str, Any] | None:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.read_string(file.read_text("utf-8") if file.is_file() else "")
    if not parser.has_section("metadata") and not parser.has_section("options"):
        return None
    about: Mapping[str, str] = parser["metadata"] if parser.has_section("metadata") else {}
    options: Mapping[str, str] = parser["options"] if parser.has_section("options") else {}
    points = parser["options.entry_points"] if parser.has_section("options.entry_points") else {}
    requires = options.get("install_requires", "")
    scripts = (line.partition("=") for line in _lines(points.get("console_scripts", "")))
    return {
        "name": _plain(about, "name"),
        "version": _plain(about, "version"),
        "description": _plain(about, "description"),
        "license": {"text": _plain(about, "license")},
        "classifiers": _lines(_plain(about, "classifiers")),
        "authors": [{"name": _plain(about, who), "email": _plain(about, f"{who}_email")} for who in _PEOPLE],
        "urls": {"": _plain(about, "url")},
        "dependencies": _lines(requires),
        "scripts": {name.strip(): entry.strip() for name, _, entry in scripts},
        "dynamic": ["dependencies"] if requires.strip().startswith("file:") else [],
    }


_PEOPLE = ("author", "maintainer")


def _plain(about: Mapping[str, str], key: str) -> str:
    """Return a value that is given literally; empty for `attr: ..` and `file: ..`, which only name its location."""
    value = about.get(key, "").strip()
    return "" if re.match(r"(attr|file):", value) else value


def _lines(text: str) -> list[str]:
    lines: Iterable[str] = (line.partition(" #")[0].strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]
