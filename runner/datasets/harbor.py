"""Tasks in Harbor's on-disk format, read as they are: the format of Terminal-Bench 2, SkillsBench and `quickstart`.

A task is a folder: `task.toml`, `instruction.md`, `environment/`, `tests/`, `solution/`. A dataset is a folder of
such folders. What cannot be run here (several containers, a GPU, several steps, ...) is a task with `refused` set,
so that it stays in every denominator.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from runner.datasets.task_toml import EnvironmentTable, NetworkTable, TaskToml, interpolate, read_task_toml
from runner.errors import ConfigError, TaskError
from runner.records import Environment, Healthcheck, Record, Task, VerifierSpec
from runner.verifiers.harbor import HarborVerifier

PARTS = ("task.toml", "instruction.md", "environment", "tests", "solution")
"""What can change a result. README.md, .gitignore and whatever else lies in a task's folder cannot."""

CANARY = re.compile(
    r"\A(?:[ \t]*(?:<!--[^\n]*canary[^\n]*-->|#[^\n]*canary[^\n]*)[ \t]*(?:\n|\Z)(?:[ \t]*\n)*)+", re.I
)
"""Comment lines at the top that mark a text as benchmark data; no part of the instruction."""

LANGUAGES = frozenset(
    "bash c c++ c# clojure cobol cpp css elixir erlang fortran go golang haskell html java javascript julia kotlin lean "
    "lisp lua ocaml perl php prolog python r ruby rust scala scheme shell sql swift typescript verilog zig".split()
)
"""Tags that are taken for a task's language when its metadata names none."""


