"""What a call without litellm sends and answers is what litellm would have sent and answered."""

from __future__ import annotations

import json
import re
from typing import Any

import litellm
import pytest

from runner.gateway import shortcuts
from runner.gateway.fake_upstream import Behaviour, FakeUpstream
from runner.records import Budget, Usage
from tests.gateway.answering import answering
from tests.gateway.conftest import CANARY, HELLO, Http, Json, Open

CHAT = "/v1/chat/completions"
TOOLS = [{"type": "function", "function": {"name": "shell", "parameters": {"type": "object"}}}]
CALL = {"id": "c1", "type": "function", "function": {"name": "shell", "arguments": '{"command": "ls"}'}}
TURNS: list[Json] = [
    {"role": "system", "content": "Be good."},
    {"role": "user", "content": "Gó."},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "No such file."},
]
LONGER: list[Json] = [
    *TURNS,
    {"role": "assistant", "content": None, "tool_calls": [CALL | {"id": "c2"}]},
    {"role": "tool", "tool_call_id": "c2", "content": "Ünknown."},
]
CACHED = Usage(input_tokens=1000, cache_creation_tokens=0, cache_hit_tokens=400, output_tokens=50)
OWN: Json = {"id": "custom_openai/x", "apis": ("chat",)}


@pytest.fixture
def through_litellm(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The messages of each call that litellm was asked to make."""
    asked: list[object] = []

    def note(owner: Any, name: str) -> None:
        make = getattr(owner, name)

        async def noted(**arguments: object) -> object:
            if 16 not in (arguments.get("max_tokens"), arguments.get("max_output_tokens")):
                asked.append(arguments.get("messages", arguments.get("input")))
            return await make(**arguments)

        monkeypatch.setattr(owner, name, noted)

    # Calls with a bound of 16 are the gateway's own, which prepare litellm.
    for owner, name in (
        (litellm, "acompletion"),
        (litellm, "aresponses"),
        (litellm.anthropic.messages, "acreate"),
    ):
        note(owner, name)
    return asked


@pytest.mark.parametrize("stream", ["collect", "through"])
@pytest.mark.parametrize(
    "model",
    [{"id": "openai/x"}, {"id": "openai/gpt-5", "params": {"reasoning_effort": "low"}}, OWN],
    ids=["openai", "renamed bound", "own server"],
)
def test_a_second_request_reaches_the_provider_as_litellm_would_have_sent_it(
    session: Open, http: Http, through_litellm: list[object], model: Json, stream: str
) -> None:
    first: Json = {"messages": TURNS, "tools": TOOLS, "max_completion_tokens": 500, "stream": True}
    second = first | {"messages": LONGER, "max_completion_tokens": 400}
    with FakeUpstream(Behaviour(text="ok", calls=(("shell", "{}"),))) as upstream:
        trial = session(upstream.url, stream=stream, **model)
        for body in (first, second):
            assert http(trial).post(CHAT, json=body).status_code == 200
        assert len(through_litellm) == 1, "the second call needed no translation"
        other = session(upstream.url, name="other", stream=stream, **model)
        assert http(other).post(CHAT, json=second).status_code == 200
    assert upstream.requests[1] == upstream.requests[2]
    assert [call.attempts for call in trial.calls] == [1, 1]
    for call in trial.calls:
        (expected,) = other.calls
        assert (call.usage, call.cost_usd) == (expected.usage, expected.cost_usd)
        assert (_told(call.response), call.dropped) == (_told(expected.response), expected.dropped)
    assert CANARY not in trial.spec.ledger.read_text()


def _told(response: Json | None) -> Json:
    """Return an answer without the numbers that the fake provider gives it and its calls."""
    told: Json = json.loads(re.sub(r'"(chat|call)_\d+', r'"\1', json.dumps(response)))
    return told


def test_other_settings_are_translated_anew(session: Open, http: Http, through_litellm: list[object]) -> None:
    with FakeUpstream(Behaviour(text="ok")) as upstream:
        trial = session(upstream.url)
        for body in (HELLO, HELLO | {"temperature": 0.5}, HELLO | {"tools": TOOLS}, HELLO):
            assert http(trial).post(CHAT, json=body).status_code == 200
    assert len(through_litellm) == 3
    assert [set(body) - {"messages", "model"} for body in upstream.requests] == [
        set(),
        {"temperature"},
        {"tools"},
        set(),
    ]


def test_what_litellm_takes_out_of_a_message_is_taken_out_later_too(
    session: Open, http: Http, through_litellm: list[object]
) -> None:
    """OpenAI refuses the marks of Anthropic's cache."""
    plain, part = {"type": "text", "text": "a"}, {"type": "text", "text": "b"}
    marked = part | {"cache_control": {"type": "ephemeral"}}
    with FakeUpstream(Behaviour(text="ok")) as upstream:
        trial = session(upstream.url, **OWN)
        for parts in ([plain], [part], [plain, marked], [marked], [plain]):
            body = {"messages": [{"role": "user", "content": parts}]}
            assert http(trial).post(CHAT, json=body).status_code == 200
    assert len(through_litellm) == 3, "a mark is never known to pass"
    assert all("cache_control" not in str(body) for body in upstream.requests)


def test_a_failure_is_read_by_litellm(session: Open, http: Http, through_litellm: list[object]) -> None:
    """It knows in which words each provider says that a context is too long; agents know one."""
    long = Behaviour(
        status_code=400, message="This model's maximum context length is 9 tokens.", code="context_length"
    )
    with FakeUpstream(
        Behaviour(text="ok"), long, Behaviour(status_code=503), Behaviour(text="ok")
    ) as upstream:
        trial = session(upstream.url)
        answers = [http(trial).post(CHAT, json=HELLO) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 400, 200]
    assert answers[1].json()["error"]["code"] == "context_length_exceeded"
    assert [call.attempts for call in trial.calls] == [1, 1, 2]
    assert len(upstream.requests) == 4, "nothing is sent again for litellm to read"
    assert len(through_litellm) == 3


def _whole(message: Json, **more: object) -> Json:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant"} | message}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    whole = {"id": "1", "object": "chat.completion", "created": 1, "model": "x", "choices": [choice]}
    return whole | {"usage": usage} | more


def test_thoughts_within_a_text_are_set_apart(session: Open, http: Http) -> None:
    said = [_whole({"content": "ok"}), _whole({"content": "<think>Hm.</think>Yes."})]
    said.append(_whole({"content": "Yes.", "reasoning": "Hm."}))
    with answering(lambda _: said.pop(0)) as url:
        trial = session(url)
        answers = [http(trial).post(CHAT, json=HELLO).json() for _ in range(3)]
    messages = [answer["choices"][0]["message"] for answer in answers]
    assert [message.get("reasoning_content") for message in messages] == [None, "Hm.", "Hm."]
    assert [message["content"] for message in messages] == ["ok", "Yes.", "Yes."]


def test_counts_of_caches_in_other_words_are_counted(session: Open, http: Http) -> None:
    counts = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "prompt_cache_hit_tokens": 8}
    said = [_whole({"content": "ok"}), _whole({"content": "ok"}, usage=counts)]
    with answering(lambda _: said.pop(0)) as url:
        trial = session(url)
        for _ in range(2):
            assert http(trial).post(CHAT, json=HELLO).status_code == 200
    assert trial.calls[1].usage == Usage(input_tokens=10, cache_hit_tokens=8, output_tokens=5)


