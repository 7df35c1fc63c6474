"""The contract of every agent in `conf/agent/`: `protocols.Agent`, and `CommandAgent` or `DrivingAgent`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from omegaconf import OmegaConf

from runner.benchmarks.project_setup.agent.fake_bench import FakeBench
from runner.cli.config import build
from runner.errors import ModelFailed, Stopped
from runner.protocols import Agent, CommandAgent, DrivingAgent
from runner.records import Endpoint, Environment, ExecSpec, Image, SandboxSpec, Task
from runner.resources import CONF
from runner.sandbox.inside import BASE_URL
from runner.sandbox.local import LocalSandboxes
from runner.sweeps.plan import identity
from tests.support.tasks_factory import make_task

KEY = "the-trials-own-key"
ENDPOINT = Endpoint(
    base_url=BASE_URL, key=KEY, model="some-model", context_window=128_000, max_output_tokens=8_000
)
NAMES = sorted(path.stem for path in (CONF / "agent").glob("*.yaml"))


def configured(name: str) -> Agent:
    """Return the agent of a file in `conf/agent/`, as a composed configuration has it."""
    return cast("Agent", build(OmegaConf.to_container(_composed(name), resolve=True), "agent"))


def _composed(name: str) -> Any:
    own: Any = OmegaConf.load(CONF / "agent" / f"{name}.yaml")
    bases = own.pop("defaults", [])
    return OmegaConf.merge(*(_composed(base) for base in bases), own)


DRIVING = [name for name in NAMES if isinstance(configured(name), DrivingAgent)]


@pytest.fixture(params=NAMES)
def any_agent(request: pytest.FixtureRequest) -> Agent:
    return configured(request.param)


@pytest.fixture(params=[name for name in NAMES if name not in DRIVING])
def agent(request: pytest.FixtureRequest) -> CommandAgent:
    return cast("CommandAgent", configured(request.param))


@pytest.fixture(params=DRIVING)
def driving(request: pytest.FixtureRequest) -> DrivingAgent:
    return cast("DrivingAgent", configured(request.param))


@pytest.fixture
def task(tmp_path: Path) -> Task:
    folder = make_task(tmp_path, "some")
    return Task(
        name="some",
        dataset="made",
        directory=folder,
        solution=folder / "solution",
        instruction="Do {this} ${x}.",
    )


@pytest.fixture
def project(task: Task, tmp_path: Path) -> Task:
    """Return a task with a project of one Python file."""
    (tmp_path / "context" / "project").mkdir(parents=True)
    (tmp_path / "context" / "project" / "main.py").write_text("print(1)\n")
    return task.model_copy(update={"environment": Environment(context=tmp_path / "context")})


def command(agent: CommandAgent, task: Task) -> ExecSpec:
    return agent.command(task, ENDPOINT if agent.uses_model else None)


def test_its_name_is_the_word_that_is_typed(any_agent: Agent, request: pytest.FixtureRequest) -> None:
    assert any_agent.name == request.node.callspec.params["any_agent"]
    assert any_agent.version


def test_two_of_one_configuration_are_one_and_of_another_are_not() -> None:
    assert len({identity(configured(name)) for name in NAMES for _ in range(2)}) == len(NAMES)


def test_an_agent_is_run_in_the_sandbox_or_drives_it(any_agent: Agent) -> None:
    assert isinstance(any_agent, DrivingAgent) is not hasattr(any_agent, "command")


def test_it_is_a_pure_function(agent: CommandAgent, task: Task) -> None:
    assert command(agent, task) == command(agent, task)


def test_the_key_is_in_no_argument(agent: CommandAgent, task: Task) -> None:
    """Every process of a sandbox can read the arguments of the others."""
    assert not any(KEY in argument for argument in command(agent, task).argv)


def test_an_agent_with_a_model_is_told_where_it_is_and_how_it_is_called(
    agent: CommandAgent, task: Task
) -> None:
    spec = command(agent, task)
    text = " ".join((*spec.argv, *spec.env.values(), *spec.files.values()))
    for word in (BASE_URL, ENDPOINT.model, KEY, task.instruction):
        assert (word in text) is agent.uses_model


def test_it_starts_from_its_bundle_and_nothing_of_the_image(agent: CommandAgent, task: Task) -> None:
    if agent.bundle is not None:
        assert any(
            argument.startswith(f"/opt/assay/{agent.bundle.name}/") for argument in command(agent, task).argv
        )


def test_only_the_oracle_is_given_the_solution(agent: CommandAgent, task: Task) -> None:
    assert bool(command(agent, task).uploads) is (agent.name == "oracle")


def test_a_driving_agent_says_what_to_do_about_a_task_that_it_cannot_work_on(
    driving: DrivingAgent, task: Task, project: Task
) -> None:
    assert driving.refusal(project) is None
    assert "dataset=" in (driving.refusal(task) or "")


@pytest.mark.parametrize("why", [Stopped("The budget is spent."), ModelFailed("It did not answer.")])
def test_what_ends_its_questions_ends_it(
    driving: DrivingAgent, project: Task, tmp_path: Path, why: Exception
) -> None:
    def answer(_: str) -> str:
        raise why

    spec = SandboxSpec(name="some", image=Image(id="", reference="", origin="none"))
    with LocalSandboxes().open(spec) as sandbox:
        bench = FakeBench(sandbox, tmp_path / "cache", answer)
        with pytest.raises(type(why)):
            driving.run(project, bench)
    assert bench.asked
    assert not bench.used