class HarborDataset(Record):
    """A folder of Harbor tasks, or a single task's folder."""

    name: str
    root: Path
    """Absolute. Its immediate children are the tasks, in the order of their names."""
    pass_threshold: float = 1.0
    """A trial passes when its reward reaches this."""
    build_args: dict[str, str] = {}
    """Build arguments of every Dockerfile, such as the base image of this machine."""
    verifier: HarborVerifier = HarborVerifier()
    """How a verifier's `reward.json` is read."""
    tier_from: str = "difficulty"
    """Key of a task's `[metadata]` that is its tier."""
    keep_processes: tuple[str, ...] = ()
    """Names of tasks that are judged on a service the agent leaves running, in its live container."""
    include: tuple[str, ...] = ()
    """Globs over task names. Only these tasks are the dataset, and every denominator counts only them; empty: all."""
    exclude: tuple[str, ...] = ()
    """Globs over task names that are no part of the dataset."""

    def tasks(self) -> Sequence[Task]:
        """Every selected task, sorted by folder; those that cannot be run here have `refused` set.

        Raises `ConfigError` when there is no task, or a name or glob above matches none.
        """
        tasks = _unique([self._task(folder) for folder in self._folders()])
        names = [task.name for task in tasks]
        for pattern in (*self.include, *self.exclude, *self.keep_processes):
            if not any(fnmatchcase(name, pattern) for name in names):
                message = (
                    f"no task of dataset {self.name!r} is called {pattern!r}: it has {', '.join(names[:20])}"
                )
                raise ConfigError(message)
        return [task for task in tasks if self._selected(task.name)]

    def _selected(self, name: str) -> bool:
        included = not self.include or any(fnmatchcase(name, glob) for glob in self.include)
        return included and not any(fnmatchcase(name, glob) for glob in self.exclude)

    def _folders(self) -> list[Path]:
        if not self.root.is_dir():
            message = (
                f"dataset {self.name!r}: {self.root} is no folder: set dataset.root to a folder of tasks"
            )
            raise ConfigError(message)
        if _is_task(self.root):
            return [self.root]
        try:
            children = sorted(child for child in self.root.iterdir() if not child.name.startswith("."))
        except OSError as error:
            message = f"dataset {self.name!r}: {self.root} cannot be read ({error.strerror})"
            raise ConfigError(message) from error
        folders = [child for child in children if _is_task(child)]
        if not folders:
            deeper = next(
                (child for child in children if child.is_dir() and any(map(_is_task, child.iterdir()))), None
            )
            advice = (
                f"dataset.root={deeper}"
                if deeper
                else "dataset.root to the folder whose children hold a task.toml"
            )
            message = f"dataset {self.name!r}: no task in {self.root}: set {advice}"
            raise ConfigError(message)
        return folders

    def _task(self, folder: Path) -> Task:
        """One task, complete or refused; what could be read of a refused one is kept for the plan."""
        task = Task(name=folder.name, dataset=self.name, directory=folder)
        try:
            task = task.model_copy(update={"digest": _tree_digest(folder, PARTS)})
            table = _table(folder)
            task = task.model_copy(update=self._strata(table, folder))
            return self._complete(task, table)
        except TaskError as error:
            return task.model_copy(update={"refused": str(error)})
        except OSError as error:
            return task.model_copy(update={"refused": f"{error.filename} cannot be read ({error.strerror})"})

    def _strata(self, table: TaskToml, folder: Path) -> dict[str, str]:
        metadata = table.metadata
        tags = _words(metadata.get("tags")) + [
            word.lower() for word in (table.task.keywords if table.task else ())
        ]
        languages = _words(metadata.get("language")) or _words(metadata.get("languages"))
        return {
            "name": table.task.name if table.task else folder.name,
            "tier": _first(_words(metadata.get(self.tier_from))),
            "category": _first(_words(metadata.get("category"))),
            "language": _first(languages or [tag for tag in tags if tag in LANGUAGES]),
        }

    def _complete(self, task: Task, table: TaskToml) -> Task:
        """Everything else of a task. Raises `TaskError` for what cannot be run here."""
        folder = task.directory
        table.check()
        _check_files(folder)
        environment = self._environment(table.environment, folder / "environment", table.agent)
        verifier = self._verifier(table, folder, keep=task.name in self.keep_processes)
        solution_env = interpolate(table.solution.env, os.environ)
        identity = {
            "name": task.name,
            "files": task.digest,
            "environment": environment.digest,
            "verifier": verifier.model_dump(mode="json", exclude={"tests": True, "environment": {"context"}}),
            "solution_env": solution_env,
            "pass_threshold": self.pass_threshold,
            "reading": self.verifier.model_dump(mode="json"),
        }
        return Task(
            **task.model_dump(include={"name", "dataset", "directory", "tier", "category", "language"}),
            digest=_digest(identity),
            instruction=_instruction(folder / "instruction.md"),
            environment=environment,
            agent_timeout_seconds=table.agent.timeout_sec,
            agent_user=table.agent.user,
            verifier=verifier,
            artifacts=table.artifact_paths(),
            solution=folder / "solution" if (folder / "solution" / "solve.sh").is_file() else None,
            solution_env=solution_env,
        )

    def _verifier(self, table: TaskToml, folder: Path, *, keep: bool) -> VerifierSpec:
        spec, tests = table.verifier, folder / "tests"
        image = spec.environment.docker_image if spec.environment else None
        if spec.mode == "separate" and not image and (tests / "docker-compose.yaml").exists():
            reason = (
                "its verifier needs several containers (tests/docker-compose.yaml), and one is what runs here"
            )
            raise TaskError(reason)
        carries_tests = spec.mode == "separate" and (bool(image) or (tests / "Dockerfile").is_file())
        if not image and not (tests / "test.sh").is_file():
            reason = "it has no tests/test.sh, so nothing could judge it: add one"
            raise TaskError(reason)
        return VerifierSpec(
            tests=None if carries_tests else tests,
            timeout_seconds=spec.timeout_sec,
            env=interpolate(spec.env, os.environ),
            user=spec.user,
            mode=spec.mode,
            environment=self._verifier_environment(table, folder, carries_tests=carries_tests),
            collect=tuple(hook.command for hook in spec.collect),
            keep_processes=keep,
        )

    def _verifier_environment(
        self, table: TaskToml, folder: Path, *, carries_tests: bool
    ) -> Environment | None:
        """The verifier's container, where anything about it differs from the agent's.

        Its image is its own `docker_image`, or built from `tests/Dockerfile`, and carries the tests; or the task's.
        """
        spec = table.verifier
        if not (spec.environment or carries_tests or spec.network_mode or table.agent.network_mode):
            return None
        declared = spec.environment or table.environment
        if carries_tests:
            image = spec.environment.docker_image if spec.environment else None
        else:
            image = table.environment.docker_image
        declared = declared.model_copy(update={"docker_image": image})
        return self._environment(declared, folder / ("tests" if carries_tests else "environment"), spec)

    def _environment(self, table: EnvironmentTable, context: Path, phase: NetworkTable) -> Environment:
        """A container as declared; the network keys of the phase it serves win over its own."""
        network = phase if phase.network_mode else table
        built = (context / "Dockerfile").is_file()
        if not built and not table.docker_image:
            reason = f"it has neither {context.name}/Dockerfile nor a docker_image: add one of them"
            raise TaskError(reason)
        environment = Environment(
            context=context if built else None,
            image=table.docker_image,
            build_args=self.build_args,
            build_timeout_seconds=table.build_timeout_sec,
            cpus=table.cpus,
            memory_mb=table.memory_mb,
            storage_mb=table.storage_mb,
            env=interpolate(table.env, os.environ),
            workdir=table.workdir,
            network=network.network_mode or "public",
            allowed_hosts=network.hosts,
            healthcheck=_healthcheck(table),
        )
        content = {"files": _tree_digest(context), **environment.model_dump(mode="json", exclude={"context"})}
        return environment.model_copy(update={"digest": _digest(content)})


