"""Conformance of the shipped CLI agents: the real programs, from their bundles, in whole trials without a network.

Each runs against the real gateway and a fake provider that misbehaves. The trial's record must be the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from runner.agents.cli import CliAgent
from runner.gateway import Gateway, provider
from runner.gateway.fake_upstream import Behaviour
from runner.records import Budget, ModelCall, OwnUsage, Status
from tests.agents.conftest import DEADLINE_SECONDS, SLOW_SECONDS
from tests.agents.trials import (
    FINISH,
    LOOK,
    NEVER_COMPACT,
    ONE_OF_A_KIND,
    OWN_TOOLS,
    TRIED,
    Outcome,
    last,
    own,
    shell,
    shipped,
    trial,
)

pytestmark = [pytest.mark.docker, pytest.mark.bundle]

PROMPT = "start: {{ task }} {% raw %} ${HOME} `id` 'x' \"y\" é🙂\n" + "specification " * 10_000 + "end"
"""A prompt longer than one argument of a command line may be."""
ERROR = LOOK + "getent hosts looked-up.example; sh -c 'echo the reason >&2; exit 7'"
FAULTS = (
    Behaviour(status_code=429, retry_after=1),
    Behaviour(status_code=500),
    Behaviour(cut=True),
)
SUMMARY = ("summar", "Summarize this session", "state_snapshot")
"""Words with which agents ask their model to summarise a conversation that has become too long."""
COMPACTS_AT = dict.fromkeys(NEVER_COMPACT) | {"continue_cli": 2}
"""Agent -> number of the call that asks for the summary; 3 for all others, which go by the provider's counts."""
NO_CACHED_TOKENS = {"continue_cli", "goose", "mistral_vibe", "mistral_vibe_3"}
"""Agents whose own count leaves out tokens that were read from a cache."""
CALLS_HOME = {"cline": {"data.cline.bot"}, "continue_cli": {"api.continue.dev"}}
"""Names that an agent asks for and no setting prevents. The sandbox refuses them, and the agent goes on."""
NEVER_STREAMED = {"grok_cli", "mini_swe_agent", "openhands"}
"""Agents that ask for complete answers."""

WAIT = 2 * DEADLINE_SECONDS
"""Time limit of a test of a long trial, including the wait for its start, in seconds."""
AMPLE = 900.0
"""A time in seconds that is no deadline even on a busy machine, but shorter than a test's limit."""
Run = Callable[..., Outcome]
Long = Callable[[str], Outcome]
LONG = pytest.mark.parametrize("agent", ONE_OF_A_KIND, indirect=True)
"""Mark of a test of a long trial."""


@pytest.fixture(params=TRIED)
def agent(request: pytest.FixtureRequest) -> CliAgent:
    return shipped(request.param)


