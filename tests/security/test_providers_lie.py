"""A lying provider: what is not an answer is the provider's failure, never the agent's, and is not charged."""

# ruff: noqa: F811 - fixtures of another folder are imported by their names
from __future__ import annotations

import gzip
import json
import time
import zlib

import httpx
import pytest

from runner.gateway import Session, answer_checks, provider, transport
from runner.gateway import http as http_module
from runner.gateway.fake_stream import error, failed
from runner.gateway.fake_upstream import body
from runner.records import Budget, ExecResult, Status, Usage
from runner.trials.outcome import ending
from tests.gateway.conftest import CANARY, Http, Json, Open, canary, http, session  # noqa: F401 - fixtures
from tests.gateway.test_stream import APIS, path_of, request_of
from tests.security.lying import TRUTH, Answer, Lie, lying, response, stream, true_events

NATIVE = [
    ("chat", "openai/x"),
    ("responses", "openai/x"),
    ("messages", "anthropic/claude-sonnet-4-6"),
    ("chat", "zai/glm-5"),
    ("gemini", "gemini/gemini-2.5-pro"),
]
BRIDGED = [("messages", "openai/x"), ("chat", "anthropic/claude-sonnet-4-6"), ("responses", "zai/glm-5")]
MOST = 200_000
"""Limit on the bytes of an answer in these tests."""
WHOLE = json.dumps(body("chat", TRUTH)).encode()
PAGE = b"<!doctype html><title>Sign in</title>" + b"<p>Please do.</p>" * 50
HUGE = b'{"choices": "' + b"x" * (2 * MOST) + b'"}'
BOMB = gzip.compress(b'{"choices": "' + b" " * 50_000_000 + b'"}')
OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


def _true(api: str) -> bytes:
    return json.dumps(body(api, TRUTH)).encode()


def _bytes(*pieces: bytes) -> Answer:
    return Answer(b"".join(pieces))


def _without(*names: str) -> Lie:
    """Return the truth without the fields that make it an answer."""

    def lie(api: str) -> Answer:
        whole = {key: value for key, value in body(api, TRUTH).items() if key not in names}
        return response(json.dumps(whole).encode())

    return lie


def _with(**fields: object) -> Lie:
    return lambda api: response(json.dumps(body(api, TRUTH) | fields).encode())


