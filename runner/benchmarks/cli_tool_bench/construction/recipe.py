"""`making/tool.yaml`: which tool becomes a task, and under which name."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import yaml
from pydantic import Field, ValidationError, model_validator

from runner.errors import ConfigError, TaskError
from runner.files import write_atomically
from runner.records import Record
from runner.records.base import first_fault

FOLDER = "making"
"""Folder in a task's folder that holds everything from which the task was made."""
FILE = "tool.yaml"
Domain = Literal[
    "Web Development",
    "Testing",
    "Utility Libraries",
    "Machine Learning",
    "Data Analysis & Processing",
    "Database Interaction",
    "Networking Tools",
    "Batch File Processing",
    "System Tools",
]
"""The nine domains of Table 1, which are those of NL2Repo-Bench."""
Language = Literal["python", "javascript", "go"]
INSTALL: dict[Language, str] = {
    "python": "pip install .",
    "javascript": "npm install -g .",
    "go": "go install ./...",
}
"""Language -> command that installs a workspace, unless its task has another (section 2.1.2)."""
LANGUAGES: dict[str, Language] = {"pypi": "python", "npm": "javascript", "debian": "go", "go": "go"}
"""Registry -> language of its tools."""


class Recipe(Record):
    """A published tool, and what people decide about the task to be made of it."""

    tool: str = Field(pattern=r"^[a-z][a-z0-9-]{1,30}$")
    """New name of the command; the prompt, the cases and the reference all use it."""
    source: Literal["pypi", "npm", "debian", "go", "checkout"]
    """Registry of the tool. checkout: a folder with a project. debian: a source package that is a Go module."""
    package: str = ""
    """Name at the registry; empty for a checkout, which declares its own name."""
    version: str = ""
    """Exact version; if empty, the version that the checkout declares."""
    folder: str = ""
    """checkout: its folder, absolute or relative to the folder of this file. If empty, the files in the finished task
    are used (`references.CHECKOUT`), so that the task can be made again without the folder."""
    written_in: Language | None = None
    """checkout: its language, if it has build files of several languages."""
    command: str = ""
    """Published name of the command; if empty, the command that matches the package's name (section 2.1.2)."""
    entry: str = ""
    """Entry point of the command, in the form of `Reference.entry`; if empty, the one that the package declares."""
    help: str = ""
    """Arguments that print the help. The page then counts whatever the exit code, and subcommands are not asked. If
    empty, `--help`, `-h` and `help` are tried, which must succeed."""
    license: str = ""
    """SPDX identifier; if empty, the one that the package declares."""
    category: Domain
    brand: tuple[str, ...] = ()
    """Words to scrub besides those that the registry gives: names of the project, its owner and its authors."""
    renamed: tuple[str, ...] = ()
    """Files of the reference in which the published names are replaced by `tool`."""
    cap: int = Field(default=20, ge=1)
    """Largest number of command classes; further ones are dropped and named."""
    exclude: dict[str, str] = {}
    """Parameter -> the reason why it has no class, for example because it opens a browser."""
    requires_note: str = ""
    """Remark on dependencies, for readers of the task."""

    @model_validator(mode="after")
    def _is_renamed(self) -> Recipe:
        if self.tool in (self.package, self.command):
            raise ValueError(
                f"tool: {self.tool!r} is the published name, which an agent may know: choose another"
            )
        return self

    @model_validator(mode="after")
    def _names_its_source(self) -> Recipe:
        if self.source != "checkout":
            if not self.package or not self.version:
                raise ValueError("package, version: name both, as the registry has them")
            if self.folder or self.written_in:
                raise ValueError("folder, written_in: these are for `source: checkout`")
        elif self.package:
            raise ValueError("package: a checkout declares its own name; give its `folder` instead")
        return self

    @property
    def language(self) -> Language:
        """Language in which the task is to be solved. For a checkout it is known once the checkout has been packed."""
        return self.written_in or LANGUAGES[self.source]


def read_recipe(task: Path) -> Recipe:
    """Read the recipe of a task's folder. Raises `TaskError` with the first fault."""
    file = task / FOLDER / FILE
    try:
        return Recipe.model_validate(yaml.safe_load(file.read_text("utf-8")))
    except ValidationError as error:
        raise TaskError(f"{task.name}: {FILE}: {first_fault(error, 'file')}.") from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise TaskError(f"{task.name}: {FOLDER}/{FILE} cannot be read: {error}.") from error


def write_recipe(task: Path, recipe: Recipe) -> None:
    """Write the recipe of a task's folder. Raises `ConfigError` if another one lies there."""
    file = task / FOLDER / FILE
    if file.exists() and read_recipe(task) != recipe:
        raise ConfigError(f"{file} holds another recipe: choose another name, or remove it.")
    text = yaml.safe_dump(recipe.model_dump(mode="json", exclude_defaults=True), sort_keys=False, width=1000)
    write_atomically(file, text.encode())
