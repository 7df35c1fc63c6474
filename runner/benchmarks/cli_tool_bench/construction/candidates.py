"""Candidates and their static filters (section 2.1.1). A criterion that cannot be checked does not count as passed."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator

from runner.benchmarks.cli_tool_bench.construction.recipe import LANGUAGES, Domain
from runner.benchmarks.sources.rejections import rejected
from runner.errors import ConfigError
from runner.records import Record
from runner.records.base import first_fault

MOST = 100_000
"""Largest number of rows in a table of candidates."""


class Candidate(Record):
    """One row of the user's table, completed from the registry. Empty and None mean that the value is unknown."""

    source: Literal["pypi", "npm", "debian", "go"]
    package: str = Field(min_length=1)
    version: str = ""
    description: str = ""
    stars: int | None = Field(default=None, ge=0)
    purity: float | None = Field(default=None, ge=0, le=1)
    """Share of the primary language in the code."""
    license: str = ""
    build_files: tuple[str, ...] = ()
    """Build files of the ecosystem at the top of the package."""
    category: Domain | None = None
    tool: str = Field(default="", pattern=r"^([a-z][a-z0-9-]{1,30})?$")
    """New name of the command; if empty, a name is made up."""
    command: str = ""
    """Published command (`entry=`); if empty, it is looked for."""

    @field_validator("build_files", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return tuple(value.split()) if isinstance(value, str) else value

    @property
    def name(self) -> str:
        """Name in funnels and messages."""
        return f"{self.source}:{self.package}"


class Filters(Record):
    """The five criteria of section 2.1.1; null or an empty list switches one off."""

    stars: int | None = Field(default=10, ge=0)
    """Number of stars that a candidate must exceed."""
    purity: float | None = Field(default=0.6, ge=0, le=1)
    """Share of the primary language that a candidate must exceed."""
    keywords: tuple[str, ...] = (
        "cli",
        "command line",
        "command-line",
        "commandline",
        "terminal",
        "console",
        "shell",
    )
    """Words of which a description must contain at least one."""
    license: bool = True
    """True if a candidate must have a licence."""
    build_files: dict[str, tuple[str, ...]] = {
        "python": ("setup.py", "setup.cfg", "pyproject.toml"),
        "javascript": ("package.json",),
        "go": ("go.mod",),
    }
    """Language -> build files, of which a candidate must have one; if empty, none is needed."""

    def check(self, candidate: Candidate) -> None:
        """Raise `RejectedError` with the first criterion that a candidate fails."""
        if self.stars is not None:
            _more(candidate.stars, self.stars, "stars")
        if self.purity is not None:
            _more(candidate.purity, self.purity, "purity")
        if self.keywords and not _has_word(candidate.description, self.keywords):
            said = "has no CLI keyword" if candidate.description else "is missing"
            raise rejected("candidate", f"keywords: the description {said}.")
        if self.license and not candidate.license:
            raise rejected("candidate", "license: none is given.")
        wanted = self.build_files.get(LANGUAGES[candidate.source], ())
        if wanted and not {*wanted} & {*candidate.build_files}:
            raise rejected("candidate", f"build_files: none of {', '.join(wanted)} is known to exist.")


def read_candidates(table: Path) -> list[Candidate]:
    """Read a CSV file with a header, or a JSON file with a list of objects. Raises `ConfigError` with the row."""
    try:
        text = table.read_text("utf-8-sig")
        rows = json.loads(text) if table.suffix == ".json" else list(csv.DictReader(text.splitlines()))
    except (OSError, ValueError, csv.Error, RecursionError) as error:
        raise ConfigError(f"job.candidates: {table} cannot be read: {error}.") from error
    if not isinstance(rows, list) or len(rows) > MOST:
        raise ConfigError(f"job.candidates: {table} must hold a list of at most {MOST} candidates.")
    found = []
    for number, row in enumerate(rows, start=1):
        try:
            found.append(Candidate.model_validate(_said(row)))
        except ValidationError as error:
            raise ConfigError(f"job.candidates: row {number} of {table}: {first_fault(error)}.") from error
    if twice := [name for name, count in Counter(one.name for one in found).items() if count > 1]:
        raise ConfigError(f"job.candidates: {twice[0]} is listed twice in {table}.")
    return found


def _said(row: Any) -> Any:
    """Return a row without its empty cells."""
    return (
        {key: value for key, value in row.items() if value not in ("", None)}
        if isinstance(row, Mapping)
        else row
    )


def _more(value: float | None, bound: float, name: str) -> None:
    if value is None:
        raise rejected("candidate", f"{name}: unknown, and more than {bound:g} is needed.")
    if not value > bound:
        raise rejected("candidate", f"{name}: {value:g}, and more than {bound:g} is needed.")


def _has_word(text: str, words: tuple[str, ...]) -> bool:
    return any(
        re.search(rf"(?<![A-Za-z0-9]){re.escape(word)}(?![A-Za-z0-9])", text, re.IGNORECASE) for word in words
    )


def named(text: str) -> Candidate:
    """Return the candidate that `SOURCE:NAME==VERSION` names. Raises `ConfigError`."""
    source, _, rest = text.partition(":")
    name, _, version = rest.partition("==")
    try:
        return Candidate.model_validate({"source": source, "package": name, "version": version})
    except ValidationError as error:
        raise ConfigError(
            f"job.names: {text!r} is not SOURCE:NAME==VERSION: {first_fault(error)}."
        ) from error
