"""Read tasks in Harbor's on-disk format, that of Terminal-Bench 2, SkillsBench and `quickstart`.

A task is a folder: `task.toml`, `instruction.md`, `environment/`, `tests/`, `solution/`. A dataset is a folder of
such folders. A task that cannot be run here (a GPU, Windows, ...) has `refused` set, so that it stays in every
denominator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from runner.benchmarks.harbor import unknown_keys
from runner.benchmarks.harbor.artifacts import PUBLISHED
from runner.benchmarks.harbor.compose_file import ComposeFile, read_compose
from runner.benchmarks.harbor.folders import Roots, each_root, mentions_skills, named_source
from runner.benchmarks.harbor.host_environment import HostEnvironment
from runner.benchmarks.harbor.machines import Machines, sets_entrypoint
from runner.benchmarks.harbor.steps import FOLDER, with_steps
from runner.benchmarks.harbor.truth import TRUTH, HarborTruth, in_mode, read_modes
from runner.benchmarks.harbor.verifier import LIVE_FRESH, HarborVerifier
from runner.benchmarks.sources.task_files import (
    PARTS,
    check_files,
    check_links,
    digest,
    is_task,
    read_instruction,
    read_truth,
    tree_digest,
)
from runner.benchmarks.sources.task_toml import TaskToml, read_task_toml
from runner.errors import ConfigError, TaskError
from runner.files import write_atomically
from runner.protocols import SandboxProvider
from runner.records import Environment, Record, Task, VerifierSpec
from runner.sweeps.core_sets import read_core_set

OPEN = ("/logs/agent", PUBLISHED)
"""Folders that exist in the machine of every Harbor agent and solution."""
SOLUTION_FAILS = "solution_fails"
"""Flag of a task that judges no agent here: its own solution fails, or an untouched machine passes."""
UNKNOWN = "unknown"
"""Stratum of a task that names none."""
ONCE_DECLARED: dict[str, Any] = {"cases": None, "install": "", "reference": {}}
"""Fields that `VerifierSpec` no longer has. They stay in the digest, so that finished trials keep their keys."""
_LANGUAGES = """
    bash c c++ c# clojure cobol cpp css elixir erlang fortran go golang haskell html java javascript julia kotlin lean
    lisp lua ocaml perl php prolog python r ruby rust scala scheme shell sql swift typescript verilog zig
"""
LANGUAGES = frozenset(_LANGUAGES.split())
"""Tags that count as a task's language if its metadata names no language."""


