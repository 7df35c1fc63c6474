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
"""Folder beside a task's files with everything from which they were made."""
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
    """New name of the command, in the prompt, the cases and the reference alike."""
    source: Literal["pypi", "npm", "debian", "go", "checkout"]
    """Registry, or a checkout: a folder with a project. debian: a source package that is a Go module."""
    package: str = ""
    """Name at the registry; a checkout says its own."""
    version: str = ""
    """Exact version; empty: as the checkout says it."""
    folder: str = ""
    """checkout: its folder, absolute or relative to the folder of this file; empty: the files that lie in the finished
    task (`references.CHECKOUT`), so that it can be made again where the folder is not."""
    written_in: Language | None = None
    """checkout: its language, where it has build files of several."""
    command: str = ""
    """Published name of the command; empty: the one that matches the package's name (section 2.1.2)."""
    entry: str = ""
    """What the command starts, as `Reference.entry` has it; empty: as the package declares it."""
    help: str = ""
    """Arguments that print the help. Its page then counts whatever the exit code, and subcommands are not asked; empty:
    `--help`, `-h` and `help`, which must succeed."""
    license: str = ""
    """SPDX identifier; empty: as the package declares it."""
    category: Domain
    brand: tuple[str, ...] = ()
    """Words to scrub beside those that the registry gives: names of the project, its owner and its authors."""
    renamed: tuple[str, ...] = ()
    """Files of the reference in which the published names are replaced by `tool`."""
    cap: int = Field(default=20, ge=1)
    """Most command classes; further ones are dropped and named."""
    exclude: dict[str, str] = {}
    """Parameter -> the reason why it has no class, for example because it opens a browser."""
    requires_note: str = ""
    """Remark on dependencies, for people."""

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
            raise ValueError("package: a checkout says its name itself; name its `folder` instead")
        return self

    @property
    def language(self) -> Language:
        """Language in which the task is to be solved; that of a checkout is known once it is taken."""
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
