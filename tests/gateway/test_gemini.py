"""Gemini's API at the gateway, whatever API the provider speaks; tests/security attacks it like the others."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from runner.gateway import provider
from runner.gateway.api import encode_event
from runner.gateway.fake_upstream import Behaviour, FakeUpstream
from runner.gateway.gemini_api import Gemini
from runner.gateway.request_shapes import RequestError
from runner.gateway.trajectory import atif
from runner.records import Budget, Usage
from tests.gateway.answering import answering
from tests.gateway.conftest import Http, Json, Open
from tests.security.lying import lying, stream

MODEL = "/v1beta/models/any"
PROVIDERS = ["openai/x", "zai/glm-5", "anthropic/claude-sonnet-4-6", "gemini/gemini-2.5-pro"]
LS, PWD = '{"command": "ls"}', '{"command": "pwd"}'
PARALLEL = Behaviour(text="Said.", reasoning="Thought.", calls=(("shell", LS), ("shell", PWD)))
ASK: Json = {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}
SHELL = {"type": "OBJECT", "properties": {"command": {"type": "STRING"}, "type": {"type": "ARRAY"}}}
API = Gemini()


def conversation(*ids: str) -> Json:
    """Return a request like Gemini CLI's, with parallel calls that have these ids, or none."""
    named: list[Json] = [{"id": one} for one in ids] or [{}, {}]
    calls = [
        {"functionCall": {"name": "shell", "args": json.loads(text)} | id_}
        for id_, text in zip(named, (LS, PWD), strict=True)
    ]
    results = [
        {"functionResponse": {"name": "shell", "response": {"output": text}} | id_}
        for id_, text in zip(named, ("No such file.", "/work"), strict=True)
    ]
    return {
        "systemInstruction": {"parts": [{"text": "Be good."}, {"text": "Be quick."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Go."}]},
            {"role": "model", "parts": [{"text": "Hm.", "thought": True}, {"text": "Two."}, *calls]},
            {"role": "user", "parts": results},
            {"role": "user", "parts": [{"text": "More."}]},
        ],
        "tools": [
            {"functionDeclarations": [{"name": "shell", "description": "Runs.", "parameters": SHELL}]},
            {"googleSearch": {}},
        ],
        "generationConfig": {"temperature": 0.5, "topK": 64, "maxOutputTokens": 100, "stopSequences": ["X"]},
    }


@pytest.mark.parametrize("model", PROVIDERS)
@pytest.mark.parametrize("streamed", [False, True])
def test_a_conversation_is_carried(session: Open, http: Http, model: str, *, streamed: bool) -> None:
    with FakeUpstream(PARALLEL) as upstream:
        trial = session(upstream.url, id=model)
        path = f"{MODEL}:streamGenerateContent?alt=sse" if streamed else f"{MODEL}:generateContent"
        answer = http(trial).post(path, json=conversation())
        assert answer.status_code == 200, answer.text
        sent = upstream.requests[0]
    text = json.dumps(sent.get("messages") or sent.get("contents"))
    order = [text.index(part) for part in ("Go.", "No such file.", "/work", "More.")]
    assert order == sorted(order)
    assert all(part in json.dumps(sent) for part in ("Be good.", "Be quick.", "Two.", "shell", "Runs."))
    assert sent.get("max_tokens", sent.get("generationConfig", {}).get("max_output_tokens")) == 100

    whole = json.loads(answer.text.removeprefix("data: ")) if streamed else answer.json()
    calls = [(call.name, json.loads(call.arguments)) for call in API.tool_calls(whole)]
    assert calls == [("shell", json.loads(LS)), ("shell", json.loads(PWD))]
    assert len({call.id for call in API.tool_calls(whole)}) == 2, "litellm's own adapter gives both one id"
    assert (API.text(whole), API.reasoning(whole)) == ("Said.", "Thought.")
    (call,) = trial.calls
    assert (call.api, call.status_code, call.streamed) == ("gemini", 200, streamed)
    assert call.usage == upstream.served[0]
    assert {"generationConfig.topK", "tools:googleSearch"} <= set(call.dropped)
    assert not {"messages", "system", "tools", "temperature", "stop", "max_tokens"} & set(call.dropped)


@pytest.mark.parametrize("ids", [(), ("a", "b")])
def test_each_result_follows_its_call(ids: tuple[str, ...]) -> None:
    """Two calls of one function are told apart by their ids, or else by their order."""
    body = conversation(*ids)
    messages = API.accept(body).fields["messages"]
    made = [call["id"] for call in messages[2]["tool_calls"]]
    assert [message["tool_call_id"] for message in messages[3:5]] == made
    assert len(set(made)) == 2
    assert API.tool_results(body) == dict(zip(made, ("No such file.", "/work"), strict=True))


def test_the_trajectory_has_the_results(session: Open, http: Http) -> None:
    with FakeUpstream(PARALLEL, Behaviour(text="Done.")) as upstream:
        trial = session(upstream.url)
        first = http(trial).post(f"{MODEL}:generateContent", json=ASK).json()["candidates"][0]["content"]
        results = [
            {
                "functionResponse": {
                    "id": part["functionCall"]["id"],
                    "name": "shell",
                    "response": {"error": "No."},
                }
            }
            for part in first["parts"]
            if "functionCall" in part
        ]
        contents = [*ASK["contents"], first, {"role": "user", "parts": results}]
        assert http(trial).post(f"{MODEL}:generateContent", json={"contents": contents}).status_code == 200
    document = atif(trial.calls, agent="a", version="1", session_id="s", instruction="i")
    assert [one["content"] for one in document["steps"][1]["observation"]["results"]] == ["No.", "No."]


def test_a_signature_comes_back_to_the_model_that_wrote_it(session: Open, http: Http) -> None:
    """Gemini 3 refuses a conversation whose calls have lost theirs."""
    with FakeUpstream(PARALLEL, Behaviour(text="Done.")) as upstream:
        trial = session(upstream.url, id="gemini/gemini-2.5-pro")
        content = http(trial).post(f"{MODEL}:generateContent", json=ASK).json()["candidates"][0]["content"]
        body = {"contents": [*ASK["contents"], content, *ASK["contents"]]}
        assert http(trial).post(f"{MODEL}:generateContent", json=body).status_code == 200
        sent = upstream.requests[1]["contents"][1]["parts"]
    assert [part["thoughtSignature"] for part in sent if "function_call" in part] == ["signed0", "signed0"]


def test_a_schema_of_geminis_own_kind_becomes_json_schema() -> None:
    (tool,) = API.accept(conversation()).fields["tools"]
    assert tool["function"]["parameters"] == {
        "type": "object",
        "properties": {"command": {"type": "string"}, "type": {"type": "array"}},
    }


@pytest.mark.parametrize(
    ("config", "choice"),
    [
        ({"mode": "AUTO"}, None),
        ({"mode": "ANY"}, "required"),
        (
            {"mode": "ANY", "allowedFunctionNames": ["shell"]},
            {"type": "function", "function": {"name": "shell"}},
        ),
        ({"mode": "NONE"}, "none"),
    ],
)
def test_a_choice_of_tools_is_passed_on(config: Json, choice: object) -> None:
    body = conversation() | {"toolConfig": {"functionCallingConfig": config}}
    assert API.accept(body).fields.get("tool_choice") == choice


def test_thoughts_are_output_and_no_answer() -> None:
    counts = {
        "promptTokenCount": 10,
        "candidatesTokenCount": 2,
        "thoughtsTokenCount": 5,
        "cachedContentTokenCount": 4,
    }
    assert API.usage({"usageMetadata": counts}) == Usage(input_tokens=10, cache_hit_tokens=4, output_tokens=7)
    assert API.usage({"usageMetadata": {"promptTokenCount": 0}}) is None


@pytest.mark.parametrize("header", ["authorization", "x-goog-api-key"])
def test_the_key_is_in_the_header_of_the_official_clients(session: Open, http: Http, header: str) -> None:
    with FakeUpstream(Behaviour(text="ok")) as upstream:
        trial = session(upstream.url)
        client = http(trial, "wrong")
        refused = client.post(f"{MODEL}:generateContent", json=ASK)
        key = f"Bearer {trial.key}" if header == "authorization" else trial.key
        assert client.post(f"{MODEL}:generateContent", json=ASK, headers={header: key}).status_code == 200
    assert (refused.status_code, refused.json()["error"]["status"]) == (401, "UNAUTHENTICATED")


def test_a_spent_budget_is_refused_in_geminis_words(session: Open, http: Http) -> None:
    with FakeUpstream(Behaviour(text="ok")) as upstream:
        trial = session(upstream.url, budget=Budget(turns=1))
        assert http(trial).post(f"{MODEL}:streamGenerateContent", json=ASK).status_code == 200
        answer = http(trial).post(f"{MODEL}:streamGenerateContent", json=ASK)
    assert (answer.status_code, answer.json()["error"]["status"]) == (403, "PERMISSION_DENIED")
    assert len(upstream.requests) == 1


def test_counting_tokens_is_no_call(session: Open, http: Http) -> None:
    with FakeUpstream(Behaviour(text="ok")) as upstream:
        trial = session(upstream.url)
        assert http(trial).post(f"{MODEL}:countTokens", json=ASK).json()["totalTokens"] > 5
    assert not trial.calls


PART = {"text": "x"}
ODD: dict[str, Json] = {
    "a file elsewhere": {"contents": [{"parts": [{"fileData": {"fileUri": "https://example.org/x"}}]}]},
    "code of the provider's": {"contents": [{"parts": [{"executableCode": {"code": "1"}}]}]},
    "a part that is two": {"contents": [{"parts": [PART | {"functionCall": {"name": "x"}}]}]},
    "a part that is nothing": {"contents": [{"parts": [{"x": 1}]}]},
    "bytes of no kind": {"contents": [{"parts": [{"inlineData": {"mimeType": "x/y", "data": "eA=="}}]}]},
    "bytes of an address": {
        "contents": [{"parts": [{"inlineData": {"mimeType": "image/png", "data": "", "uri": "x"}}]}]
    },
    "a result of nothing": {
        "contents": [{"parts": [{"functionResponse": {"name": "x", "response": {"output": "x"}}}]}]
    },
    "a result twice": {
        "contents": [
            {"role": "model", "parts": [{"functionCall": {"id": "a", "name": "x"}}]},
            {"parts": [{"functionResponse": {"id": "a", "name": "x", "response": {}}}] * 2},
        ]
    },
    "two candidates": ASK | {"generationConfig": {"candidateCount": 2}},
    "a cache at the provider": ASK | {"cachedContent": "cachedContents/x"},
    "a role of the system": {"contents": [{"role": "system", "parts": [PART]}]},
    "a schema of elsewhere": ASK
    | {"tools": [{"functionDeclarations": [{"name": "x", "parameters": {"$ref": "https://example.org"}}]}]},
}


@pytest.mark.parametrize("case", ODD)
def test_what_cannot_be_served_is_said(case: str) -> None:
    with pytest.raises(RequestError, match=r"contents|generationConfig|cachedContent|tools"):
        API.accept(ODD[case])


def test_an_error_names_the_field_and_repeats_nothing_of_it(session: Open, http: Http) -> None:
    body = {"contents": [{"role": "user", "parts": [{"what the agent wrote": 1}]}]}
    with FakeUpstream(Behaviour(text="ok")) as upstream:
        answer = http(session(upstream.url)).post(f"{MODEL}:generateContent", json=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["status"]) == (400, "INVALID_ARGUMENT")
    assert error["message"].startswith("contents[0].parts[0]: ")
    assert "what the agent wrote" not in answer.text
    assert not upstream.requests


def test_ten_thousand_calls_are_read_in_no_time() -> None:
    """Each result looked through all open calls."""
    calls = [{"functionCall": {"name": "x"}}] * 10_000
    results = [{"functionResponse": {"name": "x", "response": {}}}] * 10_000
    body = {"contents": [{"role": "model", "parts": calls}, {"parts": results}]}
    began = time.thread_time()
    API.accept(body)
    assert time.thread_time() - began < 2.0


WRONG: dict[str, Json] = {
    "no candidates": {"candidates": []},
    "blocked": {"promptFeedback": {"blockReason": "SAFETY"}},
    "a candidate that is none": {"candidates": [5]},
    "parts that are none": {"candidates": [{"content": {"parts": 5}}]},
    "a part that is none": {"candidates": [{"content": {"parts": [5]}}]},
    "text that is a number": {"candidates": [{"content": {"parts": [{"text": 5}]}}]},
    "a call that is a list": {"candidates": [{"content": {"parts": [{"functionCall": []}]}}]},
    "arguments that are a list": {"candidates": [{"content": {"parts": [{"functionCall": {"args": [1]}}]}}]},
    "an error": {"error": {"code": 503, "message": "overloaded"}},
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("path", [f"{MODEL}:generateContent", "/v1/chat/completions"])
def test_a_provider_of_this_api_that_sends_no_answer_has_failed(
    session: Open, http: Http, monkeypatch: pytest.MonkeyPatch, case: str, path: str
) -> None:
    monkeypatch.setattr(provider, "ATTEMPTS", 1)
    body: Any = ASK if "beta" in path else {"messages": [{"role": "user", "content": "x"}]}
    with answering(lambda _: WRONG[case]) as url:
        trial = session(url, id="gemini/gemini-2.5-pro")
        answer = http(trial).post(path, json=body)
    assert answer.status_code == 502
    assert trial.calls[0].error
    assert "no answer" in trial.calls[0].error.message


@pytest.mark.parametrize("counts", [None, {}, {"promptTokenCount": -5}, {"promptTokenCount": True}, [1]])
def test_counts_that_are_none_are_no_counts(session: Open, http: Http, counts: object) -> None:
    said = {"candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": "STOP"}]}
    with answering(lambda _: said | {"usageMetadata": counts}) as url:
        trial = session(url, id="gemini/gemini-2.5-pro")
        assert http(trial).post(f"{MODEL}:generateContent", json=ASK).status_code == 200
    assert trial.calls[0].usage is None


def test_a_call_with_arguments_that_are_no_object_is_the_models_own(session: Open, http: Http) -> None:
    with FakeUpstream(Behaviour(calls=(("shell", "[1"),))) as upstream:
        trial = session(upstream.url)
        answer = http(trial).post(f"{MODEL}:generateContent", json=ASK).json()
    (part,) = answer["candidates"][0]["content"]["parts"]
    assert part["functionCall"]["args"] == {"malformed_arguments": "[1"}


def test_a_connection_that_is_cut_is_tried_again(
    session: Open, http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider, "BACK_OFF_SECONDS", 0.01)
    moves = (Behaviour(cut=True), Behaviour(status_code=429, retry_after=0), Behaviour(text="Said."))
    with FakeUpstream(*moves) as upstream:
        trial = session(upstream.url, id="gemini/gemini-2.5-pro", stream="through")
        answer = http(trial).post(f"{MODEL}:streamGenerateContent?alt=sse", json=ASK)
    assert "Said." in answer.text
    assert (trial.calls[0].attempts, trial.calls[0].status_code) == (3, 200)
    assert "stream" not in trial.calls[0].dropped


def test_a_stream_is_asked_for_by_its_own_address_and_what_is_none_is_collected(
    session: Open, http: Http
) -> None:
    asked: list[str] = []
    said = {"candidates": [{"content": {"parts": [{"text": "Said."}]}, "finishReason": "STOP"}]}

    def answer(path: str) -> Json:
        asked.append(path)
        return said | {"usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 1}}

    with answering(answer) as url:
        trial = session(url, id="gemini/gemini-2.5-pro", stream="through")
        streamed = http(trial).post(f"{MODEL}:streamGenerateContent?alt=sse", json=ASK)
        whole = http(trial).post(f"{MODEL}:generateContent", json=ASK)
    start = asked[1].removesuffix(":generateContent")
    assert asked == [f"{start}:streamGenerateContent?alt=sse", f"{start}:generateContent"]
    assert "Said." in streamed.text
    assert API.text(whole.json()) == "Said."
    assert [call.dropped for call in trial.calls] == [("stream",), ()]


def test_an_answer_in_one_event_is_a_stream(session: Open, http: Http) -> None:
    event = {"candidates": [{"content": {"parts": [{"text": "Said."}]}, "finishReason": "STOP"}]}
    counts = {"usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 1}}
    with lying(stream(encode_event(event | counts)), forever=True) as liar:
        trial = session(liar.url, id="gemini/gemini-2.5-pro", stream="through")
        answer = http(trial).post(f"{MODEL}:streamGenerateContent?alt=sse", json=ASK)
    assert answer.text.count("data: ") == 1
    assert "Said." in answer.text
    assert trial.calls[0].dropped == ()


def test_a_call_has_one_id_for_the_agent_the_ledger_and_its_result(session: Open, http: Http) -> None:
    """Google's models give no ids, and litellm writes a signature into those that it makes up."""
    with FakeUpstream(PARALLEL) as upstream:
        trial = session(upstream.url, id="gemini/gemini-2.5-pro", stream="through")
        answer = http(trial).post(f"{MODEL}:streamGenerateContent?alt=sse", json=ASK)
    events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
    seen = [call.id for event in events for call in API.tool_calls(event)]
    assert len(set(seen)) == 2
    assert "signed0" not in "".join(seen)
    kept = trial.calls[0].response
    assert kept is not None
    assert [call.id for call in API.tool_calls(kept)] == seen
    parts = kept["candidates"][0]["content"]["parts"]
    assert [part["thoughtSignature"] for part in parts if "functionCall" in part] == ["signed0", "signed0"]


def test_a_part_that_is_two_does_not_replace_the_call_before_it() -> None:
    call = {"functionCall": {"name": "shell", "args": {}}}
    answer = API.stream({})
    for part in ({"text": "a"}, {"text": "b"}, {"text": "c"} | call, {"text": "d"} | call):
        answer.pass_on({"candidates": [{"content": {"parts": [part]}}]})
    assert API.text(answer.answer) == "abcd"
    assert len(API.tool_calls(answer.answer)) == 2
