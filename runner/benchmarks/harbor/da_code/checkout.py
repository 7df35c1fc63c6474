"""Read the tasks of a checkout of DA-Code: what is asked, and how it is judged."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, field_validator

from runner.errors import ConfigError, TaskError
from runner.records.base import first_fault

CONFIGS = Path("da_code", "configs")
TASKS, EVALUATIONS = (Path("task", "all.jsonl"),), (Path("eval", "eval_all.jsonl"), Path("eval", "all.jsonl"))
"""Files below `CONFIGS`, the first that exists."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def _several(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else [value]


class Asked(BaseModel):
    """One line of the file of tasks. Only what is used."""

    model_config = ConfigDict(extra="ignore")

    id: str
    type: str = ""
    instruction: str
    hardness: str = ""


class Expected(BaseModel):
    """One result: names of files, or right answers."""

    model_config = ConfigDict(extra="ignore")

    file: Annotated[tuple[str, ...], BeforeValidator(_several)] = ()
    number: Annotated[tuple[dict[str, Any], ...], BeforeValidator(_several)] = ()
    multi: bool = False
    """True if the files belong together: alternatives of one table, or the parts of one figure."""

    @field_validator("file")
    @classmethod
    def _inside(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts or not path.name or not name.isprintable():
                raise ValueError(f"{name!r} is not a name of a file inside the folder")
        return names


class Config(BaseModel):
    """The part of an evaluation that is about machine learning."""

    model_config = ConfigDict(extra="ignore")

    type: str = ""
    metric: str = ""
    upper_bound: float | None = None
    lower_bound: float | None = None


class Evaluation(BaseModel):
    """One line of the file of evaluations."""

    model_config = ConfigDict(extra="ignore")

    id: str
    config: Config = Config()
    func: Annotated[tuple[str, ...], BeforeValidator(_several)]
    result: Annotated[tuple[Expected, ...], BeforeValidator(_several)]
    options: Annotated[tuple[dict[str, Any] | None, ...], BeforeValidator(_several)] = ()
    conj: str = "avg"


@dataclass(frozen=True)
class Source:
    """One task of a checkout."""

    asked: Asked
    evaluation: Mapping[str, Any] | None
    """Line of the file of evaluations."""
    source: Path
    """Folder of the files that the agent is given. It may be missing."""
    gold: Path
    """Folder of the right results. It may be missing."""

    @property
    def name(self) -> str:
        """Name of the task."""
        return self.asked.id

    def checked(self) -> Evaluation:
        """Return the evaluation. Raises `TaskError` if it cannot be read, or if the name cannot be a folder's."""
        if not NAME.fullmatch(self.name):
            raise TaskError("Its name cannot be that of a folder.")
        if not self.evaluation:
            raise TaskError("The file of evaluations says nothing about it.")
        try:
            return Evaluation.model_validate(self.evaluation)
        except ValidationError as error:
            raise TaskError(f"Its evaluation cannot be read: {first_fault(error)}.") from error


def read_checkout(root: Path, source: Path | None, gold: Path | None) -> dict[str, Source]:
    """Return the tasks of a checkout by name. Raises `ConfigError` if a file of it cannot be read."""
    evaluations = {line.get("id"): line for line in _lines(root, EVALUATIONS)}
    sources = source or root / "da_code" / "source"
    golds = gold or root / "da_code" / "gold"
    try:
        tasks = [Asked.model_validate(line) for line in _lines(root, TASKS)]
    except ValidationError as error:
        raise ConfigError(f"job.root: {root / CONFIGS / TASKS[0]}: {first_fault(error)}.") from error
    return {
        task.id: Source(task, evaluations.get(task.id), sources / task.id, golds / task.id) for task in tasks
    }


def _lines(root: Path, names: tuple[Path, ...]) -> list[Mapping[str, Any]]:
    for name in names:
        file = root / CONFIGS / name
        if file.is_file():
            try:
                lines = [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()]
            except (ValueError, RecursionError) as error:
                raise ConfigError(f"job.root: {file} is not a file of JSON lines: {error}.") from error
            if all(isinstance(line, dict) for line in lines):
                return lines
            raise ConfigError(f"job.root: {file} has a line that is not a JSON object.")
    raise ConfigError(f"job.root: {root / CONFIGS / names[0]} is missing. Name the folder of the checkout.")
