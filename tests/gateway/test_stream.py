"""Streams that are passed on: at once, metered like collected answers, and honest about where they broke off."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from runner.gateway import Session, provider
from runner.gateway import http as http_module
from runner.gateway.chat_api import Chat
from runner.gateway.fake_upstream import Behaviour, FakeUpstream
from runner.gateway.gemini_api import Gemini
from runner.records import Budget, ModelCall, Usage
from tests.gateway.conftest import Http, Json, Open
from tests.gateway.test_gemini import conversation
from tests.gateway.test_matrix import ANSWERS, SPEAKS
from tests.gateway.test_matrix import APIS as OTHERS
from tests.gateway.test_wire import CHAT_TOOLS
from tests.support.waiting import until

LONG = Behaviour(text="One two three four five six seven.")
UNENDED = LONG.model_copy(update={"held": "end"})
GEMINI_PATH = "/v1beta/models/any:streamGenerateContent?alt=sse"
APIS = OTHERS | {"gemini": (Gemini(), conversation)}
NATIVE = [
    *((name, model) for model, apis in SPEAKS.items() for name in APIS if name in [a.name for a in apis]),
    ("gemini", "gemini/gemini-2.5-pro"),
]
BRIDGED = [(name, model) for model in SPEAKS for name in APIS if (name, model) not in NATIVE]
TEXT_OF: dict[str, Callable[[Json], str]] = {
    "chat": lambda one: "".join(choice["delta"].get("content") or "" for choice in one.get("choices", ())),
    "responses": lambda one: one["delta"] if one["type"] == "response.output_text.delta" else "",
    "messages": lambda one: one["delta"].get("text", "") if one["type"] == "content_block_delta" else "",
    "gemini": Gemini().text,
}


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "BACK_OFF_SECONDS", 0.01)


def path_of(name: str, *, streamed: bool = True) -> str:
    return GEMINI_PATH if name == "gemini" and streamed else APIS[name][0].path.replace("{model:path}", "any")


def request_of(name: str, *, streamed: bool = True) -> Json:
    said = {} if name == "gemini" else {"model": "any", "stream": streamed}
    return APIS[name][1]() | said


def _data(lines: Iterator[str]) -> Iterator[Json]:
    for line in lines:
        if line.startswith("data: {"):
            yield json.loads(line.removeprefix("data: "))


def _comparable(call: ModelCall) -> Json:
    """Return a call on the ledger without its times, its way of delivery and the ids that are made up here."""
    text = call.model_dump_json(exclude={"started_at", "latency_seconds", "index", "dropped"})
    known: Json = json.loads(re.sub(r"\bcall_[0-9a-f]{28,32}\b", "call", text))
    return known


@pytest.mark.parametrize(("name", "model"), NATIVE)
def test_the_first_token_is_there_before_the_last(session: Open, http: Http, name: str, model: str) -> None:
    with FakeUpstream(UNENDED) as upstream:
        trial = session(upstream.url, id=model, stream="through")
        with http(trial).stream("POST", path_of(name), json=request_of(name)) as answer:
            events = _data(answer.iter_lines())
            first = next(one for one in events if TEXT_OF[name](one))
            assert (TEXT_OF[name](first), upstream.ended, trial.calls) == ("One ", 0, ())
            upstream.release()
            rest = list(events)
        assert upstream.ended == 1
    assert TEXT_OF[name](first) + "".join(map(TEXT_OF[name], rest)) == LONG.text
    assert trial.calls[0].usage == LONG.usage
    assert "stream" not in trial.calls[0].dropped


@pytest.mark.parametrize(("name", "model"), NATIVE)
def test_the_ledger_is_that_of_a_collected_call(session: Open, http: Http, name: str, model: str) -> None:
    lines = []
    for stream in ("collect", "through"):
        with FakeUpstream(*ANSWERS.values()) as upstream:
            trial = session(upstream.url, id=model, stream=stream, name=stream)
            for _ in ANSWERS:
                assert http(trial).post(path_of(name), json=request_of(name)).status_code == 200
        lines.append([_comparable(call) for call in trial.calls])
        assert trial.meter.usage == sum(upstream.served, Usage())
    assert lines[0] == lines[1]


@pytest.mark.parametrize(("name", "model"), BRIDGED)
def test_a_bridged_call_is_collected_and_says_so(session: Open, http: Http, name: str, model: str) -> None:
    with FakeUpstream(Behaviour(text="Said.")) as upstream:
        trial = session(upstream.url, id=model, stream="through")
        answer = http(trial).post(path_of(name), json=request_of(name))
        assert not upstream.requests[0].get("stream")
    assert "Said." in "".join(map(TEXT_OF[name], _data(iter(answer.text.splitlines()))))
    assert "stream" in trial.calls[0].dropped


def test_counts_come_to_those_who_asked_for_them(session: Open, http: Http) -> None:
    """The gateway always asks for the counts, or the ledger would have none."""
    with FakeUpstream(Behaviour(text="Said.")) as upstream:
        trial = session(upstream.url, stream="through")
        for wanted in (False, True):
            body = request_of("chat") | {"stream_options": {"include_usage": wanted}}
            answer = http(trial).post("/v1/chat/completions", json=body).text
            assert ('"prompt_tokens"' in answer) == wanted
            assert answer.endswith("data: [DONE]\n\n")
        assert [call.usage for call in trial.calls] == upstream.served


def test_the_official_clients_read_what_passes_through(
    session: Open, client: Callable[[Session], Any], messages: Callable[[Session], Any]
) -> None:
    asked = [{"role": "user", "content": "x"}]
    expected = [json.loads(arguments) for _, arguments in ANSWERS["parallel calls"].calls]
    with FakeUpstream(ANSWERS["parallel calls"]) as upstream:
        openai = client(session(upstream.url, stream="through"))
        with openai.chat.completions.stream(model="any", messages=asked, tools=CHAT_TOOLS) as chat:
            calls = chat.get_final_completion().choices[0].message.tool_calls
        with openai.responses.stream(model="any", input="x") as responses:
            response = responses.get_final_response()
        claude = session(upstream.url, id="anthropic/claude-sonnet-4-6", stream="through", name="claude")
        with messages(claude).stream(model="any", max_tokens=9, messages=asked) as message:
            blocks = message.get_final_message().content
    assert [json.loads(call.function.arguments) for call in calls] == expected
    assert [json.loads(item.arguments) for item in response.output[2:]] == expected
    assert response.output_text == blocks[1].text == "Said."
    assert (blocks[0].thinking, blocks[0].signature) == ("Thought.", "signed_2")
    assert [block.input for block in blocks[2:]] == expected


@pytest.mark.parametrize(("name", "model"), NATIVE)
def test_a_stream_that_breaks_off_ends_in_an_error(session: Open, http: Http, name: str, model: str) -> None:
    """There is no second try, since the agent has seen the first. The caps count its worst case."""
    with FakeUpstream(LONG.model_copy(update={"cut_after": 6})) as upstream:
        trial = session(upstream.url, id=model, stream="through", budget=Budget(output_tokens=20, turns=2))
        answer = http(trial).post(path_of(name), json=request_of(name))
        assert len(upstream.requests) == 1
    assert answer.status_code == 200
    *_, error = _data(iter(answer.text.splitlines()))
    assert "The model's provider failed" in json.dumps(error)
    assert error.get("type") == {"responses": "response.failed", "messages": "error"}.get(name)
    (call,) = trial.calls
    assert (call.status_code, call.attempts, call.lost, call.response) == (502, 1, 1, None)
    assert call.cut
    in_each = Usage(input_tokens=1000, cache_hit_tokens=400, output_tokens=1)
    counted = in_each if name in ("messages", "gemini") else None
    assert (call.usage, trial.meter.usage) == (counted, counted or Usage())
    assert http(trial).post(path_of(name), json=request_of(name)).status_code == 403
    assert trial.meter.refusal == "output_tokens"


@pytest.mark.parametrize(("name", "model"), NATIVE)
def test_a_stream_that_never_began_is_tried_again(session: Open, http: Http, name: str, model: str) -> None:
    failures = [Behaviour(status_code=429, retry_after=0), LONG.model_copy(update={"cut_after": 0})]
    with FakeUpstream(*failures, Behaviour(text="Said.")) as upstream:
        trial = session(upstream.url, id=model, stream="through")
        answer = http(trial).post(path_of(name), json=request_of(name))
        assert len(upstream.requests) == 3
    assert "Said." in "".join(map(TEXT_OF[name], _data(iter(answer.text.splitlines()))))
    (call,) = trial.calls
    assert (call.attempts, call.lost, call.usage) == (3, 1, upstream.served[-1])


@pytest.mark.parametrize(("name", "model"), NATIVE)
def test_an_error_in_a_stream_is_an_error(session: Open, http: Http, name: str, model: str) -> None:
    """Overloaded providers report that in an event, after the status 200."""
    with FakeUpstream(Behaviour(error_after=0), Behaviour(text="Said.")) as upstream:
        trial = session(upstream.url, id=model, stream="through")
        answer = http(trial).post(path_of(name), json=request_of(name))
    assert "Said." in "".join(map(TEXT_OF[name], _data(iter(answer.text.splitlines()))))
    assert trial.calls[0].attempts == 2


def test_a_response_that_failed_is_no_answer(session: Open, http: Http) -> None:
    """Such a stream was recorded as an answer, with status 200 and a turn."""
    failed = Behaviour(text="One two.", error_after=4, failed=True, message="Out of order.")
    with FakeUpstream(failed) as upstream:
        trial = session(upstream.url, stream="through")
        http(trial).post("/v1/responses", json=request_of("responses"))
    (call,) = trial.calls
    assert (call.status_code, call.lost, call.response, trial.meter.turns) == (502, 1, None, 0)
    assert call.cut
    assert call.error is not None
    assert "Out of order." in call.error.message


def test_parallel_calls_without_numbers_stay_apart() -> None:
    """Their arguments were joined in one call."""
    stream = Chat().stream({})
    for id_, piece in (("a", "{"), (None, "}"), ("b", "[]")):
        call = {"function": {"arguments": piece}} | ({"id": id_} if id_ else {})
        stream.pass_on({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})
    calls = stream.answer["choices"][0]["message"]["tool_calls"]
    assert [(call["id"], call["function"]["arguments"]) for call in calls] == [("a", "{}"), ("b", "[]")]


@pytest.mark.parametrize(("name", "model"), NATIVE)
def test_an_agent_that_hangs_up_ends_the_providers_stream(
    session: Open, http: Http, name: str, model: str
) -> None:
    with FakeUpstream(UNENDED) as upstream:
        trial = session(upstream.url, id=model, stream="through", budget=Budget(turns=1))
        agent = http(trial)
        with agent.stream("POST", path_of(name), json=request_of(name)) as answer:
            next(_data(answer.iter_lines()))
        agent.close()
        until(lambda: upstream.hung_up == 1 and len(trial.calls) == 1)
    (call,) = trial.calls
    assert (call.status_code, call.lost, call.response) == (499, 1, None)
    assert call.cut
    assert http(trial).post(path_of(name), json=request_of(name)).status_code == 403


def test_a_deadline_ends_a_stream_that_passes_through(session: Open, http: Http) -> None:
    with FakeUpstream(UNENDED) as upstream:
        trial = session(upstream.url, stream="through", seconds=2.0)
        answer = http(trial).post("/v1/chat/completions", json=request_of("chat"))
        until(lambda: upstream.hung_up == 1)
    *_, error = _data(iter(answer.text.splitlines()))
    assert error["error"]["type"] == "budget_exceeded"
    assert (trial.calls[0].refused, trial.calls[0].lost) == ("deadline", 1)


def test_a_spent_budget_is_refused_before_a_stream_begins(session: Open, http: Http) -> None:
    with FakeUpstream(Behaviour(text="Said.")) as upstream:
        trial = session(upstream.url, stream="through", budget=Budget(output_tokens=80))
        statuses = [
            http(trial).post("/v1/chat/completions", json=request_of("chat")).status_code for _ in range(3)
        ]
        assert [request["max_tokens"] for request in upstream.requests] == [80, 30]
    assert statuses == [200, 200, 403]


def test_there_are_pings_before_the_first_token(
    session: Open, http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_module, "PING_SECONDS", 0.1)
    with FakeUpstream(Behaviour(text="Said.", held="answer")) as upstream:
        trial = session(upstream.url, id="anthropic/claude-sonnet-4-6", stream="through")
        with http(trial).stream("POST", "/v1/messages", json=request_of("messages")) as answer:
            lines = answer.iter_lines()
            for _ in range(2):
                assert next(filter(None, lines)) == "event: ping"
                assert next(lines).startswith("data: ")
            upstream.release()
            rest = "".join(lines)
    assert "message_start" in rest
    assert "Said." in rest


def test_a_provider_that_does_not_stream_is_collected(session: Open, http: Http) -> None:
    with FakeUpstream(Behaviour(text="Said.", streams=False)) as upstream:
        trial = session(upstream.url, stream="through")
        answer = http(trial).post("/v1/chat/completions", json=request_of("chat"))
        assert upstream.requests[0]["stream"] is True
    assert "Said." in answer.text
    assert trial.calls[0].dropped == ("stream",)
    assert trial.calls[0].usage == upstream.served[0]


def test_an_agent_that_asks_for_json_gets_json(session: Open, http: Http) -> None:
    with FakeUpstream(Behaviour(text="Said.")) as upstream:
        trial = session(upstream.url, stream="through")
        answer = http(trial).post("/v1/chat/completions", json=request_of("chat") | {"stream": False})
        assert "stream" not in upstream.requests[0]
    assert answer.json()["choices"][0]["message"]["content"] == "Said."
    assert trial.calls[0].dropped == ()


def test_the_providers_key_does_not_pass_through(session: Open, http: Http, canary: str) -> None:
    with FakeUpstream(Behaviour(text=f"Your key: {canary} it is.")) as upstream:
        trial = session(upstream.url, stream="through")
        answer = http(trial).post("/v1/chat/completions", json=request_of("chat")).text
    assert "[key]" in answer
    assert canary not in answer + trial.calls[0].model_dump_json()
