"""When a sweep gives up on the Docker Engine, and what it says of trials as they end."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console

from runner.agents.cli import CliAgent
from runner.errors import EngineError, HealthError, ImageError
from runner.executors.crew import EngineFaults
from runner.jobs.sweep import _show
from runner.records import ApiName, Budget, ErrorInfo, Model, Status, Task, TrialRecord
from runner.report.progress import Progress
from runner.sweeps.cells import Cell
from runner.sweeps.plan import PlannedTrial
from runner.trials.breaker import Breaker
from tests.support.records_factory import trial_record
from tests.support.tasks_factory import dataset


def ended(task: str, error: str | None = None) -> TrialRecord:
    if error is None:
        return trial_record(task=task)
    info = ErrorInfo(type=error, message="it failed")
    return trial_record(task=task, status=Status.INFRA_INVALID, error=info, reward=None, passed=None)


def watch(records: Sequence[TrialRecord]) -> str:
    text, faults = io.StringIO(), EngineFaults()
    with Progress(len(records), Console(file=text, width=500)) as progress:
        for record in records:
            _show([record], progress)
            if error := faults.after(record):
                raise error
    return text.getvalue()


ENGINE, HEALTH, IMAGE = (error.__name__ for error in (EngineError, HealthError, ImageError))


@pytest.mark.parametrize(
    "endings",
    [
        [("sick", HEALTH)] * 5,
        [("sick", HEALTH), ("other", HEALTH), ("third", HEALTH)],
        [("sick", IMAGE), ("other", IMAGE), ("third", IMAGE)],
        [("sick", ENGINE)] * 5,
        [("sick", ENGINE), ("other", ENGINE), ("well", None), ("sick", ENGINE), ("other", ENGINE)],
    ],
    ids=[
        "a sick task in five cells",
        "three sick tasks",
        "three images",
        "one task",
        "interrupted by a good one",
    ],
)
def test_a_sweep_goes_on_past_sick_tasks(endings: list[tuple[str, str | None]]) -> None:
    """Three cells on one task that was never healthy ended it with "make docker"."""
    watch([ended(task, error) for task, error in endings])


@pytest.mark.parametrize("tasks", [["a", "b", "c"], ["a", "a", "b"], ["a", "a", "a", "a", "b"]], ids="-".join)
def test_a_sweep_ends_when_the_engine_fails_at_one_task_after_the_other(tasks: list[str]) -> None:
    with pytest.raises(EngineError, match="make docker"):
        watch([ended(task, ENGINE) for task in tasks])


def test_an_unexpected_error_says_where_its_traceback_is() -> None:
    error = ErrorInfo(type="KeyError", message="'x'", traceback="Traceback ...")
    broken = trial_record(status=Status.INFRA_INVALID, reward=None, passed=None, error=error)
    text = watch([broken])
    assert "unexpected KeyError" in text
    assert f"trials/{broken.key[:2]}/{broken.key}/record.json" in text


def test_a_model_is_held_back_after_refusals_in_a_row_by_one_api() -> None:
    """A server may lack the API of one agent and serve all others."""

    def planned(agent: str, api: ApiName, task: str) -> PlannedTrial:
        spoken = CliAgent(name=agent, version="1", argv=("{prompt}",), api=api)
        cell = Cell(agent=spoken, model=Model(name="m"), dataset=dataset(Path()), budget=Budget(), attempts=1)
        return PlannedTrial(
            key=f"{agent} {task}",
            cell=cell,
            task=Task(name=task, dataset="made", directory=Path()),
            attempt=1,
        )

    refused = ErrorInfo(type="ProviderRefused", message="No such path:\n404")
    trials = [
        planned(*agent, task) for task in "abcdef" for agent in (("codex", "responses"), ("mini", "chat"))
    ]
    breaker = Breaker(trials, 2)
    notes: list[str] = []
    started: list[str] = []
    for trial in trials:
        if not breaker.holds(trial):
            started.append(trial.key)
            spoiled = trial.key in ("codex a", "codex c", "codex d", "mini c")
            record = trial_record(key=trial.key, agent=trial.cell.agent.name, task=trial.task.name)
            if spoiled:
                lost = {"status": Status.INFRA_INVALID, "reward": None, "passed": None, "error": refused}
                record = record.model_copy(update=lost)
            assert list(breaker.watching([record], notes.append)) == [record]
    assert [key for key in started if key.startswith("codex")] == ["codex a", "codex b", "codex c", "codex d"]
    assert len([key for key in started if key.startswith("mini")]) == 6
    assert list(breaker.held) == ["codex e", "codex f"]
    assert breaker.held["codex e"] == "2 trial(s) before it were refused. No such path:\n404"
    assert notes[-1] == "No more trials of m by responses are started (gateway.refusals=2)."
    assert notes[0] == "codex · glm · a: No such path:\\n404"
