"""The scripted model plays its policy through each API, with any agent's tools, and labels its answers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from runner.errors import ConfigError
from runner.gateway import Session
from runner.gateway.scripted import SUBMIT, Policy, Script, Turn, answer, load
from runner.gateway.trajectory import tool_calls
from runner.records import Usage
from tests.gateway.conftest import Http, Json, Open

POLICY = """
name: greeter
description: Says hello to a file.
tasks:
  greet:
    - {say: First a look., run: ls -la}
    - tools: ['echo hello > a.txt', 'echo hello > b.txt']
    - say: It is done.
default:
  - run: pwd
"""


def _tool(name: str, properties: Json, *required: str) -> Json:
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


TEXT = {"type": "string"}
BASH = _tool("bash", {"command": TEXT}, "command")
FINISH = _tool("finish", {"message": TEXT}, "message")


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    return path


@pytest.fixture
def model(policy: Path) -> Json:
    return {"backend": "scripted", "id": "scripted/greeter", "policy": policy, "api_key_env": None}


@pytest.mark.parametrize("stream", [False, True])
def test_a_chat_agent_is_led_through_the_policy(
    session: Open, http: Http, model: Json, *, stream: bool
) -> None:
    trial = session(**model)
    agent = http(trial)
    messages: list[Json] = [{"role": "user", "content": "greet"}]
    commands: list[list[str]] = []
    for _ in range(3):
        body = {"messages": messages, "tools": [BASH], "stream": stream}
        assert agent.post("/v1/chat/completions", json=body).status_code == 200
        message = (trial.calls[-1].response or {})["choices"][0]["message"]
        assert "[scripted policy greeter, not a language model]" in message["content"]
        calls = message.get("tool_calls") or []
        commands.append([json.loads(call["function"]["arguments"])["command"] for call in calls])
        messages.append({"role": "assistant", "content": message["content"], "tool_calls": calls})
        messages += [{"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in calls]
    assert commands == [["ls -la"], ["echo hello > a.txt", "echo hello > b.txt"], []]
    assert message["content"].endswith("It is done.")
    _sums_agree(trial)


@pytest.mark.parametrize("stream", [False, True])
def test_a_responses_agent_is_led_through_the_same_policy(
    session: Open, http: Http, model: Json, *, stream: bool
) -> None:
    """The tool is called exec_command, and its items come back in codex's form."""
    tool: Json = {"type": "function", "name": "exec_command"}
    tool["parameters"] = {"type": "object", "properties": {"cmd": TEXT}, "required": ["cmd"]}
    trial = session(**model)
    items: list[Json] = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "greet"}]}
    ]
    commands: list[list[str]] = []
    for _ in range(3):
        body = {
            "input": items,
            "tools": [tool, {"type": "web_search"}],
            "instructions": "be good",
            "stream": stream,
        }
        assert http(trial).post("/v1/responses", json=body).status_code == 200
        calls = tool_calls(trial.calls[-1])
        commands.append([json.loads(call.arguments)["cmd"] for call in calls])
        items += (trial.calls[-1].response or {})["output"]
        items += [{"type": "function_call_output", "call_id": call.id, "output": "ok"} for call in calls]
    assert commands == [["ls -la"], ["echo hello > a.txt", "echo hello > b.txt"], []]
    _sums_agree(trial)


@pytest.mark.parametrize("stream", [False, True])
def test_a_messages_agent_is_led_through_the_same_policy(
    session: Open, http: Http, model: Json, *, stream: bool
) -> None:
    """The tool is called Bash and stands among others with text arguments, as in Claude Code."""
    read: Json = {"name": "Read", "input_schema": {"type": "object", "properties": {"file_path": TEXT}}}
    bash: Json = {"name": "Bash"}
    bash["input_schema"] = {"type": "object", "properties": {"command": TEXT}, "required": ["command"]}
    trial = session(**model)
    messages: list[Json] = [{"role": "user", "content": "greet"}]
    commands: list[list[str]] = []
    for _ in range(3):
        body = {
            "messages": messages,
            "max_tokens": 32000,
            "tools": [read, bash, {"type": "web_search_20250305", "name": "web_search"}],
            "system": [{"type": "text", "text": "be good", "cache_control": {"type": "ephemeral"}}],
            "thinking": {"type": "adaptive"},
            "stream": stream,
        }
        assert http(trial).post("/v1/messages?beta=true", json=body).status_code == 200
        calls = tool_calls(trial.calls[-1])
        commands.append([json.loads(call.arguments)["command"] for call in calls])
        messages.append({"role": "assistant", "content": (trial.calls[-1].response or {})["content"]})
        results = [{"type": "tool_result", "tool_use_id": call.id, "content": "ok"} for call in calls]
        messages.append({"role": "user", "content": results})
    assert commands == [["ls -la"], ["echo hello > a.txt", "echo hello > b.txt"], []]
    assert "tools:web_search_20250305" in trial.calls[0].dropped
    _sums_agree(trial)


