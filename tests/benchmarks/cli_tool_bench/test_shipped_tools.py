"""The shipped tasks and the benchmark's own cases: the reference gets reward 1 on all of them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from metrics.differential import METRICS
from runner.agents.bounds import Nop, Oracle
from runner.benchmarks.cli_tool_bench.case_file import read_cases
from runner.benchmarks.cli_tool_bench.reference_runs import StoredCases
from runner.benchmarks.cli_tool_bench.verifier import DETAILS
from runner.gateway import Gateway
from runner.protocols import Agent
from runner.records import Budget, TrialRecord
from runner.records.cases import CaseResult
from runner.sandbox.docker import base_image
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sweeps.cells import NO_MODEL, Cell
from runner.sweeps.plan import make_plan
from runner.sweeps.store import Store
from runner.trials.context import TrialContext
from runner.trials.run import run_to_the_end
from tests.support.prompt_examples import HEADING, chosen, section
from tests.support.shipped_tools import EVERY, ONE_OF_A_LANGUAGE, SHIPPED, SOME_BY_HAND, some_made
from tests.support.tool_task_factory import furnished, tool_dataset

pytestmark = pytest.mark.docker

JUDGE = {"model": {"name": "nobody", "id": "openai/x", "api_base": "http://judge.example"}, "usd": 1.0}
"""A judge that is never asked, as equal outputs need none."""
PREFERRED = ("rankline", "gridcast", "labelpick")
"""Made tasks that are run if they are there; of a language without one of them, the first is. Go's has modules that it
requires but no server: compiling one takes half a minute, twice."""
STRIDE = 1 if EVERY else 10
"""Every n-th case of a task is run, and those in a prompt that was written by hand. `make every-case` runs all cases of
all tasks three times."""
BUSY_SECONDS = 1800
"""Limit for hundreds of processes: seconds on two idle cores, many minutes on busy ones."""
FILES_TO_PROMPT = """\
tool = "files-to-prompt"
language = "python"
category = "Utility Libraries"

[reference]
source = "pypi"
package = "files-to-prompt"
version = "0.6"
digest = "sha256:83d9a8b33246a10233218716a5c78034da4f5614748eda2f0ab94f1117801337"
license = "Apache-2.0"
requires = ["click==8.3.1 --hash=sha256:981153a64e25f12d547d3426c367a4857371575ee7ad18df2a6183ab0545b2a6"]
entry = "files_to_prompt.cli:cli"
lines = 278

[classes]
"""


@pytest.fixture
def cache(tmp_path: Path, common: Path) -> Path:
    base_image.ensure(connect(), print)
    return furnished(tmp_path / "cache", common)


Attempt = Callable[[Path, Agent], TrialRecord]


@pytest.fixture
def attempt(tmp_path: Path, cache: Path) -> Attempt:
    """Return a function that runs one trial of the task in a folder; all trials share the reference's results."""

    def attempt(folder: Path, agent: Agent) -> TrialRecord:
        shutil.copytree(folder, tmp_path / "tasks" / folder.name, dirs_exist_ok=True)
        dataset = tool_dataset(tmp_path / "tasks", cache, judge=JUDGE, reward="semantic_match")
        dataset.prepare(print)
        sandboxes = DockerSandboxes()
        cell = Cell(agent=agent, model=NO_MODEL, dataset=dataset, budget=Budget(), attempts=1)
        (trial,) = make_plan([cell], sandboxes, lambda _: ()).trials
        context = TrialContext(sandboxes, Gateway(tmp_path), Store(tmp_path / "outputs"), "test", {})
        return run_to_the_end(trial, context, 0, lambda: False)

    return attempt


def check_reward_one(record: TrialRecord, outputs: Path, cases: int) -> None:
    """Check that every metric is 1, that all cases agree, and that none varies."""
    assert (record.status, record.reward, record.judge_usd) == ("completed", 1.0, 0.0), record
    assert record.verdict
    components = record.verdict.components
    assert {name for name in components if components[name] == 1.0} >= {"build", *METRICS}
    assert components["unstable_cases"] == 0
    outcomes = json.loads((Store(outputs).folder(record.key) / DETAILS).read_text())["cases"]
    assert len(outcomes) == cases
    assert all(case["agreed"] for case in outcomes)
    assert components["ended_passed"] == sum(case["valid"] for case in outcomes)


