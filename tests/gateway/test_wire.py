"""The official client sees each API in its own form, whatever API the provider speaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from runner.gateway import Session
from runner.gateway.fake_upstream import Behaviour, FakeUpstream
from runner.gateway.trajectory import tool_calls
from runner.records import ToolCall, Usage
from tests.gateway.conftest import Http, Open

Client = Callable[[Session], Any]  # openai.OpenAI, whose unions of dozens of types fit no test

USAGE = Usage(input_tokens=1000, cache_hit_tokens=400, output_tokens=50)
COST = (600 * 2.0 + 400 * 0.5 + 50 * 10.0) / 1e6
PARALLEL = Behaviour(text="Both.", calls=(("shell", '{"command": "ls"}'), ("shell", '{"command": "pwd"}')))
SHELL = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
CHAT_TOOLS = [{"type": "function", "function": {"name": "shell", "parameters": SHELL}}]
RESPONSES_TOOLS = [{"type": "function", "name": "shell", "parameters": SHELL, "strict": False}]
PROVIDERS = ["openai/x", "zai/x", "deepseek/x"]
"""A provider of both APIs; one of chat through OpenAI's client; one of chat through litellm's own."""
HELLO = [{"role": "user", "content": "hello"}]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("streamed", [False, True])
def test_chat(session: Open, client: Client, provider: str, *, streamed: bool) -> None:
    with FakeUpstream(PARALLEL) as upstream:
        trial = session(upstream.url, id=provider)
        chat = client(trial).chat.completions
        if streamed:
            with chat.stream(
                model="any", messages=HELLO, tools=CHAT_TOOLS, stream_options={"include_usage": True}
            ) as s:
                answer = s.get_final_completion()
        else:
            answer = chat.create(model="any", messages=HELLO, tools=CHAT_TOOLS)
    message = answer.choices[0].message
    assert message.content == "Both."
    assert [(call.id, call.function.name, call.function.arguments) for call in message.tool_calls] == [
        ("call_0_0", "shell", '{"command": "ls"}'),
        ("call_0_1", "shell", '{"command": "pwd"}'),
    ]
    assert answer.choices[0].finish_reason == "tool_calls"
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (1000, 50)
    assert answer.usage.prompt_tokens_details.cached_tokens == 400
    _ledger_agrees(trial, "chat", provider, streamed=streamed)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("streamed", [False, True])
def test_responses(session: Open, client: Client, provider: str, *, streamed: bool) -> None:
    with FakeUpstream(PARALLEL) as upstream:
        trial = session(upstream.url, id=provider)
        responses = client(trial).responses
        if streamed:
            with responses.stream(model="any", input="hello", tools=RESPONSES_TOOLS) as s:
                answer = s.get_final_response()
        else:
            answer = responses.create(model="any", input="hello", tools=RESPONSES_TOOLS)
    assert answer.output_text == "Both."
    calls = [item for item in answer.output if item.type == "function_call"]
    assert [(call.call_id, call.name, call.arguments) for call in calls] == [
        ("call_0_0", "shell", '{"command": "ls"}'),
        ("call_0_1", "shell", '{"command": "pwd"}'),
    ]
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (1000, 50)
    assert answer.usage.input_tokens_details.cached_tokens == 400
    _ledger_agrees(trial, "responses", provider, streamed=streamed)


def _ledger_agrees(trial: Session, api: str, provider: str, *, streamed: bool) -> None:
    (call,) = trial.calls
    assert (call.api, call.model, call.streamed, call.status_code, call.attempts) == (
        api,
        provider,
        streamed,
        200,
        1,
    )
    assert call.usage == trial.meter.usage == USAGE
    assert call.cost_usd == trial.meter.cost_usd == pytest.approx(COST)
    assert call.request["model"] == "any"
    assert trial.meter.turns == 1
    assert [tool.arguments for tool in tool_calls(call)] == ['{"command": "ls"}', '{"command": "pwd"}']


@pytest.mark.parametrize("provider", ["openai/x", "zai/x"])
def test_responses_events_come_in_order(session: Open, client: Client, provider: str) -> None:
    with FakeUpstream(Behaviour(text="hi", reasoning="why", calls=(("shell", "{}"),))) as upstream:
        stream = client(session(upstream.url, id=provider)).responses.create(
            model="any", input="x", tools=RESPONSES_TOOLS, stream=True
        )
        events = list(stream)
    types = [event.type for event in events]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert types[:2] == ["response.created", "response.in_progress"]
    assert types[-1] == "response.completed"
    assert types.index("response.reasoning_summary_text.delta") < types.index("response.output_text.delta")
    for kind in ("output_text", "function_call_arguments"):
        assert types.index(f"response.{kind}.delta") < types.index(f"response.{kind}.done")
    added = [event.item.type for event in events if event.type == "response.output_item.added"]
    done = [event.item.type for event in events if event.type == "response.output_item.done"]
    assert added == done == ["reasoning", "message", "function_call"]


def test_a_codex_conversation_reaches_a_chat_only_provider_whole(session: Open, client: Client) -> None:
    items = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": None},
        {"type": "function_call", "call_id": "c1", "name": "exec_command", "arguments": '{"cmd": "ls"}'},
        {"type": "function_call", "call_id": "c2", "name": "exec_command", "arguments": '{"cmd": "pwd"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "a b"},
        {"type": "function_call_output", "call_id": "c2", "output": "/work"},
    ]
    tools = [
        {"type": "function", "name": "exec_command", "parameters": {"type": "object", "properties": {}}},
        {"type": "custom", "name": "apply_patch", "description": "patch"},
        {"type": "web_search"},
        {"type": "namespace", "name": "multi_agent_v1", "tools": []},
    ]
    extra = {"client_metadata": {"x": "1"}, "store": False, "include": ["reasoning.encrypted_content"]}
    patch = Behaviour(calls=(("apply_patch", '{"content": "*** Begin Patch"}'),))
    with FakeUpstream(patch) as upstream:
        trial = session(upstream.url, id="zai/x")
        answer = client(trial).responses.create(
            model="m", input=items, tools=tools, instructions="be good", extra_body=extra
        )
        (sent,) = upstream.requests
    assert [message["role"] for message in sent["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
    ]
    assert [call["id"] for call in sent["messages"][2]["tool_calls"]] == ["c1", "c2"]
    assert [tool["function"]["name"] for tool in sent["tools"]] == ["exec_command", "apply_patch"]
    ours, bridges = {"client_metadata", "tools:namespace", "tools:web_search"}, {"include"}
    assert set(trial.calls[0].dropped) == ours | bridges
    assert (answer.output[-1].type, answer.output[-1].input) == ("custom_tool_call", "*** Begin Patch")
    assert tool_calls(trial.calls[0]) == (
        ToolCall(id="call_0_0", name="apply_patch", arguments="*** Begin Patch"),
    )


def test_an_agent_cannot_steer_the_provider_call(session: Open, http: Http) -> None:
    """No argument of litellm's can be smuggled in through a request, above all not the address for the key."""
    with FakeUpstream(Behaviour(text="ok")) as upstream, FakeUpstream(Behaviour(text="stolen")) as thief:
        trial = session(upstream.url, params={"temperature": 0.25})
        smuggled = {
            "api_base": thief.url,
            "base_url": thief.url,
            "api_key": "mine",
            "custom_llm_provider": "anthropic",
            "mock_response": "free",
            "fallbacks": ["openai/y"],
            "service_tier": "priority",
            "temperature": 2,
        }
        answer = http(trial).post("/v1/chat/completions", json={"model": "m", "messages": HELLO} | smuggled)
        assert answer.json()["choices"][0]["message"]["content"] == "ok"
        assert thief.requests == []
        assert upstream.requests[0]["temperature"] == 0.25
        assert set(upstream.requests[0]) == {"model", "messages", "temperature"}
    assert set(trial.calls[0].dropped) == smuggled.keys() - {"temperature"}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (
            "chat/completions",
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "URL"}}]}]},
        ),
        (
            "responses",
            {"input": [{"type": "message", "content": [{"type": "input_image", "image_url": "URL"}]}]},
        ),
        ("responses", {"input": "x", "previous_response_id": "resp_1"}),
        ("responses", {"input": [1]}),
        ("chat/completions", {"messages": []}),
        ("chat/completions", {}),
    ],
)
def test_what_cannot_be_served_is_said(session: Open, http: Http, path: str, body: dict[str, Any]) -> None:
    with FakeUpstream(Behaviour(text="ok")) as upstream:
        trial = session(upstream.url)
        text = httpx.Request("POST", "http://x", json=body).content.replace(
            b"URL", b"https://example.org/?leak"
        )
        answer = http(trial).post(f"/v1/{path}", content=text)
        assert upstream.requests == []
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert trial.calls[0].status_code == 400
    assert trial.meter.turns == 0


def test_models_lists_the_one(session: Open, client: Client) -> None:
    assert [model.id for model in client(session("http://127.0.0.1:1")).models.list()] == ["x"]
