"""Conformance of the shipped CLI agents: the real programs, from their bundles, in whole trials without a network.

Each stands between the real gateway and a fake provider that misbehaves. Whatever the CLI, what reaches the record must
be the same.
"""

from __future__ import annotations

import json
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from omegaconf import OmegaConf

from runner.agents.cli import CliAgent
from runner.config import Cell, build
from runner.door import CONF
from runner.gateway import Gateway, provider
from runner.gateway.fake_upstream import Behaviour, FakeUpstream
from runner.plan import make_plan
from runner.records import Budget, Model, ModelCall, OwnUsage, Prices, Status, TrialRecord, Usage
from runner.sandbox.docker import DockerSandboxes
from runner.store import LEDGER, Store
from runner.trial import Lab, run_to_the_end
from tests.tasks_factory import dataset, make_task

pytestmark = [pytest.mark.docker, pytest.mark.bundle]

AGENTS = sorted(path.stem for path in (CONF / "agent").glob("*.yaml") if "CliAgent" in path.read_text())
PROMPT = "start: {{ task }} {% raw %} ${HOME} `id` 'x' \"y\" é🙂\n" + "specification " * 28_000 + "end"
"""Longer than one argument of a command line may be."""
LOOK = "(id -u; grep CapEff /proc/self/status; cat /sys/class/net/*/address; touch /opt/assay/python/x) > seen 2>&1; "
ERROR = LOOK + "getent hosts looked-up.example; sh -c 'echo the reason >&2; exit 7'"
SHELL_ARGUMENTS: dict[str, dict[str, Any]] = {
    "openhands": {"security_risk": "LOW"},
    "qwen_code": {"is_background": False},
}
"""What an agent's shell tool demands beside the command."""
END = {"mini_swe_agent": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}
"""The command that ends an agent; all others end by words."""
FAULTS = (
    Behaviour(status_code=429, retry_after=1),
    Behaviour(status_code=500),
    Behaviour(cut=True),
)


class Trial(NamedTuple):
    record: TrialRecord
    calls: tuple[ModelCall, ...]
    seen: str
    """What the first command saw of its sandbox."""


Run = Callable[..., Trial]


@pytest.fixture(params=AGENTS)
def agent(request: pytest.FixtureRequest) -> CliAgent:
    node = OmegaConf.to_container(OmegaConf.load(CONF / "agent" / f"{request.param}.yaml"), resolve=True)
    cli = build(node, "agent")
    assert isinstance(cli, CliAgent)
    return cli


@pytest.fixture(scope="module")
def gateway() -> Iterator[Gateway]:
    """Its folder has a short name, and agents of any user may pass through."""
    with tempfile.TemporaryDirectory(prefix="assay-") as folder:
        Path(folder).chmod(0o755)
        with Gateway(Path(folder) / "s") as gateway:
            yield gateway


