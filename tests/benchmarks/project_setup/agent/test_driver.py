"""ExecutionAgent over real HTTP, with a provider whose model reacts to what it is shown, on shipped projects."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.benchmarks.project_setup.agent.agent import ExecutionAgent
from runner.gateway import Gateway, provider
from runner.gateway.fake_upstream import FakeUpstream
from runner.records import Budget, Status, TrialRecord
from runner.resources import ROOT
from runner.sweeps.cells import Cell
from tests.support.project_factory import project_bench
from tests.support.setup_policy import FORMS, SetupPolicy
from tests.support.whole_trials import priced_model, run_cell

SHIPPED = ROOT / "tasks" / "execution"
BUSY_SECONDS = 1800
AGENT = ExecutionAgent(name="execution_agent", version="2", preparation=False, attempts=2, commands=20)
Driven = Callable[..., tuple[TrialRecord, SetupPolicy, Path]]


@pytest.fixture
def driven(tmp_path: Path, common: Path, gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> Driven:
    """Return a function that runs one trial of a shipped project with the policy."""
    monkeypatch.setattr(provider, "BACK_OFF_SECONDS", 0.01)

    def driven(name: str, **fields: Any) -> tuple[TrialRecord, SetupPolicy, Path]:
        dataset = project_bench(SHIPPED, common / "projects", include=(name,))
        dataset.prepare(print)
        policy = SetupPolicy()
        with FakeUpstream(policy=policy) as upstream:
            cell = Cell(
                agent=AGENT.model_copy(update=fields),
                model=priced_model(upstream),
                dataset=dataset,
                budget=Budget(usd=6.0, wall_seconds=BUSY_SECONDS),
                attempts=1,
            )
            ((record, folder),) = run_cell(cell, gateway, tmp_path / "outputs")
        return record, policy, folder

    return driven


@pytest.mark.docker
@pytest.mark.timeout(BUSY_SECONDS)
@pytest.mark.parametrize("name", ["process-warning", "tinyxml2", "try-tiny"])
def test_a_model_that_sees_its_results_sets_up_a_project(driven: Driven, name: str) -> None:
    record, policy, folder = driven(name)
    log = (folder / "agent.stdout").read_text()
    assert (record.status, record.reward) == (Status.COMPLETED, 1.0), log
    assert policy.refused, "a prompt was too long, and a shorter one followed"
    assert policy.limited
    assert policy.parallel
    assert {*FORMS} == {*policy.forms}, "each fault was met, and the work went on"
    assert record.tool_calls["check_scripts"] >= 2
    assert record.tool_calls["edit_file"] >= 1
    assert record.own_finish


@pytest.mark.docker
@pytest.mark.timeout(BUSY_SECONDS)
@pytest.mark.parametrize(
    "withheld", [{"last_result_tokens": 0}, {"context_share": 0.0}], ids=["results", "the context window"]
)
def test_the_same_model_fails_when_what_it_needs_is_withheld(
    driven: Driven, withheld: dict[str, Any]
) -> None:
    record, _, folder = driven("process-warning", **withheld)
    assert (record.status, record.reward) == (Status.AGENT_ERROR, 0.0), (folder / "agent.stdout").read_text()
    assert record.cost_usd