def _is_task(folder: Path) -> bool:
    """Whether a folder is a task, or so like one that leaving it out would be a silent loss."""
    return any((folder / part).exists() for part in ("task.toml", "instruction.md", "environment"))


def _table(folder: Path) -> TaskToml:
    if not (folder / "task.toml").is_file():
        reason = "it looks like a task and has no task.toml: add one"
        raise TaskError(reason)
    return read_task_toml(folder / "task.toml")


def _check_files(folder: Path) -> None:
    """Raise `TaskError` for files that say, or try, what is not supported here."""
    if (folder / "environment" / "docker-compose.yaml").exists():
        reason = "it needs several containers (environment/docker-compose.yaml), and one is what runs here"
        raise TaskError(reason)
    if not (folder / "environment" / "Dockerfile").exists() and any(_entries(folder, ["environment"])):
        reason = "environment/ holds files and no Dockerfile that copies them into the image: add one"
        raise TaskError(reason)
    if (folder / "trajectory.json").exists():
        reason = "it continues an earlier conversation (trajectory.json), which agents here cannot be given"
        raise TaskError(reason)
    home = folder.resolve()
    for path in _entries(folder, PARTS):
        if path.is_symlink() and not path.resolve().is_relative_to(home):
            reason = (
                f"{path.relative_to(folder)} is a link that leaves the task's folder: replace it by the file"
            )
            raise TaskError(reason)


def _instruction(path: Path) -> str:
    try:
        text = CANARY.sub("", path.read_text("utf-8-sig"))
    except FileNotFoundError:
        text = ""
    except UnicodeDecodeError as error:
        reason = "instruction.md is not UTF-8 text: convert it"
        raise TaskError(reason) from error
    if not text.strip():
        reason = "it has no instruction.md, or an empty one, so there is nothing to ask of an agent: write it"
        raise TaskError(reason)
    return text


def _healthcheck(table: EnvironmentTable) -> Healthcheck | None:
    check = table.healthcheck
    if check is None:
        return None
    return Healthcheck(
        command=check.command,
        interval_seconds=check.interval_sec,
        timeout_seconds=check.timeout_sec,
        start_period_seconds=check.start_period_sec,
        retries=check.retries,
    )


def _unique(tasks: list[Task]) -> list[Task]:
    """The same tasks; one whose name an earlier one has goes by its folder's name and is refused."""
    owner: dict[str, Task] = {}
    unique = []
    for task in tasks:
        first = owner.setdefault(task.name, task)
        if first is not task:
            reason = f"its name {task.name!r} is also that of {first.directory.name}/: rename one of them"
            task = Task(
                name=task.directory.name, dataset=task.dataset, directory=task.directory, refused=reason
            )
        unique.append(task)
    return unique


def _words(value: Any) -> list[str]:
    """A metadata value, one string or several, as lower-case words."""
    values = value if isinstance(value, list) else [value]
    return [word.strip().lower() for word in values if isinstance(word, str) and word.strip()]


def _first(words: list[str]) -> str:
    return words[0] if words else "unknown"


def _entries(folder: Path, parts: Iterable[str] = (".",)) -> Iterator[Path]:
    """Files and links in these parts of a folder, in a stable order; links are not followed, bytecode is left out."""
    for part in parts:
        start = folder / part
        if start.is_symlink() or start.is_file():
            yield start
        for top, folders, files in os.walk(start) if not start.is_symlink() else ():
            here = Path(top)
            links = [name for name in folders if (here / name).is_symlink()]
            folders[:] = sorted(set(folders) - {"__pycache__"})
            yield from (here / name for name in sorted([*files, *links]) if not name.endswith(".pyc"))


def _tree_digest(folder: Path, parts: Iterable[str] = (".",)) -> str:
    """Digest of the files in these parts: path, executable bit and content; the target of a link.

    Where the folder lies, owners and times are no part of it.
    """
    lines = []
    for path in _entries(folder, parts):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            lines.append(["link", name, os.readlink(path)])
        elif path.is_file():
            mode = "executable" if path.stat().st_mode & 0o100 else "file"
            lines.append([mode, name, hashlib.sha256(path.read_bytes()).hexdigest()])
    return _digest(lines)


def _digest(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, ensure_ascii=True)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
