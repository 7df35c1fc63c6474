"""The plan in `sweep.json`: cells, tasks and attempts, from which every trial can be made again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runner.agents.bounds import Nop, Oracle
from runner.agents.cli import CliAgent
from runner.errors import ConfigError
from runner.records import Budget, Model, PlannedRow
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sweeps import sweep_file
from runner.sweeps.cells import NO_MODEL, Cell
from runner.sweeps.grid import Grid, grid_of, held_of, reasons_of
from runner.sweeps.plan import Plan, make_plan
from tests.report.plans import SCORING
from tests.support.records_factory import NOON
from tests.support.sweeps import Cli
from tests.support.tasks_factory import dataset, make_task

HUNGRY = CliAgent(name="hungry", version="1", argv=("work", "{prompt}"), memory_mb=4096, api="messages")
MODEL = Model(name="m", backend="scripted")


def cell(root: Path, **changed: Any) -> Cell:
    """Return a cell of the oracle on the tasks in a folder."""
    values = {
        "agent": Oracle(),
        "model": NO_MODEL,
        "dataset": dataset(root),
        "budget": Budget(),
        "attempts": 1,
    }
    return Cell(**(values | changed))


def planned(cells: list[Cell]) -> Plan:
    """Return the plan of cells of which nothing is finished."""
    return make_plan(cells, DockerSandboxes(), lambda _: ())


def many_kinds(root: Path) -> list[Cell]:
    """Return cells whose trials differ in everything that a row or a key says."""
    make_task(
        root / "x",
        "a",
        toml='[agent]\ntimeout_sec = 3600\n[metadata]\ndifficulty = "hard"\nsource = "bench"\n',
    )
    make_task(root / "x", "b", toml="[environment]\nmemory_mb = 1024\n")
    (make_task(root / "x", "c") / "instruction.md").unlink()  # refused
    make_task(root / "y", "b", solve="true")  # of the same name, in the same dataset, with other content
    make_task(root / "y", "d", toml='[verifier]\nenvironment_mode = "separate"\n')
    part = dataset(root / "x", include=("b",))
    return [
        cell(root / "x", attempts=3),
        cell(root / "x", agent=HUNGRY, model=MODEL, budget=Budget(name="short", wall_seconds=60)),
        cell(root / "x", agent=Nop(), dataset=part, attempts=2),
        cell(root / "y", agent=Nop(), budget=Budget(name="short", wall_seconds=10), attempts=2),
        cell(root / "x", agent=HUNGRY, model=MODEL, attempts=2),
    ]


def test_every_trial_comes_back_in_its_order_with_its_key(tmp_path: Path) -> None:
    cells = many_kinds(tmp_path)
    plan = planned(cells)
    grid = Grid.model_validate_json(grid_of(plan, cells).model_dump_json())
    assert list(grid.rows()) == [trial.row() for trial in plan.trials]
    assert {row.source for row in grid.rows()} == {"bench", "unknown"}, "a sweep's tables said unknown of all"
    assert any(trial.memory_raised for trial in plan.trials)
    assert any(trial.keeps_its_limit for trial in plan.trials)
    assert {trial.attempt for trial in plan.trials if trial.task.refused} == {1, 2, 3}


def test_a_task_refused_to_one_agent_is_refused_to_that_one(tmp_path: Path) -> None:
    cells = many_kinds(tmp_path)[:2]
    plan = planned(cells)
    trials = tuple(
        trial.model_copy(update={"task": trial.task.model_copy(update={"refused": "in reach"})})
        if (trial.cell.agent.name, trial.task.name) == ("hungry", "a")
        else trial
        for trial in plan.trials
    )
    rows = list(grid_of(Plan(trials=trials, todo=()), cells).rows())
    assert rows == [trial.row() for trial in trials]
    assert {row.agent for row in rows if row.refused == "in reach"} == {"hungry"}


def written(folder: Path, plan: Plan, cells: list[Cell], **more: Any) -> int:
    """Write `sweep.json` and return its size."""
    file = sweep_file.SweepFile(
        schema_version=2,
        name="s",
        created=NOON,
        grid=grid_of(plan, cells),
        scoring=SCORING,
        versions={},
        **more,
    )
    sweep_file.write(folder, file)
    return (folder / "sweep.json").stat().st_size


def test_a_sweep_of_100000_trials_wrote_35_megabytes_of_plan(tmp_path: Path) -> None:
    make_task(tmp_path / "x", "a")
    few, many = ([cell(tmp_path / "x", attempts=attempts)] for attempts in (10, 99))
    assert written(tmp_path, planned(few), few) == written(tmp_path, planned(many), many)
    plan = sweep_file.read(tmp_path)
    assert [row.attempt for row in plan.planned] == list(range(1, 100))
    assert plan.cells == {many[0].name}


def test_trials_that_were_not_started_are_told_by_their_numbers(tmp_path: Path) -> None:
    cells = many_kinds(tmp_path)
    plan = planned(cells)
    names = [(trial.key, trial.cell.name) for trial in plan.trials]
    reasons = {key: f"refused by {name}" for key, name in names[4:9]}
    held = held_of(names, reasons)
    assert reasons_of(names, held) == reasons
    written(tmp_path, plan, cells, held=held)
    assert sweep_file.read(tmp_path).not_started == reasons
    assert not set(reasons) & set(json.loads((tmp_path / "sweep.json").read_text())), "no key is written"


@pytest.mark.parametrize(
    ("where", "value", "fault"),
    [
        (("grid", "cells", 0, "tasks"), [[0, 10]], "has tasks that the grid lacks"),
        (("grid", "cells", 0, "refused"), {"0": 9}, "has refusals that the grid lacks"),
        (("held",), [{"reason": "r", "cell": "nobody's", "trials": [[0, 0]]}], "fewer trials of nobody's"),
        (("schema_version",), 1, "a grid from version 2"),
    ],
)
def test_a_grid_that_names_what_it_lacks_is_refused(
    tmp_path: Path, where: tuple[str | int, ...], value: object, fault: str
) -> None:
    cells = many_kinds(tmp_path)
    written(tmp_path, planned(cells), cells)
    content: Any = json.loads((tmp_path / "sweep.json").read_text())
    inner = content
    for name in where[:-1]:
        inner = inner[name]
    inner[where[-1]] = value
    (tmp_path / "sweep.json").write_text(json.dumps(content))
    with pytest.raises(ConfigError, match=rf"sweep\.json cannot be read .*{fault}"):
        sweep_file.read(tmp_path)


def test_a_sweep_whose_plan_is_a_list_of_trials_resumes_and_is_written_anew(cli: Cli, tmp_path: Path) -> None:
    """So an earlier version wrote it."""
    make_task(tmp_path / "tasks", "a")
    words = ("agent=nop", "sandbox=local", "dataset=harbor", f"dataset.root={tmp_path / 'tasks'}", "name=s")
    before = cli(*words)
    folder = cli.outputs / "s"
    now = sweep_file.read(folder)
    earlier = now.model_copy(update={"schema_version": 1, "grid": None, "listed": now.planned})
    sweep_file.write(folder, earlier)
    listed = json.loads((folder / "sweep.json").read_text())["planned"]
    assert [PlannedRow(**row) for row in listed] == list(now.planned)
    assert "1 judged" in cli("job=track", "name=s").out
    record = next(cli.outputs.glob("trials/*/*/record.json"))
    written_at = record.stat().st_mtime_ns
    assert cli(*words).code == before.code
    assert record.stat().st_mtime_ns == written_at
    assert sweep_file.read(folder).grid == now.grid
