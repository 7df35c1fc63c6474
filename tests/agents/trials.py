"""Whole trials of a shipped agent against a provider that misbehaves, and what they came to."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from runner.agents.cli import CliAgent
from runner.config import Cell, build
from runner.door import CONF
from runner.gateway import Gateway
from runner.gateway.fake_upstream import Behaviour, FakeUpstream
from runner.plan import make_plan
from runner.records import Budget, Model, ModelCall, Prices, Record, TrialRecord, Usage
from runner.sandbox.docker import DockerSandboxes
from runner.store import LEDGER, Store
from runner.trial import Lab, run_to_the_end
from tests.tasks_factory import dataset, make_task

AGENTS = sorted(path.stem for path in (CONF / "agent").glob("*.yaml") if "CliAgent" in path.read_text())
KEY_VARIABLE = "FAKE_API_KEY"
LOOK = "(id -u; grep CapEff /proc/self/status; cat /sys/class/net/*/address; touch /opt/assay/python/x) > seen 2>&1; "
"""A command's beginning, which every first command has: what it sees of its sandbox."""
SHELL_ARGUMENTS: dict[str, dict[str, Any]] = {
    "openhands": {"security_risk": "LOW"},
    "qwen_code": {"is_background": False},
}
"""What an agent's shell tool demands beside the command."""
END = {"mini_swe_agent": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}
"""The command that ends an agent; all others end by words."""


class Outcome(Record):
    """What a trial came to, on both of its ends."""

    record: TrialRecord
    calls: tuple[ModelCall, ...]
    seen: str
    """What the first command saw of its sandbox."""
    served: Usage
    """Of all answers that the provider sent."""
    hung_up: int
    """Requests that the provider could not answer any more."""


def shipped(name: str, **changed: Any) -> CliAgent:
    """The agent of a file in `conf/agent/`, as `agent.KEY=VALUE` changes it."""
    node = OmegaConf.merge(OmegaConf.load(CONF / "agent" / f"{name}.yaml"), changed)
    agent = build(OmegaConf.to_container(node, resolve=True), "agent")
    assert isinstance(agent, CliAgent)
    return agent


def shell(agent: CliAgent, command: str, **changed: Any) -> Behaviour:
    """The model's call of the agent's own shell tool."""
    field = "cmd" if agent.name == "codex" else "command"
    arguments = {field: command, **SHELL_ARGUMENTS.get(agent.name, {})}
    call = agent.tools["execute"][0], json.dumps(arguments)
    return Behaviour.model_validate({"text": "A step.", "calls": (call,)} | changed)


def last(agent: CliAgent) -> Behaviour:
    """The model's last answer."""
    return shell(agent, END[agent.name]) if agent.name in END else Behaviour(text="Done.")


def trial(
    agent: CliAgent,
    moves: tuple[Behaviour, ...],
    budget: Budget,
    gateway: Gateway,
    folder: Path,
    **task: Any,
) -> Outcome:
    """One whole trial in the new `folder`; `task` may hold its `prompt` and the model's `context_window`."""
    make_task(folder / "tasks", "made", toml='[agent]\nuser = "1000"\n')
    (folder / "tasks" / "made" / "instruction.md").write_text(task.get("prompt", "Make /app/done."))
    with FakeUpstream(*moves) as upstream:
        cell = Cell(
            agent=agent,
            model=_model(upstream, task.get("context_window", 1_000_000)),
            dataset=dataset(folder / "tasks"),
            budget=budget,
            attempts=1,
        )
        sandboxes = DockerSandboxes()
        assert agent.bundle
        bundles = sandboxes.prepare([agent.bundle], print)
        (planned,) = make_plan([cell], sandboxes, lambda _: ()).trials
        lab = Lab(sandboxes, gateway, Store(folder / "outputs"), "test", bundles)
        record = run_to_the_end(planned, lab, 0, lambda: False)
    (ledger,) = (folder / "outputs").rglob(LEDGER)
    return Outcome(
        record=record,
        calls=tuple(ModelCall.model_validate_json(line) for line in ledger.read_text().splitlines()),
        seen=_file(ledger.parent / "workspace.tar", "seen"),
        served=sum(upstream.served, Usage()),
        hung_up=upstream.hung_up,
    )


def _model(upstream: FakeUpstream, context_window: int) -> Model:
    return Model(
        name="fake",
        id="openai/x",
        api_base=upstream.url,
        api_key_env=KEY_VARIABLE,
        prices=Prices(input=2.0, output=10.0, cache_hit=0.5),
        context_window=context_window,
        max_output_tokens=8192,
    )


def _file(tar: Path, name: str) -> str:
    with tarfile.open(tar) as archive:
        content = archive.extractfile(f"app/{name}") if f"app/{name}" in archive.getnames() else None
        return content.read().decode() if content else ""
