"""The tasks that are shipped, and the benchmark's own cases: a candidate that is the reference is worth 1 on all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from metrics.differential import METRICS
from runner.agents.bounds import Nop, Oracle
from runner.benchmarks.cli_tool_bench.case_file import read_cases
from runner.benchmarks.cli_tool_bench.dataset import ToolTask
from runner.benchmarks.cli_tool_bench.reference_runs import Shelf
from runner.benchmarks.cli_tool_bench.verifier import FOUND
from runner.benchmarks.sources.task_toml import read_toml
from runner.gateway import Gateway
from runner.protocols import Agent
from runner.records import Budget, TrialRecord
from runner.resources import ROOT
from runner.sandbox.docker import base_image
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sweeps.cells import NO_MODEL, Cell
from runner.sweeps.plan import make_plan
from runner.sweeps.store import Store
from runner.trials.context import TrialContext
from runner.trials.run import run_to_the_end
from tests.support.prompt_examples import HEADING, chosen, section
from tests.support.tool_task_factory import furnished, tool_dataset

pytestmark = pytest.mark.docker

SHIPPED = ROOT / "tasks" / "cli_tool_bench"
NAMES = sorted(path.parent.name for path in SHIPPED.glob("*/task.toml"))
ONE_OF_A_LANGUAGE = {
    (tool.language, tool.install): name
    for name in NAMES
    for tool in (read_toml(SHIPPED / name / "task.toml", ToolTask),)
}.values()
"""An empty workspace fails at its installation, which is the same for all tools of a language."""
JUDGE = {"model": {"name": "nobody", "id": "openai/x", "api_base": "http://judge.example"}, "usd": 1.0}
"""Reached by no question: outputs that are the same need no judge."""
STRIDE = 1 if "ASSAY_EVERY_CASE" in os.environ else 10
"""Of a task's cases each so many-th is run, beside those that its prompt shows. `make every-case` runs them all: 1,350
cases, three times, are some four minutes of processor time."""
BUSY_SECONDS = 1800
"""Hundreds of processes are started: seconds on two idle cores, many minutes on busy ones."""
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


Try = Callable[[Path, Agent], TrialRecord]


@pytest.fixture
def attempt(tmp_path: Path, cache: Path) -> Try:
    """One trial of the task in a folder; what its reference does is looked at once for all of them."""

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


def worth_one_on_every_metric(record: TrialRecord, outputs: Path, cases: int) -> None:
    """In all of its cases, none of which is unstable or failed where the reference succeeds."""
    assert (record.status, record.reward, record.judge_usd) == ("completed", 1.0, 0.0), record
    assert record.verdict
    said = record.verdict.components
    assert {name for name in said if said[name] == 1.0} >= {"build", *METRICS}
    assert said["unstable_cases"] == 0
    found = json.loads((Store(outputs).folder(record.key) / FOUND).read_text())["cases"]
    assert len(found) == cases
    assert all(case["agreed"] for case in found)
    assert said["ended_passed"] == sum(case["valid"] for case in found)


def worth_nothing(record: TrialRecord) -> None:
    """On every metric."""
    assert (record.status, record.reward) == ("completed", 0.0), record
    assert record.verdict
    assert {record.verdict.components[score] for score in ("build", *METRICS)} == {0.0}


@pytest.mark.timeout(BUSY_SECONDS)
@pytest.mark.parametrize("name", NAMES)
def test_the_reference_is_worth_one_nothing_is_worth_nothing_and_the_prompt_is_true(
    attempt: Try, cache: Path, tmp_path: Path, name: str
) -> None:
    folder = Path(shutil.copytree(SHIPPED / name, tmp_path / name))
    every = read_cases(folder / "cases.jsonl")
    examples = chosen(every)
    cases = [every[at] for at in dict.fromkeys([*examples, *range(0, len(every), STRIDE)])]
    text = "".join(f"{case.model_dump_json(by_alias=True)}\n" for case in cases)
    (folder / "cases.jsonl").write_text(text)
    worth_one_on_every_metric(attempt(folder, Oracle()), tmp_path / "outputs", len(cases))
    (kept,) = (cache / "results").glob("*.json")
    shown = cases[: len(examples)]
    results = Shelf.model_validate_json(kept.read_bytes()).of(shown).results
    prompt = (SHIPPED / name / "instruction.md").read_text()
    true = section(shown, results).replace("\r\n", "\n")  # as a prompt shows the end of a line
    assert HEADING + prompt.partition(HEADING)[2] == true
    if name in ONE_OF_A_LANGUAGE:
        worth_nothing(attempt(folder, Nop()))


@pytest.mark.timeout(BUSY_SECONDS)
@pytest.mark.skipif(
    "ASSAY_CASES" not in os.environ,
    reason="the benchmark's own cases are not shipped: ASSAY_CASES names those of files-to-prompt (README)",
)
def test_the_reference_is_worth_one_in_all_cases_of_the_benchmarks_own(attempt: Try, tmp_path: Path) -> None:
    given = Path(os.environ["ASSAY_CASES"])
    cases = read_cases(given)
    folder = tmp_path / "files-to-prompt"
    folder.mkdir()
    shutil.copyfile(given, folder / "cases.jsonl")
    (folder / "instruction.md").write_text("Write `files-to-prompt`.\n")
    classes = dict.fromkeys(case.command_class for case in cases)
    (folder / "task.toml").write_text(FILES_TO_PROMPT + "".join(f'{name} = "-"\n' for name in classes))
    worth_one_on_every_metric(attempt(folder, Oracle()), tmp_path / "outputs", len(cases))