@pytest.fixture
def run(gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A whole trial of an agent with a provider on a made task."""
    monkeypatch.setattr(provider, "BACK_OFF_SECONDS", 0.05)
    monkeypatch.setenv("FAKE_API_KEY", "sk-fake")

    def run(
        agent: CliAgent, upstream: FakeUpstream, budget: Budget, prompt: str = "Make /app/done."
    ) -> Trial:
        make_task(tmp_path / "tasks", "made", toml='[agent]\nuser = "1000"\n')
        (tmp_path / "tasks" / "made" / "instruction.md").write_text(prompt)
        cell = Cell(
            agent=agent,
            model=_model(upstream),
            dataset=dataset(tmp_path / "tasks"),
            budget=budget,
            attempts=1,
        )
        sandboxes = DockerSandboxes()
        assert agent.bundle
        bundles = sandboxes.prepare([agent.bundle], print)
        (trial,) = make_plan([cell], sandboxes, lambda _: ()).trials
        store = Store(tmp_path / "outputs")
        record = run_to_the_end(trial, Lab(sandboxes, gateway, store, "test", bundles), 0, lambda: False)
        (ledger,) = (tmp_path / "outputs").rglob(LEDGER)
        calls = tuple(ModelCall.model_validate_json(line) for line in ledger.read_text().splitlines())
        seen = _file(ledger.parent / "workspace.tar", "seen")
        return Trial(record, calls, seen)

    return run


def _model(upstream: FakeUpstream) -> Model:
    return Model(
        name="fake",
        id="openai/x",
        api_base=upstream.url,
        api_key_env="FAKE_API_KEY",
        prices=Prices(input=2.0, output=10.0, cache_hit=0.5),
        context_window=1_000_000,
        max_output_tokens=8192,
    )


def _file(tar: Path, name: str) -> str:
    with tarfile.open(tar) as archive:
        content = archive.extractfile(f"app/{name}") if f"app/{name}" in archive.getnames() else None
        return content.read().decode() if content else ""


def shell(agent: CliAgent, command: str) -> Behaviour:
    """The model's call of the agent's own shell tool."""
    field = "cmd" if agent.name == "codex" else "command"
    arguments = {field: command, **SHELL_ARGUMENTS.get(agent.name, {})}
    return Behaviour(text="A step.", calls=((agent.tools["execute"][0], json.dumps(arguments)),))


def last(agent: CliAgent) -> Behaviour:
    return shell(agent, END[agent.name]) if agent.name in END else Behaviour(text="Done.")


def total(served: list[Usage]) -> Usage:
    return sum(served, Usage())


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)


def test_work_through_faults_with_its_own_tools_and_no_privilege(run: Run, agent: CliAgent) -> None:
    """A prompt of 400 KB; a 429, a 500 and a cut connection, none of which it sees; a command that fails."""
    moves = (*FAULTS, shell(agent, ERROR), *FAULTS[1:], shell(agent, "touch /app/done"), last(agent))
    with FakeUpstream(*moves) as upstream:
        record, calls, seen = run(agent, upstream, Budget(wall_seconds=120), PROMPT)

    assert (record.status, record.reward, record.agent_exit_code) == (Status.COMPLETED, 1.0, 0), record
    assert [call.status_code for call in calls] == [200, 200, 200]
    assert calls[0].attempts >= 3
    assert calls[0].latency_seconds >= 1.0, "the Retry-After"
    assert any(PROMPT in text for text in strings(calls[0].request))
    assert any("the reason" in text for text in strings(calls[1].request)), "the failed command's output"

    assert record.usage == total(upstream.served)
    own = record.agent_usage
    assert own, "what it says itself"
    assert None not in (own.input_tokens, own.cache_hit_tokens, own.output_tokens)
    assert record.usage_difference == OwnUsage(**{name: 0 for name, said in own if said is not None})
    assert record.turns == 3
    assert set(record.tool_calls) == {agent.tools["execute"][0]}

    uid, capabilities, interfaces, touched = seen.splitlines()
    assert uid == "1000"
    assert int(capabilities.split()[1], 16) == 0
    assert interfaces == "00:00:00:00:00:00", "nothing but lo"
    assert "Read-only file system" in touched
    assert {one.host for one in record.egress} == {"looked-up.example"}, "no name but its model's"
    assert "lookups_unheard" not in record.flags


def test_a_refused_agent_ends_by_itself_and_is_judged(run: Run, agent: CliAgent) -> None:
    with FakeUpstream(shell(agent, LOOK + "touch /app/done")) as upstream:
        record, calls, _ = run(agent, upstream, Budget(turns=1, wall_seconds=120))

    assert (record.status, record.reward) == (Status.BUDGET_EXCEEDED, 1.0), record
    assert [call.status_code for call in calls] == [200, 403], "no retries of a final answer"
    assert record.usage == total(upstream.served)
    refused = calls[-1].started_at
    assert (record.finished_at - refused).total_seconds() < 30


def test_an_agent_at_its_deadline_is_stopped_and_judged(run: Run, agent: CliAgent) -> None:
    moves = shell(agent, LOOK + "touch /app/done"), Behaviour(text="Too late.", seconds=100)
    with FakeUpstream(*moves) as upstream:
        record, calls, _ = run(agent, upstream, Budget(wall_seconds=20))

    assert (record.status, record.reward) == (Status.TIMEOUT, 1.0), record
    assert record.seconds.agent < 30
    assert calls[0].status_code == 200
    assert record.usage == total(upstream.served)
    assert upstream.hung_up == 1, "nobody pays for an answer that nobody waits for"


@pytest.mark.parametrize("agent", ["qwen_code"], indirect=True)
def test_an_answer_of_90_seconds_breaks_no_stream(run: Run, agent: CliAgent) -> None:
    """Of one streaming client: pings keep the connection open, and its own limits on silence are off."""
    slow = shell(agent, LOOK + "touch /app/done").model_copy(update={"seconds": 90.0})
    with FakeUpstream(slow, last(agent)) as upstream:
        record, calls, _ = run(agent, upstream, Budget(wall_seconds=200))

    assert (record.status, record.reward) == (Status.COMPLETED, 1.0), record
    assert [call.status_code for call in calls] == [200, 200]
    assert calls[0].latency_seconds >= 90
    assert len(upstream.requests) == 2