HOLDERS = ("choices", "output", "content", "candidates")
NO_ANSWERS: dict[str, Lie] = {
    "204": Answer(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n"),
    "nothing": response(b""),
    "page": response(PAGE, kind="text/html"),
    "page as JSON": response(PAGE),
    "plain text": response(b"OK", kind="text/plain"),
    "empty object": response(b"{}"),
    "list": response(b"[]"),
    "null": response(b"null"),
    "number": response(b"1"),
    "text": response(b'"ok"'),
    "broken JSON": lambda api: response(_true(api)[:-9]),
    "two objects": lambda api: response(_true(api) * 2),
    "bottomless": response(b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    "not UTF-8": response(b'{"choices": "\xff\xfe\xfd"}'),
    "too many values": response(b'{"a": [' + b"1," * 30_000 + b"1]}"),
    "too long": response(HUGE),
    "bomb": response(BOMB, content_encoding="gzip"),
    "packed and broken": response(b"\x1f\x8bbroken", content_encoding="gzip"),
    "packed otherwise": response(zlib.compress(WHOLE), content_encoding="br"),
    "cut while packed": response(gzip.compress(HUGE[:1000])[:-20], content_encoding="gzip"),
    "without what was asked for": _without(*HOLDERS),
    "text for a list": _with(choices="x", output="x", content="x", candidates="x"),
    "number for a list": _with(choices=1, output=1, content=1, candidates=1),
    "list of texts": _with(choices=["x"], output=["x"], content=["x"], candidates=["x"]),
    "list of nulls": _with(choices=[None], output=[None], content=[None], candidates=[None]),
    "list of lists": _with(choices=[[]], output=[[]], content=[[]], candidates=[[]]),
    "empty parts": _with(choices=[{}], output=[{}], content=[{}], candidates=[{}]),
    "types that are none": _with(
        choices=[{"message": 5}], output=[{"type": []}], content=[{"type": {}}], candidates=[{"content": 5}]
    ),
    "thoughts that are no list": _with(
        choices=5, content=5, candidates=5, output=[{"type": "reasoning", "summary": "x"}]
    ),
    "thoughts that are texts": _with(
        choices=5, content=5, candidates=5, output=[{"type": "reasoning", "summary": ["x"]}]
    ),
    "an answer that is still to come": _with(
        choices=[], content=[], candidates=[], stop_reason=None, status="queued"
    ),
    "no choice": _with(
        choices=[], output=[], status="in_progress", content=[], candidates=[], stop_reason=None
    ),
    "error beside the answer": _with(error={"message": "Overloaded"}),
    "error of OpenAI's": response(json.dumps({"error": {"message": "Overloaded", "code": 529}}).encode()),
    "error of Anthropic's": response(json.dumps(OVERLOADED).encode()),
    "error as a text": response(b'{"error": "Overloaded"}'),
    "detail": response(b'{"detail": "Overloaded"}'),
    "300": response(b"", "300 Multiple Choices"),
    "301 to nowhere": response(b"", "301 Moved Permanently"),
    "302 to itself": response(b"", "302 Found", location="/v1/chat/completions"),
    "304": response(b"", "304 Not Modified"),
    "307 to what is no address": response(b"", "307 Temporary Redirect", location="http://[::1"),
    "events nobody asked for": lambda api: stream(*true_events(api, {})),
}
"""Name -> something sent with a status of success or a redirection. None of it is known to have cost anything."""
SHORT = ["page", "empty object", "broken JSON", "204", "error of Anthropic's"]
BROKEN: dict[str, Lie] = {
    "length too long": lambda api: response(_true(api), content_length="99999"),
    "broken chunk": _bytes(
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"zz\r\n{}\r\n0\r\n\r\n"
    ),
    "cut in a chunk": _bytes(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"ff\r\n{"),
    "no HTTP": _bytes(b"220 mail.example.org ESMTP\r\n\r\n"),
    "half a head": _bytes(b"HTTP/1.1 200 OK\r\ncontent-"),
    "hung up": _bytes(),
    "endless drip": Answer(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99999\r\n\r\n",
        b" ",
        seconds=0.05,
    ),
}
"""Name -> something that breaks off. The provider may have written it to the end, so the caps count its worst case."""


def _begun(*garbage: bytes) -> Lie:
    """Return a stream whose beginning the agent sees, followed by garbage."""
    return lambda api: stream(*true_events(api, {})[:2], *garbage)


NO_STREAMS: dict[str, Lie] = {
    "nothing": stream(),
    "comments": stream(b": at work\n\n" * 99),
    "page": stream(PAGE),
    "broken event": stream(b'data: {"choices": [\n\n'),
    "error at once": stream(error("Overloaded")),
    "failed at once": stream(failed("Overloaded")),
    "error without a type": stream(b'data: {"error": {"message": "Overloaded"}}\n\n'),
    "end at once": stream(b"data: [DONE]\n\n"),
    "bottomless event": stream(b"data: " + b'{"a":' * 100_000 + b"\n\n"),
    "events of no shape": stream(
        b'data: {"choices": 5, "candidates": 5, "type": "content_block_delta", "index": 7, "delta": [], '
        b'"response": 5}\n\n'
    ),
    "a tool call of an enormous number": stream(
        b'data: {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 50000000}]}}], '
        b'"type": "content_block_delta", "index": 50000000, "delta": {}, "response": 5}\n\n'
    ),
    "too long a line": stream(b'data: {"a": "' + b"x" * (2 * MOST) + b'"}\n\n'),
    "page for a stream": response(PAGE, kind="text/html"),
    "error for a stream": response(json.dumps(OVERLOADED).encode()),
    "302 for a stream": response(b"", "302 Found", location="http://elsewhere.example.org/"),
    "204 for a stream": Answer(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n"),
    "bomb": Answer(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\n\r\n", BOMB
    ),
}
BROKEN_STREAMS: dict[str, Lie] = {
    "no end": _begun(),
    "error": _begun(error("Overloaded")),
    "broken event": _begun(b'data: {"choices": [\n\n'),
    "event of no shape": _begun(
        b'data: {"choices": [5], "candidates": [5], "type": "content_block_delta", "index": 7, "delta": [], '
        b'"response": 5}\n\n'
    ),
    "too long a line": _begun(b"data: " + b"x" * (2 * MOST)),
}


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "BACK_OFF_SECONDS", 0.001)
    monkeypatch.setattr(http_module, "PING_SECONDS", 600.0)
    monkeypatch.setattr(transport, "ANSWER_BYTES", MOST)
    monkeypatch.setattr(transport, "ANSWER_SECONDS", 0.3)
    monkeypatch.setattr(answer_checks, "ANSWER_VALUES", 20_000)


def _ask(http: Http, trial: Session, name: str, *, streamed: bool = False) -> httpx.Response:
    return http(trial).post(path_of(name, streamed=streamed), json=request_of(name, streamed=streamed))


def _says_truth(answer: httpx.Response) -> bool:
    return answer.status_code == 200 and "truth." in answer.text


def _asked_twice(
    session: Open, http: Http, lie: Lie, name: str, model: str, *, streamed: bool = False
) -> tuple[Session, int]:
    """Check that a provider that lies once is asked again. Return the session and its tries that may be charged."""
    with lying(lie) as liar:
        trial = session(liar.url, id=model, stream="through" if streamed else "collect")
        assert _says_truth(_ask(http, trial, name, streamed=streamed))
        assert len(liar.requests) == 2
    (call,) = trial.calls
    assert (call.attempts, call.usage) == (2, TRUTH.usage)
    return trial, call.lost


@pytest.mark.parametrize(
    ("lie", "name", "model"),
    [
        *((lie, *native) for native in NATIVE for lie in NO_ANSWERS),
        *((lie, *bridged) for bridged in BRIDGED for lie in SHORT),
    ],
)
def test_what_is_not_an_answer_is_tried_again_and_costs_nothing(
    session: Open, http: Http, lie: str, name: str, model: str
) -> None:
    trial, lost = _asked_twice(session, http, NO_ANSWERS[lie], name, model)
    assert lost == 0
    assert trial.meter.charged["usd"] == pytest.approx(trial.meter.cost_usd)


@pytest.mark.parametrize(("name", "model"), NATIVE)
@pytest.mark.parametrize("lie", BROKEN)
def test_an_answer_that_breaks_off_is_tried_again_and_charged_at_its_worst(
    session: Open, http: Http, lie: str, name: str, model: str
) -> None:
    trial, lost = _asked_twice(session, http, BROKEN[lie], name, model)
    assert lost == 1
    assert trial.meter.charged["usd"] > 2 * (trial.meter.cost_usd or 0)


@pytest.mark.parametrize(("name", "model"), NATIVE)
@pytest.mark.parametrize("lie", NO_STREAMS)
def test_a_stream_of_lies_is_tried_again_and_costs_nothing(
    session: Open, http: Http, lie: str, name: str, model: str
) -> None:
    trial, lost = _asked_twice(session, http, NO_STREAMS[lie], name, model, streamed=True)
    assert lost == 0
    assert trial.meter.charged["usd"] == pytest.approx(trial.meter.cost_usd)


@pytest.mark.parametrize(("name", "model"), NATIVE)
@pytest.mark.parametrize("lie", BROKEN_STREAMS)
def test_lies_in_a_stream_that_has_begun_end_it(
    session: Open, http: Http, lie: str, name: str, model: str
) -> None:
    with lying(BROKEN_STREAMS[lie]) as liar:
        trial = session(liar.url, id=model, stream="through")
        answer = _ask(http, trial, name, streamed=True)
        assert len(liar.requests) == 1
    assert "The model's provider failed" in answer.text
    (call,) = trial.calls
    assert (call.status_code, call.lost, call.response) == (502, 1, None)
    assert trial.meter.charged["usd"] > 0


@pytest.mark.parametrize(("name", "model"), NATIVE)
@pytest.mark.parametrize(
    ("lie", "streamed"), [*((lie, False) for lie in SHORT), ("page", True), ("204", True)]
)
def test_a_provider_that_always_lies_has_failed_and_not_the_agent(
    session: Open, http: Http, lie: str, name: str, model: str, *, streamed: bool
) -> None:
    with lying(NO_ANSWERS[lie], forever=True) as liar:
        trial = session(liar.url, id=model, budget=Budget(usd=2.0))
        answer = _ask(http, trial, name, streamed=streamed)
        assert len(liar.requests) == provider.ATTEMPTS
    assert answer.status_code == 502
    assert "The provider sent no answer" in json.dumps(answer.json())
    (call,) = trial.calls
    assert (call.status_code, call.lost, call.usage, trial.meter.turns) == (502, 0, None, 0)
    assert (trial.meter.charged["usd"], trial.meter.cost_usd, trial.meter.refusal) == (0.0, 0.0, None)
    status, _ = ending(
        ExecResult(exit_code=1, stdout="", stderr="", seconds=1.0), trial.calls, trial.meter.refusal, None
    )
    assert status == Status.INFRA_INVALID


@pytest.mark.parametrize(("name", "model"), NATIVE)
@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Moved", "308 Moved"])
def test_a_redirection_to_another_host_is_named_and_not_followed(
    session: Open, http: Http, status: str, name: str, model: str
) -> None:
    with lying(response(b"{}"), forever=True) as thief:
        away = response(b"", status, location=thief.url.replace("127.0.0.1", "localhost"))
        with lying(away, forever=True) as liar:
            trial = session(liar.url, id=model)
            assert _ask(http, trial, name).status_code == 502
        assert thief.requests == []
    (call,) = trial.calls
    assert call.error is not None
    assert "leads to 'localhost'" in call.error.message


@pytest.mark.parametrize(("name", "model"), NATIVE)
@pytest.mark.parametrize("status", ["400 Bad Request", "404 Not Found", "500 Oops", "503 Oops", "599 Oops"])
def test_a_page_for_an_error_is_cut(session: Open, http: Http, status: str, name: str, model: str) -> None:
    """All 10 MB were searched by litellm with expressions, on the loop of all trials, for more than half a minute."""
    page = response(b"<p>No." * 300_000, status, kind="text/html")
    with lying(page, forever=True) as liar:
        trial = session(liar.url, id=model)
        answer = _ask(http, trial, name)
    assert answer.status_code == (502 if status.startswith("5") else int(status[:3]))
    assert len(answer.content) < 3 * transport.ERROR_BYTES
    (call,) = trial.calls
    assert (call.lost, len(call.model_dump_json(include={"error"})) < 3 * transport.ERROR_BYTES) == (0, True)


@pytest.mark.parametrize(
    ("status", "offset"),
    [
        *(("400 Bad Request", offset) for offset in (0, 4_000, 8_160, 8_170, 8_180, 8_191, 8_192)),
        *(("200 OK", offset) for offset in (0, 975, 990, 999, 1_000)),
    ],
)
def test_no_half_of_a_key_is_left_where_what_came_is_cut(
    session: Open, http: Http, status: str, offset: int
) -> None:
    echo = b"." * offset + CANARY.encode() + b"." * 20_000
    with lying(response(echo, status, kind="text/plain"), forever=True) as liar:
        trial = session(liar.url)
        answer = _ask(http, trial, "chat")
    seen = answer.text + trial.calls[0].model_dump_json()
    assert not any(CANARY[:size] in seen or CANARY[-size:] in seen for size in range(10, len(CANARY)))


def test_a_line_of_ten_megabytes_is_read_once(
    session: Open, http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of its 600 pieces was appended to a copy of all before it, which stopped all trials for half a minute."""
    monkeypatch.setattr(transport, "ANSWER_BYTES", 32 * 2**20)
    monkeypatch.setattr(transport, "ANSWER_SECONDS", 60.0)
    line = b'data: {"type": "ping", "choices": [], "pad": "' + b"x" * 10_000_000 + b'"}\n\n'
    with lying(lambda api: stream(line, *true_events(api, {}))) as liar:
        trial = session(liar.url, stream="through")
        began = time.process_time()
        answer = _ask(http, trial, "chat", streamed=True)
        assert time.process_time() - began < 10
    assert _says_truth(answer)
    assert len(liar.requests) == 1


@pytest.mark.parametrize("model", ["openai/x", "anthropic/x"])
def test_what_follows_a_packed_answer_is_not_gathered(session: Open, http: Http, model: str) -> None:
    """The bytes were appended to a copy of all before them: 300 MB blocked the loop of all trials for minutes."""
    name = "messages" if model == "anthropic/x" else "chat"

    def lie(api: str) -> Answer:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\n\r\n"
        return Answer(head, gzip.compress(_true(api)), *[bytes(2**20)] * 300)

    with lying(lie, forever=True) as liar:
        began = time.process_time()
        answer = _ask(http, session(liar.url, id=model), name)
        assert time.process_time() - began < 2
    assert _says_truth(answer)


@pytest.mark.parametrize("name", ["chat", "messages", "gemini"])
def test_many_small_pieces_are_not_copied_again_with_each_of_them(name: str) -> None:
    """Ten megabytes of pieces blocked the loop of all trials for minutes."""
    begun: dict[str, dict[str, object]] = {
        "chat": {"choices": []},
        "gemini": {"candidates": []},
        "messages": {"type": "message_start", "message": {"content": [{"type": "text", "text": ""}]}},
    }
    delta = {"type": "text_delta", "text": "x" * 100}
    pieces: dict[str, dict[str, object]] = {
        "chat": {"choices": [{"index": 0, "delta": {"content": "x" * 100}}]},
        "gemini": {"candidates": [{"content": {"parts": [{"text": "x" * 100}]}}]},
        "messages": {"type": "content_block_delta", "index": 0, "delta": delta},
    }
    answer = APIS[name][0].stream({})
    answer.pass_on(begun[name])
    began = time.process_time()
    for _ in range(40_000):
        answer.pass_on(pieces[name])
    assert time.process_time() - began < 5
    assert APIS[name][0].text(answer.answer) == "x" * 4_000_000


def test_a_prompt_that_gemini_blocks_has_no_answer_and_begins_no_stream(session: Open, http: Http) -> None:
    blocked = b'{"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 5}}'
    lie = stream(b"data: " + blocked + b"\n\n")
    _, lost = _asked_twice(session, http, lie, "gemini", "gemini/gemini-2.5-pro", streamed=True)
    assert lost == 0


MODELS_ARGUMENTS = {
    "a list": "[1]",
    "null": "null",
    "a number": "5",
    "a text": '"x"',
    "not a number": "NaN",
    "no JSON": "rm -rf",
    "half an object": '{"command": "rm -rf /tmp',
    "NUL": "\0",
    "two objects": "{}{}",
    "half a pair": '{"a": "\\ud800"}',
    "3000 levels": "[" * 3000,
    "levels within an object": '{"a":' * 3000,
    "nothing": "",
    "a blank": " ",
}


def _calling(api: str, arguments: str) -> bytes:
    whole = body(api, TRUTH)
    if api == "chat":
        call = {"id": "c", "type": "function", "function": {"name": "x", "arguments": arguments}}
        whole["choices"][0]["message"] = {"role": "assistant", "content": None, "tool_calls": [call]}
    else:
        whole["output"] = [{"type": "function_call", "call_id": "c", "name": "x", "arguments": arguments}]
    return json.dumps(whole).encode()


@pytest.mark.parametrize(
    ("name", "model"),
    [(name, model) for model in ("openai/x", "zai/x") for name in ("chat", "responses", "messages")],
)
@pytest.mark.parametrize("arguments", MODELS_ARGUMENTS)
def test_arguments_that_make_no_sense_are_the_models_and_no_failure_of_its_provider(
    session: Open, http: Http, arguments: str, name: str, model: str
) -> None:
    """A model writes what an agent asks for: four tries were paid, and then the trial was invalid."""
    with lying(lambda api: response(_calling(api, MODELS_ARGUMENTS[arguments])), forever=True) as liar:
        trial = session(liar.url, id=model)
        answers_of = [_ask(http, trial, name, streamed=streamed) for streamed in (False, True)]
        assert len(liar.requests) == 2
    assert [answer.status_code for answer in answers_of] == [200, 200]
    assert [(call.status_code, call.usage) for call in trial.calls] == [(200, TRUTH.usage)] * 2


def test_what_a_model_wrote_for_arguments_is_kept(session: Open, http: Http) -> None:
    with lying(lambda api: response(_calling(api, "rm -rf")), forever=True) as liar:
        answer = _ask(http, session(liar.url, id="zai/x"), "messages").json()
    assert [block["input"] for block in answer["content"] if block["type"] == "tool_use"] == [
        {"malformed_arguments": "rm -rf"}
    ]


WORST_OUTPUT = 64
COUNTS: dict[str, object] = {
    "null": None,
    "true": True,
    "false": False,
    "text": "5",
    "word": "many",
    "negative": -5,
    "huge": 10**30,
    "fraction": 5.5,
    "whole fraction": 5.0,
    "list": [5],
    "object": {"value": 5},
    "not a number": float("nan"),
    "without end": float("inf"),
}


def _counting(api: str, written: object) -> bytes:
    whole = body(api, TRUTH)
    names = ("completion_tokens",) if api == "chat" else ("output_tokens",)
    return json.dumps(whole | {"usage": whole["usage"] | dict.fromkeys(names, written)}).encode()


@pytest.mark.parametrize(("name", "model"), [*NATIVE[:3], *BRIDGED[:2]])
@pytest.mark.parametrize("count", COUNTS)
def test_what_is_not_a_count_is_charged_at_its_worst(
    session: Open, http: Http, count: str, name: str, model: str
) -> None:
    """Null was taken for 0 and true for 1, which is less than may have been written."""
    with lying(lambda api: response(_counting(api, COUNTS[count])), forever=True) as liar:
        trial = session(liar.url, id=model, max_output_tokens=WORST_OUTPUT, budget=Budget(usd=5.0))
        assert _ask(http, trial, name).status_code == 200
    (call,) = trial.calls
    assert (call.usage, call.cost_usd, trial.meter.cost_usd, trial.meter.usage) == (None, None, None, Usage())
    assert trial.meter.charged["output_tokens"] == WORST_OUTPUT
    assert trial.meter.charged["usd"] >= WORST_OUTPUT * 10.0 / 1e6


@pytest.mark.parametrize("count", ["null", "true", "text", "negative"])
def test_a_streamed_message_whose_last_count_is_none_is_charged_at_its_worst(
    session: Open, http: Http, count: str
) -> None:
    """Its first event counts one written token, so far."""

    def lie(api: str) -> Answer:
        *rest, last, stop = true_events(api, {})
        false = last.replace(
            b'"output_tokens": 50', b'"output_tokens": ' + json.dumps(COUNTS[count]).encode()
        )
        assert false != last
        return stream(*rest, false, stop)

    with lying(lie, forever=True) as liar:
        trial = session(liar.url, id="anthropic/x", stream="through", max_output_tokens=WORST_OUTPUT)
        assert _ask(http, trial, "messages", streamed=True).status_code == 200
    assert (trial.calls[0].usage, trial.meter.charged["output_tokens"]) == (None, WORST_OUTPUT)


@pytest.mark.parametrize("zone", ["+99999999999999", "-99999999999999", "+2359", "-2400", "+9" * 50])
@pytest.mark.parametrize("year", ["1", "0001", "2026", "9999", "99999999"])
def test_a_retry_after_of_any_zone_and_year_is_read(zone: str, year: str) -> None:
    asked = provider._seconds(f"Thu, 01 Jan {year} 00:00:00 {zone}")
    assert 0 <= asked <= 2 * provider.LONGEST_WAIT_SECONDS


def test_a_retry_after_of_an_enormous_zone_is_no_failure_of_ours(session: Open, http: Http) -> None:
    """The gateway raised an exception, and the agent got 500."""
    busy = response(b"{}", "503 Busy", retry_after="Thu, 01 Jan 2026 00:00:00 +99999999999999")
    with lying(busy) as liar:
        assert _ask(http, session(liar.url), "chat").status_code == 200
