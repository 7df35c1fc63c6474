"""Anthropic's Messages API through its official client, whatever API the provider speaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runner.gateway import Session
from runner.gateway.fake_upstream import Behaviour, FakeUpstream
from runner.gateway.trajectory import tool_calls
from runner.records import Budget, Usage
from tests.gateway.conftest import Http, Open

PROVIDERS = ["anthropic/x", "openai/x", "zai/x", "deepseek/x"]
"""A provider of this API; one of Responses; one of chat; one of this API at its own address."""
USAGE = Usage(input_tokens=1000, cache_hit_tokens=400, output_tokens=50)
COST = (600 * 2.0 + 400 * 0.5 + 50 * 10.0) / 1e6
PARALLEL = Behaviour(
    text="Both.", reasoning="why", calls=(("Bash", '{"command": "ls"}'), ("Bash", '{"command": "pwd"}'))
)
TOOLS = [
    {
        "name": "Bash",
        "input_schema": {
            "type": "object",
            "properties": {"command": {"type": "string"}},
            "required": ["command"],
        },
    }
]
HELLO = [{"role": "user", "content": "hello"}]
ASK = {"model": "any", "max_tokens": 100, "messages": HELLO}


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_arrives_whole(
    session: Open, messages: Callable[[Session], Any], provider: str, *, streamed: bool
) -> None:
    with FakeUpstream(PARALLEL) as upstream:
        trial = session(upstream.url, id=provider)
        if streamed:
            with messages(trial).stream(**ASK, tools=TOOLS) as stream:
                answer = stream.get_final_message()
        else:
            answer = messages(trial).create(**ASK, tools=TOOLS)
    assert [block.type for block in answer.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert (answer.content[0].thinking, answer.content[1].text) == ("why", "Both.")
    assert isinstance(answer.content[0].signature, str)
    assert [(call.id, call.name, call.input) for call in answer.content[2:]] == [
        ("call_0_0", "Bash", {"command": "ls"}),
        ("call_0_1", "Bash", {"command": "pwd"}),
    ]
    assert answer.stop_reason == "tool_use"
    assert (answer.usage.input_tokens, answer.usage.cache_read_input_tokens) == (600, 400)
    assert answer.usage.output_tokens == 50
    (call,) = trial.calls
    assert (call.api, call.model, call.streamed, call.attempts) == ("messages", provider, streamed, 1)
    assert call.usage == trial.meter.usage == USAGE
    assert call.cost_usd == pytest.approx(COST)
    assert [tool.arguments for tool in tool_calls(call)] == ['{"command": "ls"}', '{"command": "pwd"}']


def test_cache_creation_is_part_of_the_input(session: Open, messages: Callable[[Session], Any]) -> None:
    served = Usage(input_tokens=1000, cache_creation_tokens=300, cache_hit_tokens=200, output_tokens=5)
    with FakeUpstream(Behaviour(text="ok", usage=served)) as upstream:
        trial = session(upstream.url, id="anthropic/x")
        messages(trial).create(**ASK)
    assert trial.meter.usage == served
    assert trial.meter.cost_usd == pytest.approx((500 * 2.0 + 300 * 2.5 + 200 * 0.5 + 5 * 10.0) / 1e6)


def test_events_come_in_order(session: Open, http: Http) -> None:
    with FakeUpstream(PARALLEL) as upstream:
        trial = session(upstream.url, id="anthropic/x")
        with http(trial).stream("POST", "/v1/messages", json=ASK | {"stream": True}) as answer:
            names = [line.split()[1] for line in answer.iter_lines() if line.startswith("event:")]
    start, delta, stop = (f"content_block_{part}" for part in ("start", "delta", "stop"))
    thinking, other = [start, delta, delta, stop], [start, delta, stop]
    assert names == ["message_start", *thinking, *other * 3, "message_delta", "message_stop"]


def test_a_refusal_and_a_wrong_key_have_anthropics_shape(
    session: Open, messages: Callable[[Session], Any], http: Http
) -> None:
    from anthropic import PermissionDeniedError  # noqa: PLC0415 - see the fixture

    trial = session("http://127.0.0.1:1", id="anthropic/x", budget=Budget(turns=0))
    for ask in (messages(trial).create, messages(trial).stream):
        with pytest.raises(PermissionDeniedError, match="budget of model calls") as refused:
            ask(**ASK).__enter__()
        error: Any = refused.value.body
        assert (error["type"], error["error"]["type"]) == ("error", "permission_error")
    assert [call.refused for call in trial.calls] == ["turns", "turns"]
    wrong = http(trial, key="wrong").post("/v1/messages", json=ASK)
    assert (wrong.status_code, wrong.json()["error"]["type"]) == (401, "authentication_error")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_overfull_context_is_said_in_the_words_that_clients_compact_upon(
    session: Open, http: Http, provider: str
) -> None:
    full = Behaviour(status_code=400, message="This model's maximum context length is 8192 tokens.")
    with FakeUpstream(full) as upstream:
        answer = http(session(upstream.url, id=provider)).post("/v1/messages", json=ASK)
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert answer.json()["error"]["message"].startswith("prompt is too long")


def test_counting_tokens_is_no_call(session: Open, messages: Callable[[Session], Any], http: Http) -> None:
    trial = session("http://127.0.0.1:1", budget=Budget(turns=0))
    ask = {"model": "any", "messages": [{"role": "user", "content": "x" * 4000}]}
    assert 1000 <= messages(trial).count_tokens(**ask).input_tokens < 1050
    assert trial.calls == ()
    assert http(trial, key="wrong").post("/v1/messages/count_tokens", json=ask).status_code == 401
    assert http(trial).post("/v1/messages/count_tokens", content=b"[]").status_code == 400


def test_a_probe_without_a_key_is_answered(session: Open, http: Http) -> None:
    trial = session("http://127.0.0.1:1")
    probe = http(trial, key="none")
    assert {probe.head("/api/hello").status_code, probe.get("/").status_code} == {404}
    assert trial.calls == ()


def _part(kind: str, source: dict[str, str]) -> dict[str, Any]:
    return {"type": kind, "source": source}


@pytest.mark.parametrize(
    "content",
    [
        [_part("image", {"type": "url", "url": "https://example.org/?leak"})],
        [_part("document", {"type": "file", "file_id": "file_1"})],
        [{"type": "image_url", "image_url": {"url": "http://example.org"}}],
        [
            {
                "type": "tool_result",
                "tool_use_id": "t",
                "content": [_part("image", {"type": "url", "url": "http://example.org"})],
            }
        ],
    ],
)
def test_nothing_is_fetched_for_an_agent(session: Open, http: Http, content: list[dict[str, Any]]) -> None:
    with FakeUpstream(Behaviour(text="ok")) as upstream:
        trial = session(upstream.url, id="anthropic/x")
        body = ASK | {"messages": [{"role": "user", "content": content}]}
        answer = http(trial).post("/v1/messages", json=body)
        assert upstream.requests == []
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")


@pytest.mark.parametrize(
    "body", [{}, {"messages": []}, {"messages": HELLO}, {"messages": [1], "max_tokens": 1}]
)
def test_what_cannot_be_served_is_said(session: Open, http: Http, body: dict[str, Any]) -> None:
    trial = session("http://127.0.0.1:1")
    assert http(trial).post("/v1/messages", json=body).status_code == 400
    assert trial.calls[0].status_code == 400


def test_an_address_in_what_a_tool_printed_is_no_address(session: Open, http: Http) -> None:
    used = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"source": "https://example.org"}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "https://example.org is up"}
    talk = [*HELLO, {"role": "assistant", "content": [used]}, {"role": "user", "content": [result]}]
    with FakeUpstream(Behaviour(text="ok")) as upstream:
        trial = session(upstream.url, id="anthropic/x")
        assert http(trial).post("/v1/messages", json=ASK | {"messages": talk}).status_code == 200


def test_thinking_that_does_not_fit_the_budget_is_left_out(session: Open, http: Http) -> None:
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 2000}, "max_tokens": 4000}
    with FakeUpstream(Behaviour(text="ok")) as upstream:
        trial = session(upstream.url, id="anthropic/x", budget=Budget(output_tokens=1500))
        http(trial).post("/v1/messages", json=ASK | thinking)
        assert (upstream.requests[0]["max_tokens"], upstream.requests[0].get("thinking")) == (1500, None)
    assert trial.calls[0].dropped == ("thinking",)