def test_a_call_without_litellm_is_capped(session: Open, http: Http, through_litellm: list[object]) -> None:
    with FakeUpstream(Behaviour(text="ok", usage=Usage(input_tokens=1000, output_tokens=50))) as upstream:
        trial = session(upstream.url, budget=Budget(turns=2))
        codes = [http(trial).post(CHAT, json=HELLO).status_code for _ in range(3)]
    assert codes == [200, 200, 403]
    assert (len(upstream.requests), len(through_litellm)) == (2, 1)
    assert trial.meter.charged["turns"] == 2


def test_a_key_in_an_answer_is_taken_out(session: Open, http: Http, through_litellm: list[object]) -> None:
    with answering(lambda _: _whole({"content": f"It is {CANARY}."})) as url:
        trial = session(url)
        answers = [http(trial).post(CHAT, json=HELLO) for _ in range(2)]
    assert len(through_litellm) == 1
    assert all("[key]" in answer.text and CANARY not in answer.text for answer in answers)
    assert CANARY not in trial.spec.ledger.read_text()


def test_only_a_few_settings_are_kept(session: Open, http: Http, through_litellm: list[object]) -> None:
    """An agent may vary them forever."""
    with FakeUpstream(Behaviour(text="ok")) as upstream:
        trial = session(upstream.url)
        seeds = [*range(12), 11, 0]
        for seed in seeds:
            assert http(trial).post(CHAT, json=HELLO | {"seed": seed}).status_code == 200
    assert [body["seed"] for body in upstream.requests] == seeds
    assert len(through_litellm) == 13, "the last settings are known, and the first ones no longer"


THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "EqQBCg+/="}
USED = {"type": "tool_use", "id": "toolu_01", "name": "Bash", "input": {"command": "ls", "type": ["a"]}}
MARK = {"cache_control": {"type": "ephemeral"}}
MESSAGES_TURNS: list[Json] = [
    {"role": "user", "content": [{"type": "text", "text": "Gó."} | MARK]},
    {"role": "assistant", "content": [THOUGHT, USED]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_01", "content": "Ünknown."}]},
]
RESPONSES_TURNS: list[Json] = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Gó."}]},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA+/="},
    {"type": "function_call", "call_id": "call_1", "name": "shell", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "call_1", "output": "Ünknown."},
]
AGAIN: dict[str, tuple[str, Json, Json]] = {
    "messages": (
        "/v1/messages",
        {"system": [{"type": "text", "text": "Be good."} | MARK], "max_tokens": 900, "stream": True}
        | {"tools": [{"name": "Bash", "input_schema": {"type": "object"}} | MARK]}
        | {"messages": MESSAGES_TURNS},
        {"messages": [*MESSAGES_TURNS, *MESSAGES_TURNS[1:]]},
    ),
    "responses": (
        "/v1/responses",
        {"instructions": "Be good.", "max_output_tokens": 900, "stream": True, "store": True}
        | {"tools": [{"type": "function", "name": "shell", "parameters": {"type": "object"}}]}
        | {"input": RESPONSES_TURNS, "include": ["reasoning.encrypted_content"]},
        {"input": [*RESPONSES_TURNS, *RESPONSES_TURNS[1:]], "max_output_tokens": 800},
    ),
}
"""API -> path, first request, and what is other in the second."""
OF_API: dict[str, Json] = {
    "anthropic": {"id": "anthropic/x"},
    "openai": {"id": "openai/x"},
    "own messages": {"id": "custom_openai/x", "apis": ("chat", "messages")},
    "own responses": {"id": "custom_openai/x", "apis": ("chat", "responses")},
    "anthropic, through": {"id": "anthropic/x", "stream": "through"},
    "openai, through": {"id": "openai/x", "stream": "through"},
}


@pytest.mark.parametrize(
    ("api", "model"),
    [
        ("messages", "anthropic"),
        ("messages", "own messages"),
        ("responses", "openai"),
        ("responses", "own responses"),
        ("messages", "anthropic, through"),
        ("responses", "openai, through"),
    ],
)
def test_another_apis_second_request_is_what_litellm_would_have_sent_and_answered(
    session: Open,
    http: Http,
    through_litellm: list[object],
    monkeypatch: pytest.MonkeyPatch,
    api: str,
    model: str,
) -> None:
    path, first, changes = AGAIN[api]
    said = Behaviour(text="ok", reasoning="why", calls=(("shell", "{}"),), usage=CACHED)
    with FakeUpstream(said) as upstream:
        trial = session(upstream.url, **OF_API[model])
        for body in (first, first | changes):
            assert http(trial).post(path, json=body).status_code == 200
        assert len(through_litellm) == 1, "the second call needed no translation"
        monkeypatch.setattr(shortcuts, "MOST_LEARNED", 0)
        other = session(upstream.url, name="other", **OF_API[model])
        assert http(other).post(path, json=first | changes).status_code == 200
    assert len(through_litellm) == 2
    assert upstream.requests[1] == upstream.requests[2]
    (expected,), call = other.calls, trial.calls[1]
    assert (call.usage, call.cost_usd) == (expected.usage, expected.cost_usd)
    assert call.usage == CACHED
    assert call.dropped == expected.dropped == (("store",) if api == "responses" else ())
    assert _said(call.response) == _said(expected.response)
    assert CANARY not in trial.spec.ledger.read_text()


