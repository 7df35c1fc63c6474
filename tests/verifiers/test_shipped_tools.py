"""The tasks that are shipped: their references are fetched, installed and equal themselves; their prompts are true."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from runner.agents.bounds import Nop, Oracle
from runner.case_file import read_cases
from runner.cases import Case
from runner.config import NO_MODEL, Cell
from runner.door import ROOT
from runner.gateway import Gateway
from runner.plan import make_plan
from runner.protocols import Agent
from runner.records import Budget, TrialRecord
from runner.sandbox import base
from runner.sandbox.docker import DockerSandboxes
from runner.sandbox.engine import connect
from runner.store import Store
from runner.trial import Lab, run_to_the_end
from runner.verifiers.reference_runs import ReferenceRun
from tests.prompt_examples import HEADING, chosen, section
from tests.tool_task_factory import SCORES, tool_dataset

pytestmark = pytest.mark.docker

SHIPPED = ROOT / "tasks" / "cli_tool_bench"
NAMES = sorted(path.parent.name for path in SHIPPED.glob("*/task.toml"))
Try = Callable[[str, Agent], TrialRecord]


def sample(cases: tuple[Case, ...]) -> list[Case]:
    """Of each class the prompt's example and two more: one that must succeed, one that must fail."""
    picked = dict.fromkeys(chosen(cases))
    for name in dict.fromkeys(case.command_class for case in cases):
        for negative in (False, True):
            picked |= dict.fromkeys(
                islice(
                    (
                        index
                        for index, case in enumerate(cases)
                        if (case.command_class, case.negative) == (name, negative)
                    ),
                    1,
                )
            )
    return [cases[index] for index in picked]


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base.ensure(connect(), print)
    made = tmp_path_factory.mktemp("tools")
    tool_dataset(SHIPPED, made).prepare(print)
    return made


@pytest.fixture
def attempt(tmp_path: Path, cache: Path) -> Try:
    """One trial of a task with a few of its cases."""

    def attempt(name: str, agent: Agent) -> TrialRecord:
        folder = Path(shutil.copytree(SHIPPED / name, tmp_path / "tasks" / name))
        few = sample(read_cases(SHIPPED / name / "cases.jsonl"))
        text = "".join(f"{case.model_dump_json(by_alias=True)}\n" for case in few)
        (folder / "cases.jsonl").write_text(text)
        dataset = tool_dataset(tmp_path / "tasks", cache)
        sandboxes = DockerSandboxes()
        cell = Cell(agent=agent, model=NO_MODEL, dataset=dataset, budget=Budget(), attempts=1)
        (trial,) = make_plan([cell], sandboxes, lambda _: ()).trials
        lab = Lab(sandboxes, Gateway(tmp_path), Store(tmp_path / "outputs"), "test", {})
        return run_to_the_end(trial, lab, 0, lambda: False)

    return attempt


@pytest.mark.parametrize("name", NAMES)
def test_the_reference_is_worth_one_and_the_prompt_is_true(attempt: Try, cache: Path, name: str) -> None:
    before = set((cache / "results").glob("*.json"))
    record = attempt(name, Oracle())
    assert (record.status, record.reward) == ("completed", 1.0), record
    assert record.verdict
    assert {score: record.verdict.components[score] for score in SCORES} == dict.fromkeys(SCORES, 1.0)
    assert record.verdict.components["unstable_cases"] == 0
    (kept,) = set((cache / "results").glob("*.json")) - before
    results = ReferenceRun.model_validate_json(kept.read_bytes()).results
    every = read_cases(SHIPPED / name / "cases.jsonl")
    examples = [every[index] for index in chosen(every)]
    prompt = (SHIPPED / name / "instruction.md").read_text()
    assert HEADING + prompt.partition(HEADING)[2] == section(examples, results[: len(examples)])


@pytest.mark.parametrize("name", ["hunkr", "stencil"], ids=["python", "javascript"])
def test_nothing_done_is_worth_nothing(attempt: Try, name: str) -> None:
    record = attempt(name, Nop())
    assert (record.status, record.reward) == ("completed", 0.0), record
    assert record.verdict
    assert record.verdict.components["exec"] == 0.0
