"""What every agent in `conf/agent/` keeps: `protocols.Agent`."""

from __future__ import annotations

from typing import Any, cast

import pytest
from omegaconf import OmegaConf

from runner import door
from runner.config import build
from runner.protocols import Agent
from runner.records import Endpoint, ExecSpec, Task
from runner.sandbox.inside import BASE_URL
from tests.tasks_factory import make_task

KEY = "the-trials-own-key"
ENDPOINT = Endpoint(
    base_url=BASE_URL, key=KEY, model="some-model", context_window=128_000, max_output_tokens=8_000
)
NAMES = sorted(path.stem for path in (door.CONF / "agent").glob("*.yaml"))


def configured(name: str) -> Agent:
    """The agent of a file in `conf/agent/`, as a composed configuration has it."""
    node = OmegaConf.to_container(OmegaConf.load(door.CONF / "agent" / f"{name}.yaml"), resolve=True)
    return cast("Agent", build(node, "agent"))


@pytest.fixture(params=NAMES)
def agent(request: pytest.FixtureRequest) -> Agent:
    return configured(request.param)


@pytest.fixture
def task(tmp_path: Any) -> Task:
    folder = make_task(tmp_path, "some")
    return Task(
        name="some",
        dataset="made",
        directory=folder,
        solution=folder / "solution",
        instruction="Do {this} ${x}.",
    )


def command(agent: Agent, task: Task) -> ExecSpec:
    return agent.command(task, ENDPOINT if agent.uses_model else None)


def test_its_name_is_the_word_that_is_typed(agent: Agent, request: pytest.FixtureRequest) -> None:
    assert agent.name == request.node.callspec.params["agent"]
    assert agent.version


def test_it_is_a_pure_function(agent: Agent, task: Task) -> None:
    assert command(agent, task) == command(agent, task)


def test_the_key_is_in_no_argument(agent: Agent, task: Task) -> None:
    """Every process of a sandbox can read the arguments of the others."""
    assert not any(KEY in argument for argument in command(agent, task).argv)


def test_an_agent_with_a_model_is_told_where_it_is_and_how_it_is_called(agent: Agent, task: Task) -> None:
    spec = command(agent, task)
    said = " ".join((*spec.argv, *spec.env.values(), *spec.files.values()))
    for word in (BASE_URL, ENDPOINT.model, KEY, task.instruction):
        assert (word in said) is agent.uses_model


def test_it_starts_from_its_bundle_and_nothing_of_the_image(agent: Agent, task: Task) -> None:
    if agent.bundle is not None:
        assert any(
            argument.startswith(f"/opt/assay/{agent.bundle.name}/") for argument in command(agent, task).argv
        )


def test_only_the_oracle_is_given_the_solution(agent: Agent, task: Task) -> None:
    assert bool(command(agent, task).uploads) is (agent.name == "oracle")
