"""Keys of trials: some changes make another trial, and others do not."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, ClassVar

import pytest

from runner.agents.bounds import Nop, Oracle
from runner.agents.cli import CliAgent
from runner.benchmarks.project_setup.agent.agent import ExecutionAgent
from runner.benchmarks.project_setup.llm_scripts import LlmScripts
from runner.cli.arguments import config_folders, options, target_of
from runner.protocols import Configured
from runner.records import Budget, Environment, Model, Prices, PriceTier, VerifierSpec
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sandbox.local import LocalSandboxes
from runner.sweeps.cells import NO_MODEL, Cell
from runner.sweeps.keys import TaskDigests, trial_keys
from runner.sweeps.plan import Plan, cell_digest, identity, make_plan
from tests.support.tasks_factory import dataset, make_task


def plan(root: Path, *, sandboxes: DockerSandboxes | LocalSandboxes | None = None, **changed: Any) -> Plan:
    values = {
        "agent": Oracle(),
        "model": NO_MODEL,
        "dataset": dataset(root),
        "budget": Budget(),
        "attempts": 1,
    }
    return make_plan([Cell(**(values | changed))], sandboxes or DockerSandboxes(), lambda _: ())


def keys(root: Path, **changed: Any) -> list[str]:
    return [trial.key for trial in plan(root, **changed).trials]


def test_a_key_is_made_of_contents_and_not_of_places(tmp_path: Path) -> None:
    make_task(tmp_path / "here", "a")
    before = keys(tmp_path / "here")
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    assert keys(tmp_path / "there") == before


def needing(memory_mb: int | None) -> CliAgent:
    return CliAgent(
        name="needing", version="1", argv=("work", "{prompt}"), memory_mb=memory_mb, api="messages"
    )


def test_memory_that_a_task_has_anyway_is_no_part_of_a_key(tmp_path: Path) -> None:
    make_task(tmp_path, "a", toml="[environment]\nmemory_mb = 1024\n")
    (usual,) = plan(tmp_path, agent=needing(None)).trials
    (enough,) = plan(tmp_path, agent=needing(1024)).trials
    (raised,) = plan(tmp_path, agent=needing(3072)).trials
    (given,) = plan(tmp_path, sandboxes=DockerSandboxes(task_memory_mb=3072), agent=needing(3072)).trials
    assert usual.key == enough.key
    assert len({usual.key, raised.key, given.key}) == 3
    assert [one.memory_mb for one in (usual, enough, raised, given)] == [1024, 1024, 3072, 3072]
    assert [one.memory_raised for one in (usual, enough, raised, given)] == [False, False, True, False]
    (unlimited,) = plan(tmp_path, sandboxes=LocalSandboxes(), agent=needing(3072)).trials
    assert (unlimited.memory_mb, unlimited.memory_raised) == (None, False)


def test_whatever_can_change_a_result_changes_the_key(tmp_path: Path) -> None:
    make_task(tmp_path, "a")
    scripts = [tmp_path / name for name in ("one.yaml", "two.yaml")]
    for script in scripts:
        script.write_text(f"name: {script.stem}\n")
    models = [Model(name="m", backend="scripted", policy=script) for script in scripts]
    found = [
        keys(tmp_path),
        keys(tmp_path, agent=Nop()),
        keys(tmp_path, model=models[0]),
        keys(tmp_path, model=models[1]),
        keys(tmp_path, budget=Budget(usd=1.0)),
        keys(tmp_path, sandboxes=DockerSandboxes(memory_mb=512)),
        keys(tmp_path, dataset=dataset(tmp_path, pass_threshold=0.5)),
        keys(tmp_path, attempts=2)[1:],
    ]
    (tmp_path / "a" / "tests" / "test.sh").write_text("#!/bin/bash\necho 0 > /logs/verifier/reward.txt\n")
    found.append(keys(tmp_path))
    assert len({tuple(one) for one in found}) == len(found)


def test_a_budget_cut_a_tasks_time_limit_unsaid_and_for_the_oracle_too(tmp_path: Path) -> None:
    make_task(tmp_path, "long", toml="[agent]\ntimeout_sec = 3600\n")
    make_task(tmp_path, "short", toml="[agent]\ntimeout_sec = 60\n")
    budget = Budget(wall_seconds=1800)
    tested = plan(
        tmp_path, agent=LlmScripts(), model=Model(name="m", backend="scripted"), budget=budget
    ).trials
    assert [(trial.seconds, trial.is_cut) for trial in tested] == [(1800, True), (60, False)]
    bounds = plan(tmp_path, budget=budget).trials
    assert [(trial.seconds, trial.is_cut) for trial in bounds] == [(3600, False), (60, False)]


def test_a_bounds_key_changes_where_its_time_limit_does(tmp_path: Path) -> None:
    make_task(tmp_path, "long", toml="[agent]\ntimeout_sec = 3600\n")
    make_task(tmp_path, "short", toml="[agent]\ntimeout_sec = 60\n")
    short = Budget(wall_seconds=1800)
    for trial in plan(tmp_path, budget=short).trials:
        cell = cell_digest(trial.cell, DockerSandboxes())
        (plain,) = trial_keys(cell, TaskDigests.of(trial.task), [1])
        assert (trial.key == plain) is (trial.task.name == "short")


def test_the_same_file_elsewhere_is_the_same_model(tmp_path: Path) -> None:
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "policy.yaml").write_text("name: p\n")
    models = [
        Model(name="m", backend="scripted", policy=tmp_path / folder / "policy.yaml") for folder in "xy"
    ]
    assert identity(models[0]) == identity(models[1])


def test_the_order_in_which_fields_are_written_changes_no_key() -> None:
    """A file of the configuration that is put in order would run all its trials again."""
    one, other = ({"seed": 1, "top_p": 0.5}, {"top_p": 0.5, "seed": 1})
    assert identity(Model(name="m", params=one)) == identity(Model(name="m", params=other))


def test_the_image_of_the_judge_is_part_of_the_key(tmp_path: Path) -> None:
    make_task(tmp_path, "a")
    (task,) = dataset(tmp_path).tasks()
    judges = [None, Environment(digest="sha256:1"), Environment(digest="sha256:2")]
    judged = [task.model_copy(update={"verifier": VerifierSpec(environment=judge)}) for judge in judges]
    assert len({trial_keys("cell", TaskDigests.of(one), [1])[0] for one in judged}) == len(judges)


def test_a_policy_that_was_edited_is_another_model(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("name: p\n")
    model = Model(name="m", backend="scripted", policy=policy)
    before = identity(model)
    policy.write_text("name: q\n")
    assert identity(model) != before


def test_two_datasets_in_folders_of_one_name_keep_their_own_tasks(tmp_path: Path) -> None:
    make_task(tmp_path / "x" / "tasks", "a")
    make_task(tmp_path / "y" / "tasks", "b")
    cells = [
        Cell(
            agent=agent,
            model=NO_MODEL,
            dataset=dataset(tmp_path / folder / "tasks"),
            budget=Budget(),
            attempts=1,
        )
        for folder, agent in (("x", Oracle()), ("y", Nop()))
    ]
    trials = make_plan(cells, DockerSandboxes(), lambda _: ()).trials
    assert [(trial.cell.agent.name, trial.task.name) for trial in trials] == [("oracle", "a"), ("nop", "b")]


def test_refused_and_finished_trials_are_planned_and_not_done(tmp_path: Path) -> None:
    for name in "abc":
        make_task(tmp_path, name)
    (tmp_path / "b" / "instruction.md").unlink()
    first = plan(tmp_path).trials[0].key
    cell = Cell(agent=Oracle(), model=NO_MODEL, dataset=dataset(tmp_path), budget=Budget(), attempts=1)
    resumed = make_plan([cell], DockerSandboxes(), lambda _: {first})
    assert [trial.task.name for trial in resumed.trials] == ["a", "b", "c"]
    assert [trial.task.name for trial in resumed.todo] == ["c"]
    assert [task.name for task in resumed.refused] == ["b"]


def test_the_most_it_may_cost_is_unknown_without_a_cap_and_nominal_for_scripts(tmp_path: Path) -> None:
    make_task(tmp_path, "a")
    make_task(tmp_path, "b")
    paid, scripted = Model(name="paid", id="openai/x"), Model(name="s", backend="scripted")
    capped, free = Budget(usd=1.5), Budget()
    assert plan(tmp_path, model=paid, budget=capped).most_usd(nominal=False) == 3.0
    assert plan(tmp_path, model=paid, budget=free).most_usd(nominal=False) is None
    assert plan(tmp_path, model=scripted, budget=capped).most_usd(nominal=False) == 0.0
    assert plan(tmp_path, model=scripted, budget=capped).most_usd(nominal=True) == 3.0
    assert plan(tmp_path, budget=capped).most_usd(nominal=True) == 0.0, "no model, no dollars"


def test_a_free_model_was_said_to_cost_its_budget(tmp_path: Path) -> None:
    """Prices of 0, and two dollars a trial in the plan. What the others of a sweep may cost is summed all the same."""
    make_task(tmp_path, "a")
    make_task(tmp_path, "b")
    zero, paid = Prices(input=0, output=0), Prices(input=1, output=2)
    own = Model(name="own", id="openai/x", prices=zero)
    for budget in (Budget(usd=2.0), Budget()):
        assert plan(tmp_path, model=own, budget=budget).most_usd(nominal=False) == 0.0
    script = Model(name="s", backend="scripted", prices=zero)
    assert plan(tmp_path, model=script, budget=Budget(usd=2.0)).most_usd(nominal=True) == 0.0
    models = (own, script, Model(name="paid", id="openai/y", prices=paid))
    cells = [
        Cell(agent=Oracle(), model=model, dataset=dataset(tmp_path), budget=Budget(usd=2.0), attempts=1)
        for model in models
    ]
    mixed = make_plan(cells, DockerSandboxes(), lambda _: ())
    assert mixed.most_usd(nominal=False) == 4.0
    dear = Prices(input=0, output=0, tiers=(PriceTier(above_input_tokens=9, input=1, output=0),))
    assert (
        plan(tmp_path, model=own.model_copy(update={"prices": dear}), budget=Budget(usd=2.0)).most_usd(
            nominal=False
        )
        == 4.0
    ), "long calls cost something"


def test_cells_advance_together_first_attempts_first(tmp_path: Path) -> None:
    make_task(tmp_path, "a")
    make_task(tmp_path, "b")
    cells = [
        Cell(agent=agent, model=NO_MODEL, dataset=dataset(tmp_path), budget=Budget(), attempts=2)
        for agent in (Oracle(), Nop())
    ]
    trials = make_plan(cells, DockerSandboxes(), lambda _: ()).trials
    assert [(trial.attempt, trial.task.name, trial.cell.agent.name) for trial in trials] == [
        (attempt, task, agent) for attempt in (1, 2) for task in "ab" for agent in ("oracle", "nop")
    ]


KNOWN_AS = [
    (Oracle(), "e3ce1c4aec4d71c769e58538a1dc8643ca38cebc55c841a60693b96892caac13"),
    (Nop(), "12361ecc9847f8f7ad6a016341e9573e0f0fc2e7db7ccaddde82af36977a6d5a"),
    (
        CliAgent(name="c", version="1", argv=("work", "{prompt}"), api="messages"),
        "c1bebda7b878bfbea1d0791e0f9d8f55f36f36ed72c69704c7c233003459139c",
    ),
    (
        ExecutionAgent(name="e", version="1"),
        "5301a30e434e326fc31a192832a221a4f7fcfbb2aa12fe5be96ec4afafbb8aec",
    ),
    (LlmScripts(), "250987508269cfbd3d431dfe9406fd5da6f4fdfaf9d854b99b6459423adaa9fe"),
    (DockerSandboxes(), "5f6c9aa94a7bda62a9e8bdda25a7596883cf0de8b1605b3490036fd9f7bbe178"),
    (LocalSandboxes(), "8ce9fe717213fe16710c31a4c9304cfee3086d493007f244dea6946aaef6a946"),
    (Model(name="m"), "92a162044590d1d926b89cb65002a932e2a36a6536774d0735a3bf8e01afd000"),
    (Budget(), "8ff9dc139e177f300517db0f800757b8ac2d8eb174fef7a1fb2d886e081fba1f"),
]
"""Every class that enters a trial's key, with its identity on disk today."""


@pytest.mark.parametrize(("part", "digest"), KNOWN_AS, ids=lambda value: type(value).__name__)
def test_a_class_that_moves_to_another_module_keeps_the_keys_of_finished_trials(
    part: Configured, digest: str
) -> None:
    assert identity(part) == digest


def test_every_class_that_enters_a_key_is_held_to_its_identity() -> None:
    known = {type(part).__name__ for part, _ in KNOWN_AS}
    for group in ("agent", "sandbox"):
        kinds = {target_of(file, group, config_folders()) for file in options(group).values()}
        assert {kind.__name__ for kind in kinds if kind} <= known


def test_a_class_derived_from_one_that_moved_is_another() -> None:
    class Mine(LlmScripts):
        """Somebody's own."""

    assert identity(Mine()) != identity(LlmScripts())


def test_a_changed_copy_of_a_class_of_ours_does_not_pass_for_the_original() -> None:
    """Its trials would be taken for finished, with the rewards of the original's."""

    class Copy(Nop):
        key_name: ClassVar[str] = "runner.agents.bounds.Nop"

    assert identity(Copy()) != identity(Nop())
