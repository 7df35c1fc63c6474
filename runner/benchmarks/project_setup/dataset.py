"""Projects to be set up and tested, after ExecutionAgent (sections 2.1 and 3.1).

A task is a folder with `task.yaml` (`projects.Project`), our recorded scripts in `solution/` (`Dockerfile`,
`run_tests.sh`), and `truth.json` (`environments.Truth`), the results of the project's tests under these scripts. The
agent gets only the project.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from runner.benchmarks.project_setup import projects
from runner.benchmarks.project_setup.deliverables import (
    DOCKERFILE,
    PROJECT,
    RESULTS,
    SCRIPT,
    TRUTH,
    WORKSPACE,
    ProjectToSetUp,
    Truth,
)
from runner.benchmarks.project_setup.projects import Project
from runner.benchmarks.project_setup.verifier import ProjectSetupVerifier
from runner.benchmarks.sources.references import SOLVE, new_folder
from runner.benchmarks.sources.task_files import (
    check_links,
    chosen_folders,
    digest,
    read_truth,
    short,
    tree_digest,
)
from runner.errors import ConfigError, TaskError
from runner.files import write_atomically
from runner.records import Environment, Record, Task, VerifierSpec
from runner.sweeps.yaml_files import read_yaml

if TYPE_CHECKING:
    from runner.protocols import SandboxProvider
    from runner.report.blocks import Sections

TASK, SOLUTION = "task.yaml", "solution"
INSTRUCTION = f"""\
Make it possible to run the test suite of the project in {WORKSPACE}/{PROJECT} on a machine on which nobody has worked \
with it before.

1. Find out what it needs: read its documentation, its build and package files, what its continuous integration does.
2. Write two scripts that install what is needed, build the project and run all of its tests:
   {WORKSPACE}/{DOCKERFILE} makes an image that has all that is needed. Its build context holds the project as the \
folder `{PROJECT}`, which must come to lie at {WORKSPACE}/{PROJECT}. Let it begin with the lines `ARG BASE` and \
`FROM ${{BASE}}`: that is a Debian 13 with python3 and git, which is surely there, as this machine is. Any other image \
will do if it can be had.
   {WORKSPACE}/{SCRIPT} is run in that image by bash, as root, in {WORKSPACE}/{PROJECT}. It builds what remains to be \
built and runs the tests with the project's own test framework.
3. Try them as far as you can on this machine, and refine them until the tests run. There is no container engine here.
4. Look at what the tests did. If some fail because something is not installed or not set up, mend that.
5. Write {WORKSPACE}/{RESULTS}, an object with the numbers `passed`, `failed` and `skipped` of tests.