def _said(answer: Json | None) -> Json:
    """Return an answer without its numbers, and without the empty fields that litellm adds to Responses' answers."""
    assert answer
    text = re.sub(r'"((msg|call|rs|fc|signed|resp)_)[^"]*"', r'"\1"', json.dumps(answer))
    pairs = json.loads(
        text, object_hook=lambda one: {key: value for key, value in one.items() if value is not None}
    )
    said: Json = pairs
    return said


VENDORS = {"messages": "anthropic/x"}
PATHS = {"messages": "/v1/messages", "responses": "/v1/responses"}


@pytest.mark.parametrize(
    ("api", "plain", "changed"),
    [
        (
            "messages",
            {"content": [{"type": "text", "text": "a"}]},
            {"content": [{"type": "text", "text": " \n"}]},
        ),
        ("messages", {"content": [USED]}, {"content": [USED | {"id": "functions.Bash:0"}]}),
        ("messages", {"content": [USED]}, {"content": [USED | {"id": "a__thought__b"}]}),
        (
            "messages",
            {"content": [THOUGHT, USED]},
            {"content": [THOUGHT | {"signature": "litellm_encrypted_reasoning:a"}, USED]},
        ),
        ("responses", RESPONSES_TURNS[2] | {"id": "fc_1"}, RESPONSES_TURNS[2] | {"id": "a_1"}),
        ("responses", RESPONSES_TURNS[1], RESPONSES_TURNS[1] | {"encrypted_content": "litellm_enc:YQ==;b"}),
        (
            "responses",
            RESPONSES_TURNS[1],
            RESPONSES_TURNS[1] | {"id": "rs_123e4567-e89b-42d3-a456-426614174000"},
        ),
    ],
)
def test_what_litellm_rewrites_by_its_text_is_rewritten_later_too(
    session: Open, http: Http, monkeypatch: pytest.MonkeyPatch, api: str, plain: Json, changed: Json
) -> None:
    first, role = {"role": "user", "content": "Go."}, {"role": "assistant"} if api == "messages" else {}
    sent: list[list[Json]] = []
    for most in (64, 0):
        monkeypatch.setattr(shortcuts, "MOST_LEARNED", most)
        with FakeUpstream(Behaviour(text="ok")) as upstream:
            trial = session(upstream.url, id=VENDORS.get(api, "openai/x"), name=f"most{most}")
            for item in (plain, changed, plain):
                conversation = {"input" if api == "responses" else "messages": [first, role | item]}
                bound = {"max_tokens": 900} if api == "messages" else {}
                assert http(trial).post(PATHS[api], json=conversation | bound).status_code == 200
        sent.append(upstream.requests)
    assert sent[0] == sent[1]
    (conversations,) = ([one.get("input", one.get("messages")) for one in sent[1]],)
    assert conversations[1] != [first, role | changed], "litellm changes it"


def test_thoughts_that_litellm_fits_to_the_bound_are_fitted_anew(session: Open, http: Http) -> None:
    body = {
        "messages": HELLO["messages"],
        "output_config": {"effort": "high"},
        "thinking": {"type": "adaptive"},
    }
    with FakeUpstream(Behaviour(text="ok")) as upstream:
        trial = session(upstream.url, id="anthropic/claude-haiku-4-5")
        for bound in (32_000, 2_000, 32_000):
            assert http(trial).post("/v1/messages", json=body | {"max_tokens": bound}).status_code == 200
    for one in upstream.requests:
        assert one["thinking"]["budget_tokens"] < one["max_tokens"]


def test_a_mark_that_litellm_takes_out_of_a_message_is_named(session: Open, http: Http) -> None:
    """It takes it out of the very objects that it is given; the second try of a call is given the same."""
    marked = {"role": "user", "content": [{"type": "text", "text": "a"} | MARK]}
    with FakeUpstream(Behaviour(text="ok"), Behaviour(status_code=503), Behaviour(text="ok")) as upstream:
        trial = session(upstream.url, **OWN)
        for _ in range(2):
            assert http(trial).post(CHAT, json={"messages": [marked]}).status_code == 200
    assert [call.attempts for call in trial.calls] == [1, 2]
    assert [call.dropped for call in trial.calls] == [("cache_control",)] * 2
    assert "cache_control" not in str(upstream.requests)
