"""Skills of a task's image: the real CLIs list the same ones for their model, wherever the image keeps them.

Nanocoder and mini-swe-agent read none themselves; the instruction lists them.

Images of SkillsBench have their skills in `/root/.claude/skills` and `/root/.agents/skills`. Claude Code runs here with
another folder of its own and lost them silently, while other CLIs found them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.agents.bounds import Oracle
from runner.gateway import Gateway
from runner.gateway.fake_upstream import FakeUpstream
from runner.protocols import CommandAgent
from runner.records import Budget, TrialRecord
from runner.records.trial_files import LEDGER
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sweeps.cells import NO_MODEL, Cell
from runner.sweeps.plan import make_plan
from runner.sweeps.store import Store
from runner.trials.context import TrialContext
from runner.trials.run import run_to_the_end
from tests.agents.trials import NATIVE, ONE_OF_A_KIND, _model, last, shipped
from tests.support.tasks_factory import dataset, make_task
from tests.sweeps.test_plan import keys

pytestmark = [pytest.mark.docker, pytest.mark.bundle]

BY_NAME = ["cline"]
"""Agents that tell their model only the names of skills, and what each is for when it asks."""
PLACES = {
    "goose-counting": "/root/.claude/skills",
    "duck-weighing": "/root/.agents/skills",
    "swan-painting": "/app/.claude/skills",
    "crane-folding": "/app/.agents/skills",
    "heron-feeding": "/opt/skills",
}
BOTH = "stork-calling"
"""A skill that the image has in two places, as those of SkillsBench are."""
NAMES = tuple(sorted([*PLACES, BOTH]))


def made(folder: Path, user: str = "root") -> Path:
    """Make a task whose image has skills in many places."""
    lines = ["ARG BASE", "FROM ${BASE}", "RUN mkdir /app", "WORKDIR /app"]
    places = [*PLACES.items(), (BOTH, "/root/.claude/skills"), (BOTH, "/root/.agents/skills")]
    for name, place in places:
        text = f"---\\nname: {name}\\ndescription: The art of {name}.\\n---\\nBe patient.\\n"
        lines.append(f"RUN mkdir -p {place}/{name} && printf -- '{text}' > {place}/{name}/SKILL.md")
    toml = (
        f'[agent]\nuser = "{user}"\n[environment]\nnetwork_mode = "no-network"\nskills_dir = "/opt/skills"\n'
    )
    return make_task(folder / "tasks", "made", toml=toml, dockerfile="\n".join(lines) + "\n")


def run(agent: CommandAgent, gateway: Gateway, folder: Path, skills: str) -> tuple[TrialRecord, str]:
    """Run a trial. Return its record and everything that the agent asked its model."""
    made(folder)
    moves = [last(agent)] if agent.uses_model else []  # type: ignore[arg-type]
    with FakeUpstream(*moves) as upstream:
        model = _model(upstream, {"id": NATIVE[agent.name]}) if agent.uses_model else NO_MODEL
        tasks = dataset(folder / "tasks", skills=skills)
        cell = Cell(agent=agent, model=model, dataset=tasks, budget=Budget(wall_seconds=200), attempts=1)
        sandboxes = DockerSandboxes()
        bundles = sandboxes.prepare([agent.bundle] if agent.bundle else [], print)
        (planned,) = make_plan([cell], sandboxes, lambda _: ()).trials
        context = TrialContext(sandboxes, gateway, Store(folder / "outputs"), "test", bundles)
        record = run_to_the_end(planned, context, 0, lambda: False)
    return record, "".join(ledger.read_text() for ledger in (folder / "outputs").rglob(LEDGER))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ONE_OF_A_KIND)
def test_every_cli_lists_the_same_skills(name: str, gateway: Gateway, tmp_path: Path) -> None:
    record, asked = run(shipped(name), gateway, tmp_path, "present")
    listed = "{}" if name in BY_NAME else "The art of {}."
    assert {skill for skill in NAMES if listed.format(skill) in asked} == {*NAMES}, record
    assert record.skills == NAMES
    assert ("skills_unsupported" in record.flags) is not bool(shipped(name).skills)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ONE_OF_A_KIND)
def test_without_skills_no_cli_lists_one(name: str, gateway: Gateway, tmp_path: Path) -> None:
    record, asked = run(shipped(name), gateway, tmp_path, "absent")
    assert asked
    assert not [skill for skill in NAMES if skill in asked]
    assert record.skills == ()


def test_the_solution_keeps_the_image_as_it_is(gateway: Gateway, tmp_path: Path) -> None:
    record, _ = run(Oracle(), gateway, tmp_path, "absent")
    assert (record.skills, record.reward) == (NAMES, 1.0)


def test_only_tasks_with_skills_have_other_keys_without_them(tmp_path: Path) -> None:
    make_task(tmp_path / "plain", "made")
    made(tmp_path / "skilled")
    for folder, same in ((tmp_path / "plain", True), (tmp_path / "skilled" / "tasks", False)):
        assert (keys(folder) == keys(folder, dataset=dataset(folder, skills="absent"))) is same