class HarborDataset(Record):
    """A folder of Harbor tasks, or a single task's folder."""

    name: str
    root: Roots
    """Absolute path of the folder. Its immediate children are the tasks, in the order of their names. Several folders
    are a list, or a mapping from the source of their tasks to the folder."""
    pass_threshold: float = Field(default=1.0, ge=0, le=1)
    """Lowest reward with which a trial passes."""
    build_args: dict[str, str] = {}
    """Build arguments of every Dockerfile, such as the base image of this machine."""
    verifier: HarborVerifier = HarborVerifier()
    """Settings of the verifier: the key of the reward, and whether there is a second verdict."""
    tier_from: str = "difficulty"
    """Key of a task's `[metadata]` that is its tier."""
    sources: dict[str, tuple[str, ...]] = {}
    """Source -> globs over the names of its tasks, for a folder with tasks of several benchmarks. The first that
    matches counts; then the name that `root` gives the folder; then a task's own `source`, at the top of its file or in
    `[metadata]`; then, if there are several folders, the name of the task's."""
    beside: tuple[str, ...] = ()
    """Globs over names of tasks whose result is a running service: the tests run beside the agent's machine and reach
    its TCP ports. Replaces what `job=verify_ground_truth` found; see `truth`."""
    keep_processes: tuple[str, ...] = ()
    """Globs over names of tasks that are judged in the live container, with everything that the agent leaves running.
    Comes before `beside`."""
    modes: Path | None = None
    """File with the modes of tasks, by the names of their folders, for tasks without a `truth.json` of their own."""
    include: tuple[str, ...] = ()
    """Globs over the names of the tasks that make up the dataset, and so every denominator; if empty, all tasks. Here
    and in all other globs over names, one that matches the last part of `owner/task` matches the task."""
    exclude: tuple[str, ...] = ()
    """Globs over the names of tasks that are not part of the dataset."""
    skills: Literal["present", "absent"] = "present"
    """present: every agent sees the skills of a task's image, in a folder that it reads. absent: they are removed."""
    env: tuple[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], ...] = ()
    """Names of this machine's environment variables that tasks may read as `${NAME}`. The values enter sandboxes."""
    core_set: Path | None = None
    """File that `job=core_set` wrote; the dataset consists of its tasks."""

    def tasks(self) -> Sequence[Task]:
        """Return every selected task, sorted by folder; those that cannot be run here have `refused` set.

        Raises `ConfigError` if there is no task, a glob above matches none, or a task of the core set is missing.
        """
        tasks = _unique([self._task(folder) for folder in self._every_folder()])
        for glob in (
            *self.include,
            *self.exclude,
            *self.beside,
            *self.keep_processes,
            *chain(*self.sources.values()),
        ):
            if not any(_matches(task.name, [glob]) for task in tasks):
                names = ", ".join(task.name for task in tasks[:20])
                raise ConfigError(f"dataset {self.name}: no task is called {glob!r}. It has {names}.")
        selected = [task for task in tasks if not self.include or _matches(task.name, self.include)]
        selected = [task for task in selected if not _matches(task.name, self.exclude)]
        return selected if self.core_set is None else self._core(selected, self.core_set)

    def _core(self, tasks: Sequence[Task], file: Path) -> Sequence[Task]:
        core = read_core_set(file, "dataset.core_set").names
        if absent := core - {task.name for task in tasks}:
            raise ConfigError(f"dataset {self.name}: it has no task {', '.join(sorted(absent))} of {file}.")
        return [task for task in tasks if task.name in core]

    def prepare(self, say: Callable[[str], None]) -> None:
        """Say which tasks cannot judge an agent here, and name unknown keys of their files.

        Images are built or pulled when they are needed.
        """
        for note in unknown_keys.notes(self._every_folder()):
            say(note)
        for task in self.tasks():
            truth = None if task.refused else self._truth(task.directory)
            if truth and truth.complaint:
                say(f"{task.name} is flagged {SOLUTION_FAILS}: {truth.complaint}")

    def truth_folders(self, tasks: Sequence[str]) -> list[Path]:
        """Return the folders of these names; without names, those of all tasks that can run and have a solution."""
        every = self.tasks()
        if tasks:
            return [task.directory for task in every if task.directory.name in tasks]
        return [task.directory for task in every if task.solution and not task.refused and not task.steps]

    def find_truth(
        self, folder: Path, scripts: Path | None, sandboxes: SandboxProvider, say: Callable[[str], None]
    ) -> str:
        """Find the mode in which a task can be judged (`runner.jobs.verify_ground_truth`), and write it down."""
        from runner.benchmarks.harbor.ground_truth import find_mode  # noqa: PLC0415 - only the job needs it

        if scripts:
            raise ConfigError("job.scripts: Harbor tasks have their own solution; leave it out.")
        task = self._task(folder)
        if task.steps:
            raise TaskError(
                "It has steps, each of which is judged on a copy of the machine: there is no mode to find."
            )
        if task.refused or not task.solution:
            raise TaskError(task.refused or "It has no solution/solve.sh to try.")
        truth = find_mode(self, task, sandboxes, self._tried(folder), say)
        write_atomically(folder / TRUTH, truth.model_dump_json(indent=1).encode() + b"\n")
        if truth.complaint:
            raise TaskError(truth.complaint)
        ports = f", TCP ports {', '.join(map(str, truth.ports))}" if truth.ports else ""
        return f"judged in mode {truth.mode}{ports}; the solution passes twice, an untouched machine does not"

    def _tried(self, folder: Path) -> str:
        """Return a digest of everything that decides in which mode a task can be judged."""
        tried = {
            "files": tree_digest(folder, PARTS),
            "build_args": self.build_args,
            "threshold": self.pass_threshold,
            "reward_key": self.verifier.reward_key,
        }
        return digest(tried)

    def _truth(self, folder: Path) -> HarborTruth | None:
        """Return what was found about a task's files, if anything. Raises `TaskError`, `ConfigError`."""
        if (truth := read_truth(folder / TRUTH, HarborTruth)) and truth.digest == self._tried(folder):
            return truth
        truth = read_modes(self.modes).get(folder.name) if self.modes else None
        return truth if truth and truth.digest in ("", self._tried(folder)) else None

    def _in_its_mode(self, spec: VerifierSpec, folder: Path, name: str) -> VerifierSpec:
        """Return a verifier in the mode that was typed or found. A separate verifier stays one."""
        if spec.mode == "separate":
            return spec.model_copy(update={"keep_processes": _matches(name, self.keep_processes)})
        if _matches(name, self.keep_processes):
            return in_mode(spec, "live")
        if _matches(name, self.beside):
            return in_mode(spec, "beside")
        truth = self._truth(folder)
        return truth.applied(spec) if truth else spec

    def _every_folder(self) -> list[Path]:
        return [folder for root in each_root(self.root) for folder in self._folders(root)]

    def _folders(self, root: Path) -> list[Path]:
        if not root.is_dir():
            raise ConfigError(
                f"dataset {self.name}: {root} is not a folder. Set dataset.root to a folder of tasks."
            )
        if is_task(root):
            return [root]
        try:
            children = sorted(child for child in root.iterdir() if child.is_dir())
            folders = [child for child in children if is_task(child)]
            deeper = [] if folders else [child for child in children if any(map(is_task, child.iterdir()))]
        except OSError as error:
            raise ConfigError(
                f"dataset {self.name}: {error.filename} cannot be read ({error.strerror})."
            ) from error
        if not folders:
            advice = deeper[0] if deeper else "a folder whose children hold a task.toml"
            raise ConfigError(
                f"dataset {self.name}: there is no task in {root}. Set dataset.root to {advice}."
            )
        return folders

    def _task(self, folder: Path) -> Task:
        """Return one task, complete or refused. A refused task keeps the fields that could be read, for the plan."""
        task = Task(name=folder.name, dataset=self.name, directory=folder)
        try:
            check_links(folder)
            task = task.model_copy(update={"digest": tree_digest(folder, PARTS)})
            table = read_task_toml(folder / "task.toml")
            if table.steps:
                parts = (*PARTS, FOLDER)
                check_links(folder, parts)
                task = task.model_copy(update={"digest": tree_digest(folder, parts)})
            task = task.model_copy(update=self._strata(folder, table))
            return self._complete(task, table)
        except TaskError as error:
            return task.model_copy(update={"refused": str(error)})
        except OSError as error:
            return task.model_copy(update={"refused": f"{error.filename} cannot be read ({error.strerror})."})

    def _source(self, folder: Path, name: str, table: TaskToml) -> str:
        """Return the benchmark that a task was taken from; see `sources`."""
        for source, globs in self.sources.items():
            if _matches(name, globs):
                return source
        own = named_source(self.root, folder) or table.source or _first(_words(table.metadata.get("source")))
        several = not isinstance(self.root, Path)
        return folder.parent.name if several and own == UNKNOWN else own

    def _strata(self, folder: Path, table: TaskToml) -> dict[str, str]:
        """Return the task's name and the fields that results are grouped by."""
        metadata = table.metadata
        tags = [*_words(metadata.get("tags")), *_words(table.task.keywords if table.task else ())]
        languages = _words(metadata.get("language")) or _words(metadata.get("languages"))
        name = table.task.name if table.task else folder.name
        return {
            "name": name,
            "source": self._source(folder, name, table),
            "tier": _first(_words(metadata.get(self.tier_from))),
            "category": _first(_words(metadata.get("category"))),
            "language": _first(languages or [tag for tag in tags if tag in LANGUAGES]),
        }

    def _complete(self, task: Task, table: TaskToml) -> Task:
        """Return a task with all its fields. Raises `TaskError` if it cannot be run here."""
        folder = task.directory
        table.check()
        check_files(folder)
        host = HostEnvironment(self.env)
        machines = Machines(host.fill, self.build_args)
        compose = read_compose(folder / "environment", table.environment, self.build_args, host)
        environment = _agents_machine(machines, table, folder, compose)
        verifier = self._judged(machines, table, task)
        declared = self._judged(Machines(dict, self.build_args), table, task)
        truth = None if table.steps else self._truth(folder)
        solution_env, solution_refused = _solution_env(table, host)
        settings = {
            "host_env": host.used_names(*table.declared_env(), compose.declared_env() if compose else {}),
            "skills": self._skills(table, folder),
        }
        known = {"name", "dataset", "directory", "tier", "category", "language", "source"}
        whole = Task(
            **task.model_dump(include=known),
            **settings,
            digest=digest(self._identity(task, table, environment, (verifier, declared), settings)),
            instruction="" if table.steps else read_instruction(folder / "instruction.md"),
            environment=environment,
            agent_timeout_seconds=table.agent.timeout_sec,
            agent_user=table.agent.user,
            verifier=verifier,
            artifacts=table.artifact_paths(),
            entrypoint=True,
            skills_dir=table.environment.skills_dir,
            open_dirs=OPEN,
            fresh_dirs=LIVE_FRESH if verifier.keep_processes else (),
            solution=folder / "solution" if (folder / "solution" / "solve.sh").is_file() else None,
            solution_env=solution_env,
            solution_refused=solution_refused,
            flags=(SOLUTION_FAILS,) if truth and truth.complaint else (),
        )
        if not table.steps:
            return whole
        return with_steps(whole, table, lambda seen, tests: machines.verifier(seen, folder, tests))

    def _judged(self, machines: Machines, table: TaskToml, task: Task) -> VerifierSpec:
        """Return the way in which a task is judged; that of a task with steps is each step's own."""
        if not table.steps:
            return self._in_its_mode(machines.verifier(table, task.directory), task.directory, task.name)
        if _matches(task.name, (*self.keep_processes, *self.beside)):
            raise TaskError(
                "It has steps, between which no process lives on: take it out of dataset.keep_processes and "
                "dataset.beside."
            )
        return VerifierSpec()

    def _skills(self, table: TaskToml, folder: Path) -> Literal["present", "absent"] | None:
        """Return what becomes of the skills that a task brings; None if it brings none."""
        brings = table.environment.skills_dir or mentions_skills(folder / "environment")
        return self.skills if brings else None

    def _identity(
        self,
        task: Task,
        table: TaskToml,
        environment: Environment,
        verifiers: tuple[VerifierSpec, VerifierSpec],
        settings: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Return everything that decides what a trial of a task is, for its digest.

        `verifiers` are the verifier and the same as its file declares it, without values of this machine. Settings
        without a value are left out, so that the tasks that have none keep their digests.
        """
        verifier, declared = verifiers
        return {
            "name": task.name,
            "files": task.digest,
            "environment": environment.digest,
            "verifier": ONCE_DECLARED
            | declared.model_dump(mode="json", exclude={"tests": True, "environment": {"context"}}),
            "solution_env": table.solution.env,
            **{name: value for name, value in settings.items() if value},
            **({"entrypoint": True} if sets_entrypoint(environment, verifier.environment) else {}),
            "pass_threshold": self.pass_threshold,
            "reading": self.verifier.model_dump(mode="json", exclude_none=True),
        }


def _agents_machine(
    machines: Machines, table: TaskToml, folder: Path, compose: ComposeFile | None
) -> Environment:
    """Return the agent's machine, with what a Compose file says of it."""
    own = table.environment
    if compose and compose.image:
        own = own.model_copy(update={"docker_image": compose.image})
    environment = machines.environment(own, folder / "environment", table.agent)
    return compose.applied(environment) if compose else environment


def _solution_env(table: TaskToml, host: HostEnvironment) -> tuple[dict[str, str], str | None]:
    """Return the solution's variables, and why it cannot have them, if so. That concerns only the agent `oracle`."""
    try:
        return host.fill(table.solution.env), None
    except TaskError as error:
        return {}, str(error)


def _unique(tasks: list[Task]) -> list[Task]:
    owners: dict[str, Task] = {}
    return [_refuse_twin(task, owners.setdefault(task.name, task)) for task in tasks]


def _refuse_twin(task: Task, owner: Task) -> Task:
    """Refuse a task whose name belongs to an earlier task, `owner`. The refused task is named after its folder, and
    after the one that it is in if that is the same name.
    """
    if task is owner:
        return task
    folder = task.directory
    name = f"{folder.parent.name}/{folder.name}" if folder.name == owner.name else folder.name
    reason = f"Its name {task.name!r} is also that of {owner.directory.name}/: rename one of them."
    return task.model_copy(update={"name": name, "refused": reason})


def _matches(name: str, globs: Iterable[str]) -> bool:
    """Return whether a glob matches a task's name, or its last part: `owner/task` is also called `task`."""
    last = name.rpartition("/")[2]
    return any(fnmatchcase(name, glob) or fnmatchcase(last, glob) for glob in globs)


def _words(value: Any) -> list[str]:
    """Return a value of the metadata, which is a word or a list of words, as a list of lower-case words."""
    values = value if isinstance(value, list | tuple) else [value]
    return [str(word).strip().lower() for word in values if isinstance(word, str | int) and str(word).strip()]


def _first(words: list[str]) -> str:
    return words[0] if words else UNKNOWN
