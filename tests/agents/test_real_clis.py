"""The shipped CLI agents themselves: real programs, from their bundles, in a sandbox, on the real gateway."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from omegaconf import OmegaConf

from runner.agents.cli import CliAgent
from runner.config import build
from runner.door import CONF
from runner.gateway import Gateway, Session, SessionSpec
from runner.records import Budget, Environment, ExecResult, ExecSpec, Image, Model, SandboxSpec, Task
from runner.sandbox import base
from runner.sandbox.docker import DockerSandboxes
from runner.sandbox.inside import supervised

pytestmark = [pytest.mark.docker, pytest.mark.bundle]

POLICY = """
name: two turns
default:
  - say: Looking around.
    run: |
      (id -u; grep CapEff /proc/self/status; cat /sys/class/net/*/address; touch /opt/assay/python/x) > hello.txt 2>&1
  - say: Done.
"""
SHIPPED = ("codex", "mini_swe_agent")


class Rollout(NamedTuple):
    result: ExecResult
    hello: str
    session: Session


class Bench:
    """Sandboxes and a gateway that run an agent on a prompt."""

    def __init__(self, gateway: Gateway, folder: Path) -> None:
        self.sandboxes, self.gateway, self.folder = DockerSandboxes(), gateway, folder
        self.policy = folder / "policy.yaml"
        self.policy.write_text(POLICY)

    def run(self, agent: CliAgent, prompt: str, budget: Budget) -> Rollout:
        assert agent.bundle
        self.sandboxes.prepare([agent.bundle], print)
        task = Task(name="t", dataset="d", directory=self.folder, instruction=prompt)
        model = Model(name="scripted", backend="scripted", id="scripted/two", policy=self.policy)
        ledger = self.folder / "ledger.jsonl"
        spec = SessionSpec(trial="t", task="t", model=model, budget=budget, ledger=ledger)
        with self.gateway.open(spec) as session:
            command = agent.command(task, session.endpoint).model_copy(update={"timeout_seconds": 120})
            sandbox_spec = SandboxSpec(
                name=f"test-{agent.name}",
                image=Image(id=base.tag(), reference=base.tag()),
                environment=Environment(workdir="/home/agent"),
                user="agent",
                gateway_dir=session.socket_dir,
                bundles=(agent.bundle,),
            )
            with self.sandboxes.open(sandbox_spec) as sandbox:
                result = sandbox.exec(supervised(command, gateway=True))
                hello = sandbox.exec(ExecSpec(argv=("cat", "hello.txt"))).stdout
        return Rollout(result, hello, session)


@pytest.fixture(scope="module")
def gateway() -> Iterator[Gateway]:
    """Its folder has a short name, and agents of any user may pass through."""
    with tempfile.TemporaryDirectory(prefix="assay-") as folder:
        Path(folder).chmod(0o755)
        with Gateway(Path(folder) / "s") as gateway:
            yield gateway


@pytest.fixture
def bench(gateway: Gateway, tmp_path: Path) -> Bench:
    return Bench(gateway, tmp_path)


@pytest.fixture(params=SHIPPED)
def agent(request: pytest.FixtureRequest) -> CliAgent:
    node = OmegaConf.to_container(OmegaConf.load(CONF / "agent" / f"{request.param}.yaml"), resolve=True)
    cli = build(node, "agent")
    assert isinstance(cli, CliAgent)
    return cli


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)


def test_agent_works_with_its_own_tools_and_no_privilege(bench: Bench, agent: CliAgent) -> None:
    result, hello, session = bench.run(agent, "write hello.txt", Budget())
    assert (result.exit_code, result.ended) == (0, "exited"), result.stdout + result.stderr
    uid, capabilities, interfaces, touched = hello.splitlines()
    assert uid == "1000"
    assert int(capabilities.split()[1], 16) == 0
    assert interfaces == "00:00:00:00:00:00", "nothing but lo"
    assert "Read-only file system" in touched
    assert [call.status_code for call in session.calls] == [200, 200]
    used = {name for names in agent.tools.values() for name in names}
    assert {call["name"] for call in tool_calls(session)} <= used


def tool_calls(session: Session) -> list[dict[str, Any]]:
    text = json.dumps([call.response for call in session.calls])
    found: list[dict[str, Any]] = []

    def visit(value: dict[str, Any]) -> dict[str, Any]:
        if "name" in value and "arguments" in value:
            found.append(value)
        return value

    json.loads(text, object_hook=visit)
    assert found
    return found


def test_prompt_of_400_kb_arrives_unchanged(bench: Bench, agent: CliAgent) -> None:
    prompt = "start: {{ task }} {% raw %} ${HOME} `id` 'x' \"y\" é🙂\n" + "specification " * 28_000 + "end"
    result, _, session = bench.run(agent, prompt, Budget())
    assert result.exit_code == 0, result.stdout[-2000:] + result.stderr[-2000:]
    assert any(prompt in text for text in strings(session.calls[0].request))


def test_refused_agent_ends_by_itself_at_once(bench: Bench, agent: CliAgent) -> None:
    result, hello, session = bench.run(agent, "write hello.txt" + "x" * 100_000, Budget(turns=1))
    assert session.refusal == "turns"
    assert hello.startswith("1000\n")
    assert (result.exit_code, result.ended) == (1, "exited")
    assert [call.status_code for call in session.calls] == [200, 403], "no retries of a final answer"
