"""Deliverables of an agent that sets up a project, and their results (ExecutionAgent, sections 2.1 and 3.1.2).

<workspace>/project/        the project as published
<workspace>/Dockerfile      the agent's: an image in which the project can be built; its context holds `project/`
<workspace>/run_tests.sh    the agent's: builds the project and runs its tests, as root, in `project/`
<workspace>/results.json    the agent's own numbers of tests: recorded, but not part of any score
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from runner.errors import TaskError
from runner.records import ErrorInfo, Record, Task

WORKSPACE: Final = "/workspace"
PROJECT: Final = "project"
DOCKERFILE: Final = "Dockerfile"
SCRIPT: Final = "run_tests.sh"
RESULTS: Final = "results.json"
TRUTH: Final = "truth.json"
MOST_NAMED: Final = 50_000
"""Largest number of tests of a reading that are kept by name."""


class ProjectToSetUp(Record):
    """Payload of a task of dataset=execution."""

    project: Path
    """Folder of the project as it is published. It exists once the dataset is prepared."""


def project_of(task: Task) -> Path | None:
    """Return the folder of the project in a task's machine; None if the machine has no project.

    Tasks of other datasets have one, too, if their build context has a project at the same path.
    """
    if isinstance(task.payload, ProjectToSetUp):
        return task.payload.project
    project = task.environment.context and task.environment.context / PROJECT
    return project if project and project.is_dir() else None


def fetched_project(task: Task) -> Path:
    """Return the folder of the project as it is published. Raises `TaskError` when it was not fetched."""
    project = project_of(task)
    if not project or not project.is_dir():
        raise TaskError(f"The project of {task.name} is not here: fetch it with job=setup.")
    return project


class Outcomes(Record):
    """Numbers of tests by outcome."""

    passed: int = Field(default=0, ge=0)
    failed: int = Field(default=0, ge=0)
    """Failed tests, including errors and tests that unexpectedly passed."""
    skipped: int = Field(default=0, ge=0)
    """Skipped tests, including expected failures."""

    @property
    def total(self) -> int:
        """Number of all tests."""
        return self.passed + self.failed + self.skipped

    @property
    def words(self) -> str:
        """The numbers of passed, failed and skipped tests as text."""
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"

    def __add__(self, other: Outcomes) -> Outcomes:
        return Outcomes(
            passed=self.passed + other.passed,
            failed=self.failed + other.failed,
            skipped=self.skipped + other.skipped,
        )


Ended = Literal["passed", "failed", "skipped"]
"""Type of a test's outcome."""


class Truth(Record):
    """Ground truth of a project: results of its tests where they are known to work (section 3.1.2)."""

    outcomes: Outcomes
    origin: str
    """Origin of the numbers: our recorded scripts, run here twice, or the source of published figures."""
    digest: str = ""
    """Digest of project, scripts and base image; empty for published figures."""
    tests: dict[str, Ended] = {}
    """Name of each test -> its outcome; empty where `unnamed` says why, and for published figures."""
    unnamed: str = ""
    """Reason why `tests` is empty: a framework gave no names, or gave other ones in the second run."""


class Reading(Record):
    """Results of one run of one test framework."""

    framework: str
    """Test framework: pytest, unittest, jest, mocha, vitest, node, go, cargo, surefire, gradle, ctest, automake or
    tap."""
    outcomes: Outcomes
    tests: dict[str, Ended] = {}
    """Name of each test -> its outcome; empty if the framework did not name every test, and beyond `MOST_NAMED`
    tests."""
    way: Literal["file", "output"]
    """Source of the numbers. file: files that the framework writes for machines. output: its printed output for
    people."""


class Rerun(Record):
    """Result of the two scripts, run from scratch in a sandbox of their own."""

    built: bool
    """True if the image was built and either a test was executed or the script ended with exit code 0."""
    readings: tuple[Reading, ...] = ()
    """Observed runs of frameworks, in their order; empty if no test was executed."""
    script_size: int | None = None
    """Number of commands in both scripts (section 3.1.2); None without one of them."""
    size_dockerfile: int | None = None
    """Number of commands in the `RUN` steps of the Dockerfile."""
    size_script: int | None = None
    """Number of commands in the script."""
    exit_code: int | None = None
    """Exit code of the script; None when it did not end by itself."""
    error: ErrorInfo | None = None
    """Reason why there is no result, or why a part of it does not count."""
    output: str = ""
    """End of the output of the build or the script."""
    image: str = ""
    """Id of the image, which no longer exists; empty when none was built."""
    seconds: float = 0.0

    @property
    def outcomes(self) -> Outcomes | None:
        """Sum of all readings; None when no test was executed."""
        return sum((reading.outcomes for reading in self.readings), Outcomes()) if self.readings else None

    @property
    def tests(self) -> dict[str, Ended]:
        """Name of each test -> its outcome; empty if any reading lacks some of its tests' names."""
        if any(len(one.tests) != one.outcomes.total for one in self.readings):
            return {}
        named = [(f"{one.framework} {name}", end) for one in self.readings for name, end in one.tests.items()]
        return dict(named) if len(dict(named)) == len(named) else {}
