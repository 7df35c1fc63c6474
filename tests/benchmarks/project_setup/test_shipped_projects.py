"""Shipped projects: their recorded scripts reproduce the truth, and doing nothing executes no test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from metrics.execution import CI
from runner.agents.bounds import Nop, Oracle
from runner.benchmarks.project_setup.dataset import TASK
from runner.benchmarks.project_setup.deliverables import Truth, fetched_project
from runner.benchmarks.project_setup.ground_truth import ORIGIN
from runner.benchmarks.project_setup.projects import Project
from runner.benchmarks.project_setup.tree import strata
from runner.benchmarks.project_setup.verifier import measured_in
from runner.gateway import Gateway
from runner.protocols import Agent
from runner.records import Budget, Environment, ExecSpec, SandboxSpec, TrialRecord
from runner.resources import ROOT
from runner.sandbox.docker import base_image
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sweeps.cells import NO_MODEL, Cell
from runner.sweeps.plan import make_plan
from runner.sweeps.store import Store
from runner.sweeps.yaml_files import read_yaml
from runner.trials.context import TrialContext
from runner.trials.run import run_to_the_end
from tests.support.project_factory import project_bench
from tests.support.shipped_tools import EVERY

SHIPPED = ROOT / "tasks" / "execution"
NAMES = sorted(path.parent.name for path in SHIPPED.glob(f"*/{TASK}"))
TRIED = NAMES if EVERY else ["cjson", "pflag", "process-warning", "toolz", "try-tiny"]
"""Projects whose recorded scripts are run: of five languages and frameworks, or with ASSAY_EVERY_CASE in the
environment all. What all of them say about their truth is checked without running them."""
BUSY_SECONDS = 1800
"""Time limit for a project. An empty cache means that the tools of four languages are installed."""
ASKS_A_MIRROR = (
    "apt-get update -qq -o APT::Update::Error-Mode=any -o Acquire::http::Timeout=30 -o Acquire::Languages=none "
    "-o Acquire::IndexTargets::deb::Packages::DefaultEnabled=false"
)
"""Command that fails without a mirror, and fetches no list of packages."""
SUBMODULES = {"libcbor": "doxygen-theme", "referencing": "suite"}
"""Project -> folder of the submodule that it names."""
SUITES = {"jsonschema": "json", "referencing": "suite", "toml": "internal/toml-test"}
"""Project -> folder in it that is a whole suite of another repository, from which its own tests are made."""
TESTED_BY_CI = {"cjson", "libcbor", "pflag", "process-warning", "referencing"}
"""Projects whose files of continuous integration run their tests. With ASSAY_EVERY_CASE all are looked at."""
PERMISSIVE = {"Apache-2.0", "Artistic-2.0", "BSD-3-Clause", "ISC", "MIT", "MIT OR Apache-2.0", "Zlib"}

Try = Callable[[str, Agent], TrialRecord]


def truth_of(name: str) -> Truth:
    return Truth.model_validate_json((SHIPPED / name / "truth.json").read_bytes())


@pytest.mark.parametrize("name", NAMES)
def test_a_project_is_pinned_and_its_truth_is_ours(name: str, tmp_path: Path) -> None:
    project = read_yaml(SHIPPED / name / TASK, Project, TASK)
    assert project.digest.startswith("sha512-" if project.source == "npm" else "sha256:")
    assert project.license in PERMISSIVE
    assert project.what
    assert project.tier in ("easy", "medium", "hard")
    (task,) = project_bench(SHIPPED, tmp_path, include=(name,)).tasks()
    assert task.refused is None
    truth = truth_of(name)
    assert truth.origin == ORIGIN
    assert truth.outcomes.passed > 0
    ends = Counter(truth.tests.values())
    assert bool(ends) is not bool(truth.unnamed), "agreement test by test needs the names, or a reason"
    if ends:
        assert (ends["passed"], ends["failed"], ends["skipped"]) == tuple(
            truth.outcomes.model_dump().values()
        )


def test_there_are_several_languages_and_ways_to_build() -> None:
    shipped = [read_yaml(SHIPPED / name / TASK, Project, TASK) for name in NAMES]
    assert len(shipped) >= 30
    assert sum((project.language, project.framework) == ("java", "surefire") for project in shipped) >= 3
    assert sum(truth_of(name).outcomes.total > 1000 for name in NAMES) >= 5
    assert {project.language for project in shipped} >= {
        "python",
        "javascript",
        "c",
        "c++",
        "go",
        "perl",
        "rust",
        "java",
    }
    assert {project.category for project in shipped} >= {"plain", "native", "autotools", "cmake", "modules"}
    tried = [project for project, name in zip(shipped, NAMES, strict=True) if name in TRIED]
    assert len({project.language for project in tried}) >= 5
    assert len({project.framework for project in tried}) >= 5


@pytest.fixture(scope="session")
def cache(common: Path) -> Path:
    """Return the folder for fetched projects."""
    base_image.ensure(connect(), print)
    return common / "projects"


@pytest.fixture(scope="session")
def _packages() -> None:
    """Skip tests that install Debian's packages if the engine's network reaches no mirror."""
    base_image.ensure(connect(), print)
    environment, sandboxes = Environment(image=base_image.tag()), DockerSandboxes()
    image = sandboxes.image(environment)
    spec = SandboxSpec(name="mirror", image=image, environment=environment, user="root", network="open")
    with sandboxes.open(spec) as sandbox:
        asked = sandbox.exec(ExecSpec(argv=("sh", "-c", ASKS_A_MIRROR), timeout_seconds=BUSY_SECONDS / 6))
    if asked.exit_code != 0:
        pytest.skip(f"containers reach no mirror of Debian's packages: {asked.stderr.strip()}")


@pytest.mark.docker
@pytest.mark.timeout(BUSY_SECONDS)
@pytest.mark.usefixtures("_packages")
def test_three_have_what_is_like_a_submodule_and_three_are_tested_by_ci(cache: Path) -> None:
    looked_at = NAMES if EVERY else sorted({*SUBMODULES, *SUITES, *TESTED_BY_CI})
    dataset = project_bench(SHIPPED, cache, include=tuple(looked_at))
    dataset.prepare(print)
    trees = {task.name: fetched_project(task) for task in dataset.tasks()}
    read = {name: strata(tree) for name, tree in trees.items()}
    assert {name for name in read if read[name]["tree_submodules"]} == {*SUBMODULES}
    assert [name for name, folder in SUBMODULES.items() if any((trees[name] / folder).glob("*"))] == [
        "referencing"
    ]
    assert all(any((trees[name] / folder).glob("*")) for name, folder in SUITES.items())
    assert len({*SUBMODULES, *SUITES}) >= 3
    tested = {name for name in read if CI[int(read[name]["tree_ci"])] == "builds and tests"}
    assert tested >= TESTED_BY_CI
    assert len(tested) >= (19 if EVERY else 3)


@pytest.fixture
def attempt(tmp_path: Path, cache: Path) -> Try:
    """Return a function that runs one trial of a shipped project."""

    def attempt(name: str, agent: Agent) -> TrialRecord:
        dataset = project_bench(SHIPPED, cache, include=(name,))
        dataset.prepare(print)
        sandboxes = DockerSandboxes()
        cell = Cell(agent=agent, model=NO_MODEL, dataset=dataset, budget=Budget(), attempts=1)
        (trial,) = make_plan([cell], sandboxes, lambda _: ()).trials
        context = TrialContext(sandboxes, Gateway(tmp_path), Store(tmp_path / "outputs"), "test", {})
        return run_to_the_end(trial, context, 0, lambda: False)

    return attempt


@pytest.mark.docker
@pytest.mark.timeout(BUSY_SECONDS)
@pytest.mark.usefixtures("_packages")
@pytest.mark.parametrize("name", TRIED)
def test_recorded_scripts_reproduce_the_truth(attempt: Try, tmp_path: Path, name: str) -> None:
    record = attempt(name, Oracle())
    assert (record.status, record.reward) == ("completed", 1.0), record.verdict
    assert record.verdict
    figures = record.verdict.components
    assert {name: figures[name] for name in ("built", "tests_executed", "total_deviation", "close")} == {
        "built": 1.0,
        "tests_executed": 1.0,
        "total_deviation": 0.0,
        "close": 1.0,
    }
    measured = measured_in(Store(tmp_path / "outputs").folder(record.key))
    assert measured
    truth = truth_of(name)
    assert measured.outcomes == truth.outcomes
    if truth.tests:
        assert measured.tests == truth.tests
        assert figures["tests_same"] == figures["tests_compared"] == truth.outcomes.total
    framework = read_yaml(SHIPPED / name / TASK, Project, TASK).framework
    assert {reading.framework for reading in measured.readings} == {framework}


@pytest.mark.docker
@pytest.mark.timeout(BUSY_SECONDS)
def test_an_agent_that_does_nothing_executes_no_test(attempt: Try) -> None:
    """One project is enough: without a script, nothing of a project is looked at."""
    record = attempt(NAMES[0], Nop())
    assert (record.status, record.reward) == ("completed", 0.0), record.verdict
    assert record.verdict
    assert record.verdict.components["tests_executed"] == 0.0