@pytest.fixture
def run(gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a whole trial of an agent on a generated task."""
    monkeypatch.setattr(provider, "BACK_OFF_SECONDS", 0.01)

    def run(agent: CliAgent, moves: tuple[Behaviour, ...], budget: Budget, **changed: Any) -> Outcome:
        return trial(agent, moves, budget, gateway, tmp_path, **changed)

    return run


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)


def offered(tools: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the names of the tools in a request, including those within a namespace."""
    for tool in tools:
        if "tools" in tool:
            yield from offered(tool["tools"])
        elif "functionDeclarations" in tool:
            yield from offered(tool["functionDeclarations"])
        else:
            yield tool.get("function", tool).get("name") or tool["type"]


def sums_up(call: ModelCall) -> bool:
    """Return whether the last message of a request asks for a summary of the conversation."""
    requests = (call.request.get(name) for name in ("messages", "input", "contents"))
    messages = next(filter(None, requests))
    return any(word in text for text in strings(messages[-1]) for word in SUMMARY)


@pytest.mark.timeout(AMPLE + 60)
def test_work_through_faults_with_its_own_tools_and_no_privilege(run: Run, agent: CliAgent) -> None:
    """The agent gets a prompt of 140 KB, runs a command that fails, and writes and changes a file with its own tools.

    It does not notice a 429, a 500 and a cut connection.
    """
    moves = (*FAULTS, shell(agent, ERROR), *FAULTS[1:], *own(agent), last(agent))
    outcome = run(agent, moves, Budget(wall_seconds=AMPLE), prompt=PROMPT)
    record, calls = outcome.record, outcome.calls

    assert (record.status, record.reward, record.agent_exit_code) == (Status.COMPLETED, 1.0, 0), record
    assert outcome.made == "two\n"
    assert {call.status_code for call in calls} == {200}
    assert len(calls) == len(OWN_TOOLS[agent.name]) + 2
    # The model is of the GPT-5 family, for which conf/agent_model/ sets another API for OpenHands.
    api = "responses" if agent.name == "openhands" else agent.api
    assert {call.api for call in calls} == {api}, "what it declares, by which its model is asked first"
    assert calls[0].attempts >= 3
    assert calls[0].latency_seconds >= 1.0, "the Retry-After"
    assert any(PROMPT in text for text in strings(calls[0].request))
    assert any("the reason" in text for text in strings(calls[1].request)), "the failed command's output"

    assert record.usage == outcome.served
    if agent.usage:
        counts = record.agent_usage
        assert counts, "what it says itself"
        assert None not in (counts.input_tokens, counts.output_tokens)
        assert (counts.cache_hit_tokens is None) is (agent.name in NO_CACHED_TOKENS)
        assert record.usage_difference == OwnUsage(**{name: 0 for name, count in counts if count is not None})
    assert record.turns == len(calls)
    fresh = record.usage.input_tokens - record.usage.cache_hit_tokens
    priced = (fresh * 2.0 + record.usage.cache_hit_tokens * 0.5 + record.usage.output_tokens * 10.0) / 1e6
    assert record.cost_usd == pytest.approx(priced, rel=1e-9)
    assert outcome.trajectory["final_metrics"]["total_prompt_tokens"] == record.usage.input_tokens
    own_tools = {name for name, _ in OWN_TOOLS[agent.name]}
    assert set(record.tool_calls) == {agent.tools["execute"][0], *own_tools, *FINISH.get(agent.name, ())[:1]}
    assert len(record.tool_kinds) == record.interactions
    assert set(record.tool_calls) <= {
        name for kind in ("execute", "edit", "read", "finish") for name in agent.tools.get(kind, ())
    }
    asked = {"looked-up.example", *CALLS_HOME.get(agent.name, ())}
    assert {one.host for one in record.egress} == asked, "no other name"
    marks = {"agent_usage_differs", "agent_usage_unreadable", "empty_rollout", "lookups_unheard"}
    assert not marks & set(record.flags)

    named = {name for names in agent.tools.values() for name in names}
    assert set(offered(calls[0].request["tools"])) <= named, "each has its kind"

    uid, capabilities, interfaces, touched = outcome.seen.splitlines()
    assert uid == "1000"
    assert int(capabilities.split()[1], 16) == 0
    assert interfaces == "00:00:00:00:00:00", "nothing but lo"
    assert "Read-only file system" in touched


@pytest.mark.timeout(AMPLE + 60)
def test_a_refused_agent_ends_by_itself_and_is_judged(run: Run, agent: CliAgent) -> None:
    """The refusal follows an answer, which comes as the provider's stream if the agent wants one."""
    moves = (shell(agent, "touch /app/done"),)
    outcome = run(agent, moves, Budget(turns=1, wall_seconds=AMPLE), stream="through")
    record, calls = outcome.record, outcome.calls

    assert (record.status, record.reward) == (Status.BUDGET_EXCEEDED, 1.0), record
    assert [call.status_code for call in calls] == [200, 403], "no retries of a final answer"
    assert calls[-1].refused == "turns"
    assert calls[0].streamed is (agent.name not in NEVER_STREAMED)
    assert "stream" not in calls[0].dropped
    assert record.usage == outcome.served
    refused = calls[-1].started_at
    before, after = refused - record.started_at, record.finished_at - refused
    assert after < max(timedelta(seconds=30), before), "at once, as this machine goes"


@pytest.mark.timeout(WAIT)
@LONG
def test_an_answer_of_90_seconds_breaks_no_agent(long_trial: Long, agent: CliAgent) -> None:
    """Pings keep a stream open, and the agents' own limits on silence are off."""
    outcome = long_trial(agent.name)
    first, second = outcome.calls[:2]
    assert first.latency_seconds >= SLOW_SECONDS
    assert (first.status_code, second.status_code) == (200, 200)
    assert "1000" in outcome.seen, "its command was run"
    assert any("1 2 3 4 5 6 7 8 9" in text for text in strings(second.request))


@pytest.mark.timeout(WAIT)
@LONG
def test_a_full_context_window_is_compacted_and_no_other(long_trial: Long, agent: CliAgent) -> None:
    """The agent believes the size that it was given."""
    calls = long_trial(agent.name).calls
    asked = next((call.index for call in calls[1:] if sums_up(call)), None)
    assert asked == COMPACTS_AT.get(agent.name, 3)


@pytest.mark.timeout(WAIT)
@LONG
def test_an_agent_at_its_deadline_is_stopped_and_judged(long_trial: Long, agent: CliAgent) -> None:
    outcome = long_trial(agent.name)
    record = outcome.record
    assert (record.status, record.reward) == (Status.TIMEOUT, 1.0), record
    assert DEADLINE_SECONDS <= record.seconds.agent < DEADLINE_SECONDS + 60
    assert record.usage == outcome.served
    assert outcome.hung_up == 1, "nobody pays for an answer that nobody waits for"
