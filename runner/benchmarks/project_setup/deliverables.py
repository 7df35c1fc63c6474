"""What an agent delivers that sets up a project, and what came of it (ExecutionAgent, sections 2.1 and 3.1.2).

<workspace>/project/        the project, as it is published
<workspace>/Dockerfile      the agent's: an image in which it can be built; its context holds `project/`
<workspace>/run_tests.sh    the agent's: builds it and runs its tests; runs in `project/`, as root
<workspace>/results.json    the agent's own account of what its tests did: recorded, and no part of any score
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from runner.errors import EngineError
from runner.records import ErrorInfo, Record, Task

WORKSPACE: Final = "/workspace"
PROJECT: Final = "project"
DOCKERFILE: Final = "Dockerfile"
SCRIPT: Final = "run_tests.sh"
RESULTS: Final = "results.json"
TRUTH: Final = "truth.json"


class ProjectToSetUp(Record):
    """Payload of a task of dataset=execution."""

    project: Path
    """Folder of the project as it is published, there once the dataset is prepared."""


def project_of(task: Task) -> Path | None:
    """Return the folder of the project that a task's machine holds; None if it holds none.

    Other datasets' tasks hold one, too, if their build context has it at its place.
    """
    if isinstance(task.payload, ProjectToSetUp):
        return task.payload.project
    project = task.environment.context and task.environment.context / PROJECT
    return project if project and project.is_dir() else None


def fetched_project(task: Task) -> Path:
    """Return the folder of the project as it is published. Raises `EngineError` when it is not here."""
    project = project_of(task)
    if not project or not project.is_dir():
        raise EngineError(f"The project of {task.name} is not here: fetch it with job=setup.")
    return project


class Outcomes(Record):
    """Numbers of tests by what became of them."""

    passed: int = Field(default=0, ge=0)
    failed: int = Field(default=0, ge=0)
    """Errors, and tests that were to fail and passed, included."""
    skipped: int = Field(default=0, ge=0)
    """Tests that were to fail and did, included."""

    @property
    def total(self) -> int:
        """All tests that were looked at."""
        return self.passed + self.failed + self.skipped

    @property
    def words(self) -> str:
        """The three numbers, for people."""
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"

    def __add__(self, other: Outcomes) -> Outcomes:
        return Outcomes(
            passed=self.passed + other.passed,
            failed=self.failed + other.failed,
            skipped=self.skipped + other.skipped,
        )


class Truth(Record):
    """What a project's tests do where they are known to work: the ground truth of section 3.1.2."""

    outcomes: Outcomes
    origin: str
    """How it was found: our recorded scripts, run twice here; or where somebody else's figures are from."""
    digest: str = ""
    """Of what it rests on (project, scripts, base image); empty for somebody else's figures."""


class Reading(Record):
    """Results of one run of one test framework."""

    framework: str
    """pytest, unittest, jest, mocha, vitest, node, go, cargo, surefire, gradle, ctest, automake, tap."""
    outcomes: Outcomes
    way: Literal["file", "output"]
    """file: what the framework writes for machines. output: what it prints for people."""


class Rerun(Record):
    """What two scripts did, from scratch, in a sandbox of their own."""

    built: bool
    """The image was built, and the project in it as far as one of its tests was run or the script ended with 0."""
    readings: tuple[Reading, ...] = ()
    """Every run of a framework that was seen, in their order; none: no test was executed."""
    script_size: int | None = None
    """Commands of the script (section 3.1.2); None: there is no script."""
    exit_code: int | None = None
    """Of the script; None when it did not end by itself."""
    error: ErrorInfo | None = None
    """Why there is no result, or why what there is does not count."""
    output: str = ""
    """End of what the build or the script printed."""
    image: str = ""
    """Id of the image, which is gone; empty when none was built."""
    seconds: float = 0.0

    @property
    def outcomes(self) -> Outcomes | None:
        """Of all readings together; None when no test was executed."""
        return sum((reading.outcomes for reading in self.readings), Outcomes()) if self.readings else None