def _sums_agree(trial: Session) -> None:
    """Check that usage and cost are the sums of the ledger, whose calls are all labelled as scripted."""
    calls = trial.calls
    assert all(call.scripted for call in calls)
    assert trial.meter.usage == sum((call.usage for call in calls if call.usage), Usage())
    assert trial.meter.cost_usd == pytest.approx(sum(call.cost_usd or 0.0 for call in calls))
    hits = [call.usage.cache_hit_tokens for call in calls if call.usage]
    inputs = [call.usage.input_tokens for call in calls if call.usage]
    assert hits[0] == 0
    assert hits[1:] == inputs[:-1], "a turn's cache hit is what the turn before it read"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (BASH, {"command": "pwd"}),
        (_tool("exec_command", {"cmd": TEXT, "yield_time_ms": {"type": "number"}}, "cmd"), {"cmd": "pwd"}),
        (
            _tool(
                "run_shell_command",
                {"command": TEXT, "is_background": {"type": "boolean"}},
                "command",
                "is_background",
            ),
            {"command": "pwd", "is_background": False},
        ),
        (
            _tool(
                "terminal",
                {
                    "command": TEXT,
                    "security_risk": {"type": "string", "enum": ["LOW", "HIGH"]},
                    "summary": TEXT,
                },
                "command",
                "security_risk",
                "summary",
            ),
            {"command": "pwd", "security_risk": "LOW", "summary": "pwd"},
        ),
        (
            _tool(
                "Shell",
                {"command": TEXT, "timeout": {"type": "integer", "default": 30}},
                "command",
                "timeout",
            ),
            {"command": "pwd", "timeout": 30},
        ),
        (
            _tool("Bash", {"command": TEXT, "timeout": {"type": "integer"}}, "timeout"),
            {"command": "pwd", "timeout": 60},
        ),
        (
            _tool("shell", {"command": {"type": "array", "items": TEXT}}, "command"),
            {"command": ["bash", "-lc", "pwd"]},
        ),
        (_tool("run_anything", {"command": TEXT}, "command"), {"command": "pwd"}),
    ],
    ids=lambda value: value["function"]["name"] if "function" in value else "",
)
def test_each_agents_shell_is_understood(tool: Json, arguments: Json) -> None:
    (call,) = _calls(_play([tool, FINISH], []))
    assert call["name"] == tool["function"]["name"]
    assert json.loads(call["arguments"]) == arguments


def _play(tools: list[Json], messages: list[Json], task: str = "other") -> Json:
    script = Script(Policy(name="p", default=(Turn(run="pwd"), Turn(say="Over."))), task)
    choice = answer(script, messages, tools)["choices"][0]
    return dict(choice["message"], finish_reason=choice["finish_reason"])


def _calls(message: Json) -> list[Json]:
    return [call["function"] for call in message.get("tool_calls", ())]


def test_the_known_shell_is_preferred_to_other_tools_with_commands() -> None:
    others = [_tool("editor", {"command": TEXT}, "command"), BASH]
    assert _calls(_play(others, []))[0]["name"] == "bash"


def test_without_a_shell_it_says_so() -> None:
    message = _play([FINISH], [])
    assert "No shell tool is offered" in message["content"]
    assert message["finish_reason"] == "stop"


DONE: list[Json] = [
    {"role": "user", "content": "do it"},
    {"role": "assistant", "tool_calls": [{"id": "call_0_0"}]},
    {"role": "tool", "tool_call_id": "call_0_0", "content": f"a file that says {SUBMIT}"},
]
"""A conversation after the only turn of the policy."""
ENDED: Json = {"role": "assistant", "tool_calls": [{"id": "call_1_0"}]}


def test_it_ends_in_plain_words() -> None:
    message = _play([BASH], DONE)
    assert _calls(message) == []
    assert message["content"].endswith("Over.")


def test_it_ends_with_finish_where_that_is_offered() -> None:
    (call,) = _calls(_play([BASH, FINISH], DONE))
    assert call == {"name": "finish", "arguments": json.dumps({"message": "Over."})}
    assert _calls(_play([BASH, FINISH], [*DONE, ENDED])) == []


def test_it_ends_as_the_prompt_of_mini_swe_agent_asks() -> None:
    asked = [{"role": "system", "content": f"Submit with echo {SUBMIT}."}, *DONE]
    (call,) = _calls(_play([BASH], asked))
    assert json.loads(call["arguments"])["command"] == f"echo {SUBMIT}"
    assert _calls(_play([BASH], [*asked, ENDED])) == []


def test_it_is_deterministic() -> None:
    assert _play([BASH], DONE) == _play([BASH], DONE)
    assert _play([BASH], [])["content"] != _play([BASH], DONE)["content"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("name: x\ntask: {}\n", "task: Extra inputs"),
        ("name: x\ndefault: [{rnu: ls}]\n", r"default\.0\.rnu"),
        ("name: x\ntasks: {a: [{run: ls}, {}]}\n", r"tasks\.a\.1.*a turn has"),
        ("name: x\ndefault: [{run: ls, tools: [ls]}]\n", "a turn has"),
        ("name: x\ndefault: [{say: done}, {run: ls}]\n", "only the last turn"),
        ("default: []\n", "name: Field required"),
        ("name: [\n", "is not YAML"),
        ("", "is wrong at file"),
    ],
)
def test_a_wrong_policy_is_refused_with_its_key(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=complaint) as refused:
        load(path)
    assert re.search(re.escape(str(path)), str(refused.value))


def test_a_policy_that_is_absent_is_refused(session: Open, model: Json, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Cannot read the scripted policy"):
        session(**model | {"policy": tmp_path / "none.yaml"})
    with pytest.raises(ConfigError, match=r"has no model\.policy"):
        session(**model | {"policy": None})
    with pytest.raises(ConfigError, match="agents that use no model"):
        session(backend="none")