def check_reward_zero(record: TrialRecord) -> None:
    """Check that every metric is 0."""
    assert (record.status, record.reward) == ("completed", 0.0), record
    assert record.verdict
    assert {record.verdict.components[score] for score in ("build", *METRICS)} == {0.0}


@pytest.mark.timeout(BUSY_SECONDS)
@pytest.mark.parametrize("name", SOME_BY_HAND)
def test_the_reference_gets_one_an_empty_workspace_zero_and_the_prompt_is_true(
    attempt: Attempt, cache: Path, tmp_path: Path, name: str
) -> None:
    folder = Path(shutil.copytree(SHIPPED / name, tmp_path / name))
    every = read_cases(folder / "cases.jsonl")
    examples = chosen(every)
    cases = [every[at] for at in dict.fromkeys([*examples, *range(0, len(every), STRIDE)])]
    text = "".join(f"{case.model_dump_json(by_alias=True)}\n" for case in cases)
    (folder / "cases.jsonl").write_text(text)
    check_reward_one(attempt(folder, Oracle()), tmp_path / "outputs", len(cases))
    (stored,) = (cache / "results").glob("*.json")
    in_prompt = cases[: len(examples)]
    results = StoredCases.model_validate_json(stored.read_bytes()).of(in_prompt).results
    prompt = (SHIPPED / name / "instruction.md").read_text()
    true = section(in_prompt, results).replace("\r\n", "\n")  # as a prompt shows the end of a line
    assert HEADING + prompt.partition(HEADING)[2] == true
    if name in ONE_OF_A_LANGUAGE:
        check_reward_zero(attempt(folder, Nop()))


@pytest.mark.timeout(BUSY_SECONDS)
@pytest.mark.parametrize("name", some_made(lambda name: name not in PREFERRED))
def test_the_reference_of_a_made_task_gets_one_and_does_what_it_did_when_the_task_was_made(
    attempt: Attempt, cache: Path, tmp_path: Path, name: str
) -> None:
    folder = Path(shutil.copytree(SHIPPED / name, tmp_path / name))
    cases = read_cases(folder / "cases.jsonl")[::STRIDE]
    text = "".join(f"{case.model_dump_json(by_alias=True)}\n" for case in cases)
    (folder / "cases.jsonl").write_text(text)
    check_reward_one(attempt(folder, Oracle()), tmp_path / "outputs", len(cases))
    (stored,) = (cache / "results").glob("*.json")
    results = StoredCases.model_validate_json(stored.read_bytes()).of(cases).results
    lines = (folder / "golden.jsonl").read_text("utf-8").removesuffix("\n").split("\n")[::STRIDE]
    golden = [(line["exit_code"], line["stdout_digest"], line["changes"]) for line in map(json.loads, lines)]
    assert [_as_golden(result) for result in results] == golden


def _as_golden(result: CaseResult) -> tuple[int | None, str, list[str]]:
    """Return what `golden.jsonl` says about a result, without the text of its standard output."""
    digest = result.stdout_digest or sha256(result.stdout.encode()).hexdigest()
    changes = [f"{one.change} {one.path} {one.digest or one.kind}" for one in result.changes]
    return result.exit_code, digest, changes


@pytest.mark.timeout(BUSY_SECONDS)
@pytest.mark.skipif(
    "ASSAY_CASES" not in os.environ,
    reason="the benchmark's own cases are not shipped: ASSAY_CASES names those of files-to-prompt (README)",
)
def test_the_reference_gets_one_on_the_benchmarks_own_cases(attempt: Attempt, tmp_path: Path) -> None:
    given = Path(os.environ["ASSAY_CASES"])
    cases = read_cases(given)
    folder = tmp_path / "files-to-prompt"
    folder.mkdir()
    shutil.copyfile(given, folder / "cases.jsonl")
    (folder / "instruction.md").write_text("Write `files-to-prompt`.\n")
    classes = dict.fromkeys(case.command_class for case in cases)
    (folder / "task.toml").write_text(FILES_TO_PROMPT + "".join(f'{name} = "-"\n' for name in classes))
    check_reward_one(attempt(folder, Oracle()), tmp_path / "outputs", len(cases))