These three files are all that counts. The scripts are then run from scratch, elsewhere, on the project as it is \
published: what you change in {WORKSPACE}/{PROJECT} is not there, unless they do it. What the tests do is measured \
there by what test frameworks themselves report; all tests count, and none may be left out, changed or only printed.
Work on your own until it is done; nobody answers questions.
"""


class ProjectSetupBench(Record):
    """Dataset of projects to set up, from a folder of tasks."""

    name: str
    root: Path
    """Absolute folder whose children with a `task.yaml` are the tasks, in the order of their names."""
    image: Path
    """Folder with the Dockerfile of the image in which an agent works; its build context holds the project."""
    npm: Path
    """Folder of build contexts by language. JavaScript's provides the npm that fetches packages."""
    cache: Path
    """Folder for fetched files. Each is fetched once."""
    build_args: dict[str, str] = {}
    pass_threshold: float = Field(default=0.9, ge=0, le=1)
    """Lowest reward with which a trial passes; 0.9 is a deviation of 10% (section 3.2.2)."""
    include: tuple[str, ...] = ()
    """Names of the tasks to use; if empty, all."""
    truthless: bool = False
    """True if tasks without a truth run, too. Their reward is 1.0 if a test was executed."""
    verifier: ProjectSetupVerifier

    @classmethod
    def report_sections(cls) -> Sections:
        """Return the sections on projects, which the report of a sweep shows beside the general ones."""
        from runner.benchmarks.project_setup.report.scores import SECTIONS  # noqa: PLC0415 - brings pandas and matplotlib

        return SECTIONS

    def tasks(self) -> Sequence[Task]:
        """Return every task, sorted by folder; broken tasks and tasks without a truth have `refused` set.

        Raises `ConfigError` when there is no task, or `include` names one that does not exist.
        """
        return [self._task(folder) for folder in self.folders()]

    def folders(self) -> Sequence[Path]:
        """Return the folders of the tasks. Raises `ConfigError` as `tasks` does."""
        found = [path.parent for path in sorted(self.root.glob(f"*/{TASK}"))]
        if not found:
            raise ConfigError(
                f"dataset {self.name}: no folder in {self.root} has a {TASK}. Set dataset.root."
            )
        return chosen_folders(found, self.include, f"dataset {self.name}: {self.root}")

    def prepare(self, say: Callable[[str], None]) -> None:
        """Fetch the projects. Raises `ConfigError` when a project cannot be fetched."""
        for task in self.tasks():
            if not task.refused:
                self.make(task.directory, self.truth(task.directory), say)

    def truth_folders(self, tasks: Sequence[str]) -> list[Path]:
        """Return the folders of these tasks; without names, of all. Raises `ConfigError` as `tasks` does."""
        return [folder for folder in self.folders() if not tasks or folder.name in tasks]

    def find_truth(
        self, folder: Path, scripts: Path | None, sandboxes: SandboxProvider, say: Callable[[str], None]
    ) -> str:
        """Find a truth with the recorded scripts, or with those in `scripts`, which then become the recorded ones.

        `runner.jobs.verify_ground_truth` calls it.
        """
        from runner.benchmarks.project_setup.ground_truth import found_twice, read_scripts  # noqa: PLC0415 - only a job needs it

        delivered = read_scripts(scripts or folder / SOLUTION)
        found = found_twice(self.make(folder, None, say), delivered, sandboxes)
        for name, text in ((DOCKERFILE, delivered.dockerfile), (SCRIPT, delivered.script)):
            if scripts and text is not None:
                write_atomically(folder / SOLUTION / name, text.encode())
        truth = found.model_copy(update={"digest": self.truth_digest(folder)})
        write_atomically(folder / TRUTH, truth.model_dump_json(indent=1).encode() + b"\n")
        return f"{truth.outcomes.words}, twice{truth.unnamed and f'; no names of tests: {truth.unnamed}'}"

    def make(self, folder: Path, truth: Truth | None, say: Callable[[str], None]) -> Task:
        """Make everything of a task that the cache lacks, and return the task with this truth.

        Raises `TaskError` for a broken task, and what `prepare` raises.
        """
        project = self.project(folder)
        projects.fetch(project, folder, self.image, self.npm, self.cache, say)
        task = self._complete(folder, project, truth)
        if task.solution:
            with new_folder(task.solution, f"the oracle of {folder.name}", say) as place:
                if place:
                    _write_oracle(folder, truth, place)
        return task

    def project(self, folder: Path) -> Project:
        """Read `task.yaml`. Raises `TaskError` when that is not possible."""
        try:
            return read_yaml(folder / TASK, Project, TASK)
        except ConfigError as error:
            raise TaskError(str(error)) from error

    def truth(self, folder: Path) -> Truth | None:
        """Return the ground truth of a task. None is possible only for a dataset that needs no truth.

        Raises `TaskError` when the truth is missing, or belongs to other scripts, another project or another image.
        """
        found = read_truth(folder / TRUTH, Truth)
        if found is None and not self.truthless:
            raise TaskError("Nobody has recorded what its tests do here: run job=verify_ground_truth.")
        if found and found.digest and found.digest != self.truth_digest(folder):
            raise TaskError(
                "Its project, scripts or image are not those whose ground truth is stored: run "
                "job=verify_ground_truth."
            )
        return found

    def truth_digest(self, folder: Path) -> str:
        """Return the digest of everything that a ground truth depends on: project, recorded scripts, base image."""
        scripts = tree_digest(folder, (SOLUTION,))
        return digest([self.project(folder).identity, scripts, tree_digest(self.image), self.build_args])

    def _task(self, folder: Path) -> Task:
        task = Task(name=folder.name, dataset=self.name, directory=folder)
        try:
            check_links(folder, (TASK, SOLUTION, TRUTH))
            task = task.model_copy(update={"digest": tree_digest(folder)})
            project = self.project(folder)
            task = task.model_copy(update=_strata(project))
            return self._complete(folder, project, self.truth(folder))
        except TaskError as error:
            return task.model_copy(update={"refused": str(error)})

    def _complete(self, folder: Path, project: Project, truth: Truth | None) -> Task:
        """Return the task with all its fields. Pure, except for the files that it reads."""
        # Names of tests decide no reward, so that a truth that gains them leaves finished trials finished.
        known = truth.model_dump(mode="json", exclude={"tests", "unnamed"}) if truth else None
        scripts = tree_digest(folder, (SOLUTION,))
        limits = [project.build_seconds, project.test_seconds]
        shaping = [project.identity, scripts, known, limits, INSTRUCTION, self.verifier.shaping]
        recorded = all((folder / SOLUTION / name).is_file() for name in (DOCKERFILE, SCRIPT))
        context = projects.context(project, self.image, self.cache)
        return Task(
            name=folder.name,
            dataset=self.name,
            directory=folder,
            digest=digest(shaping),
            **_strata(project),
            instruction=INSTRUCTION,
            environment=self._environment(project, folder.name, context),
            verifier=VerifierSpec(mode="separate", tests=folder, timeout_seconds=project.test_seconds),
            payload=ProjectToSetUp(project=context / PROJECT),
            solution=self.cache / "set_up" / short(digest([scripts, known])) if recorded else None,
        )

    def _environment(self, project: Project, name: str, context: Path) -> Environment:
        return Environment(
            name=name,
            context=context,
            build_args=self.build_args,
            build_timeout_seconds=project.build_seconds,
            workdir=WORKSPACE,
            network="public",
            digest=digest([project.identity, tree_digest(self.image), self.build_args]),
        )


def _write_oracle(folder: Path, truth: Truth | None, into: Path) -> None:
    """Write the solution that `oracle` applies: the recorded scripts and their known results."""
    source = into / "source"
    source.mkdir()
    for name in (DOCKERFILE, SCRIPT):
        shutil.copyfile(folder / SOLUTION / name, source / name)
    (source / RESULTS).write_text(json.dumps(truth.outcomes.model_dump() if truth else {}))
    (into / "solve.sh").write_text(SOLVE)


def _strata(project: Project) -> dict[str, str]:
    """Return the fields of a task by which reports group projects."""
    return {"tier": project.tier, "category": project.category, "language": project.language}
